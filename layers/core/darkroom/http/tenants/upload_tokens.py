"""What a browser with an upload token may do: send photos as the token says, and ask how they are doing."""

from __future__ import annotations

from collections.abc import Iterable

from darkroom.domain.tenants.upload_tokens import UploadToken, upload_token_in
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.route import Route
from darkroom.http.kernel.router import Router
from darkroom.telemetry import logger


def upload_token_of(app: Router) -> UploadToken | None:
    """The token of the current request, as the authorizer has verified it, or None for any other credential."""
    payload = caller_of(app).upload_token
    return None if payload is None else upload_token_in(payload)


def refuse_what_tokens_may_not(app: Router, route: Route) -> None:
    """Raises Problem for a caller with a token, and nothing else, if the route takes none (`insufficient_scope`), or if
    scripts of another website use it than it names (`upload_token_refused`)."""
    token = app.read_once(upload_token_of)
    if token is None:
        return
    logger.append_keys(upload_token=token.token_id)
    if not route.takes_upload_tokens:  # guard: upload-token-routes
        raise insufficient_scope(
            route,
            "With an upload token, photos can be sent (POST /images, POST /uploads, POST /uploads/{id}/done), and the "
            "status of those that were sent with it can be asked for (GET /images/{id}/status). Use an API key, on a "
            "server, for anything else.",
        )
    if token.origins and app.current_event.headers.get("origin") not in token.origins:  # guard: upload-token-origins
        raise refusal("This upload token is for websites that this request does not come from, by its header Origin.")


def insufficient_scope(route: Route, detail: str) -> Problem:
    """The refusal of a credential that was not made for the route."""
    challenge = f'Bearer error="insufficient_scope", scope="{route.scope}"'
    return Problem("insufficient_scope", detail, headers={"WWW-Authenticate": challenge})


def refuse_order_beside_token(names: Iterable[str]) -> None:
    """Raises Problem (`upload_token_refused`) if a request with a token says by these parameters how or when to make
    its image: the token says all of it."""
    given = ", ".join(sorted(names))
    if given:  # guard: upload-token-order-alone
        raise refusal(f"The upload token says how its photos are developed. Leave out: {given[:200]}.")


def refusal(sentence: str) -> Problem:
    """The refusal of what no token, or not this one, allows."""
    return Problem("upload_token_refused", sentence)
