"""What all API functions share: a router that answers every error as a problem, and the registration of handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from darkroom.domain.kernel.errors import Misconfigured, Rejected, Retryable, UnknownImage
from darkroom.domain.kernel.field_problems import InvalidFields
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.stored import QuotaExceeded
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.problems import Excess, FieldErrorDocument, Problem
from darkroom.http.kernel.requests import correlation_id_of
from darkroom.http.kernel.responses import problem_response
from darkroom.http.kernel.route import Route
from darkroom.http.kernel.router import AnswerMetrics, Middleware, Next, Response, Router
from darkroom.http.tenants.upload_tokens import insufficient_scope, refuse_what_tokens_may_not
from darkroom.parts import PARTS
from darkroom.ports.kernel import UnreadableRow
from darkroom.settings import AccessSettings
from darkroom.telemetry import logger, report_unreadable

type Within = Callable[[float], AbstractContextManager[None]]
"""Bounds the total time, in seconds, of all AWS calls in its block."""

type Respond = Callable[[Problem], Response]
"""Answers the current request with a problem."""

ANSWER_SECONDS = 8.5
"""The total time of all AWS calls for one request. A client learns within ten seconds that a service does not answer,
while it still listens, and well before the gateway gives up after thirty."""

UNAVAILABLE_RETRY_AFTER_SECONDS = 5
"""When to ask again if nobody knows how long a service will be away."""

_UNKNOWN_IMAGE = Problem("unknown_image", "There is no image with this id.")


def create_app(*, within: Within, counted: AnswerMetrics | None = None, parts: Collection[str] = PARTS) -> Router:
    """A router for HTTP API events (payload 2.0) that answers every error as a problem, and everything in time. The
    function that answers at unknown paths says which parts the stack has."""
    app = Router(AccessSettings.read(), counted)

    def in_time(app: Router, next_middleware: Next) -> Response:
        with within(ANSWER_SECONDS):
            return next_middleware(app)

    app.everywhere.append(in_time)

    def respond(problem: Problem) -> Response:
        return problem_response(problem, correlation_id_of(app))

    _answer_refusals(app, respond)
    _answer_outages(app, respond)
    _answer_unknown_routes(app, parts)

    @app.exception_handler(Exception)
    def _internal(error: Exception) -> Response:
        logger.exception("unexpected error", exc_info=error)
        return respond(Problem("internal", "An unexpected error occurred. Report the correlation id to the operator."))

    return app


def _answer_refusals(app: Router, respond: Respond) -> None:
    """What the caller asked for is refused, or is not there."""

    @app.exception_handler(Problem)
    def _problem(problem: Problem) -> Response:
        return respond(problem)

    @app.exception_handler(InvalidFields)
    def _invalid_fields(error: InvalidFields) -> Response:
        errors: list[FieldErrorDocument] = [
            {"field": problem.field, "message": problem.message} for problem in error.problems
        ]
        return respond(Problem(error.code, error.message, errors=errors))

    @app.exception_handler(QuotaExceeded)
    def _quota_exceeded(error: QuotaExceeded) -> Response:
        return respond(Problem(error.code, error.message, excess=Excess(used=error.used, quota=error.quota)))

    @app.exception_handler(Rejected)
    def _rejected(error: Rejected) -> Response:
        return respond(Problem(error.code, error.message))

    @app.exception_handler(UnknownImage)
    def _unknown_image(_: UnknownImage) -> Response:
        return respond(_UNKNOWN_IMAGE)


def _answer_outages(app: Router, respond: Respond) -> None:
    """What a later request may get."""

    @app.exception_handler(Retryable)
    def _unavailable(error: Retryable) -> Response:
        if isinstance(error, Misconfigured):  # guard: denied-call-alarms
            # The alarm of functions' errors counts lines with an `errorType`.
            about = {"cause": str(error), "errorType": type(error).__name__}
            logger.error("misconfigured", exc_info=error, extra=about)
        else:
            logger.warning("unavailable", extra={"cause": str(error)})
        retry_after_seconds = max(UNAVAILABLE_RETRY_AFTER_SECONDS, error.retry_after_seconds)
        return respond(
            Problem(
                "unavailable",
                "A required service does not answer at present. Send the same request again.",
                headers={"Retry-After": str(retry_after_seconds)},
            )
        )

    @app.exception_handler(UnreadableRow)
    def _unreadable(error: UnreadableRow) -> Response:
        report_unreadable([error])
        if error.tenant_id != caller_of(app).tenant_id:  # guard: unreadable-other-tenant-hidden
            return respond(_UNKNOWN_IMAGE)
        return respond(
            Problem(
                "unavailable",
                "A newer version of the service wrote this, and this version cannot read it. Nothing is lost. Send the "
                "same request again later.",
                headers={"Retry-After": str(error.retry_after_seconds)},
            )
        )


def _answer_unknown_routes(app: Router, parts: Collection[str]) -> None:
    """Which paths and methods there are."""

    @app.no_route
    def _no_route() -> Response:
        from darkroom.http.description import methods_of  # noqa: PLC0415 -- seldom needed

        request = app.current_event
        methods = methods_of(request.path, app.access.access, parts)  # guard: parts-off-no-methods
        # A path that matches a route but ends up here has characters that neither an id nor a variant's name may have.
        if not methods or request.http_method in methods:
            raise Problem(
                "unknown_path",
                "There is nothing at this path. GET /openapi.json lists what there is.",
            )
        allowed = ", ".join(methods)
        raise Problem("method_not_allowed", f"This path allows {allowed}.", headers={"Allow": allowed})


def handles[Handler: Callable[..., Response]](
    app: Router, route: Route, protection: Callable[..., Response] | None = None
) -> Callable[[Handler], Handler]:
    """Registers the decorated function for the route; a rate-limited route gets a protection in front.

    Refuses query parameters that the route does not have: a misspelt one would otherwise be ignored, and a photo that
    was meant to wait would be developed at once. Refuses keys that were not made for it, which costs no token.
    """
    if route.is_rate_limited != (protection is not None):  # guard: allowances-route-protection
        raise ValueError(f"{route.name}: a route that is rate-limited needs a protection, and no other has one")

    def refuse_unknown_parameters(app: Router, next_middleware: Next) -> Response:
        # A request may be signed in its query instead of a header
        # (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html).
        given = {name for name in app.current_event.query_string_parameters if not name.lower().startswith("x-amz-")}
        if given <= route.query:  # guard: api-unknown-parameter-refused
            return next_middleware(app)
        known = ", ".join(sorted(route.query))
        raise Problem(
            "unknown_parameter",
            f"This route knows only these parameters: {known}." if known else "This route takes no parameters.",
        )

    def require_scope(app: Router, next_middleware: Next) -> Response:
        caller = caller_of(app)
        if caller.upload_token is not None:
            refuse_what_tokens_may_not(app, route)
            return next_middleware(app)
        scopes = caller.scopes
        if scopes is None or route.scope in scopes:  # guard: key-scope-required, key-without-scopes-denied
            return next_middleware(app)
        detail = f"This key has no scope {route.scope}. Ask the operator for one that has it."
        raise insufficient_scope(route, detail)

    def tell_of_image(app: Router, next_middleware: Next) -> Response:
        image_id = app.current_event.arguments.get("image_id", "")
        # guard: logs-image-id-verified
        if is_image_id(image_id):  # anything else is a client's text, and no image's
            logger.append_keys(image_id=image_id)
        return next_middleware(app)

    middlewares: list[Middleware] = [
        tell_of_image,
        refuse_unknown_parameters,
        *([] if route.is_open else [require_scope]),
        *([protection] if protection else []),
    ]

    def register(handler: Handler) -> Handler:
        for method in route.methods:
            app.add(method, route.rule, handler, middlewares)
        return handler

    return register
