"""What all API functions share: a router that answers every error as a problem, and how handlers register with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware

from darkroom.domain.errors import Rejected, Retryable
from darkroom.domain.field_problems import InvalidFields
from darkroom.http.callers import caller_of
from darkroom.http.problems import FieldErrorDocument, Problem
from darkroom.http.requests import correlation_id_of
from darkroom.http.responses import problem_response
from darkroom.http.router import AnswerMetrics, Router
from darkroom.http.routes import Route, methods_of
from darkroom.operations.read_image import UnknownImage
from darkroom.ports import UnreadableRow
from darkroom.settings import AccessSettings
from darkroom.telemetry import logger, report_unreadable

type Within = Callable[[float], AbstractContextManager[None]]
"""Bounds what all AWS calls in its block may take together, in seconds."""

ANSWER_SECONDS = 8.5
"""What all AWS calls for one request may take together. A client is told within ten seconds that a service does not
answer, while it still listens, and well before the gateway gives up after thirty."""

UNAVAILABLE_RETRY_AFTER_SECONDS = 5
"""When to ask again where nothing says how long a service will be away."""


def create_app(*, within: Within, counted: AnswerMetrics | None = None) -> Router:
    """A router for HTTP API events (payload 2.0) that answers every error as a problem, and everything in time."""
    app = Router(AccessSettings.read(), counted)

    def in_time(app: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
        with within(ANSWER_SECONDS):
            return next_middleware(app)

    app.use(middlewares=[in_time])

    def respond(problem: Problem) -> Response[str]:
        return problem_response(problem, correlation_id_of(app))

    @app.exception_handler(Problem)
    def _problem(problem: Problem) -> Response[str]:
        return respond(problem)

    @app.exception_handler(InvalidFields)
    def _invalid_fields(error: InvalidFields) -> Response[str]:
        errors: list[FieldErrorDocument] = [{"field": one.field, "message": one.message} for one in error.problems]
        return respond(Problem(error.code, error.message, errors=errors))

    @app.exception_handler(Rejected)
    def _rejected(error: Rejected) -> Response[str]:
        return respond(Problem(error.code, error.message))

    unknown_image = Problem("unknown_image", "There is no image with this id.")

    @app.exception_handler(UnknownImage)
    def _unknown_image(_: UnknownImage) -> Response[str]:
        return respond(unknown_image)

    @app.exception_handler(Retryable)
    def _unavailable(error: Retryable) -> Response[str]:
        logger.warning("unavailable", extra={"cause": str(error)})
        retry_after_seconds = max(UNAVAILABLE_RETRY_AFTER_SECONDS, error.retry_after_seconds)
        return respond(
            Problem(
                "unavailable",
                "A service that this needs does not answer now. Send the same request again.",
                headers={"Retry-After": str(retry_after_seconds)},
            )
        )

    @app.exception_handler(UnreadableRow)
    def _unreadable(error: UnreadableRow) -> Response[str]:
        report_unreadable([error])
        if error.tenant_id != caller_of(app).tenant_id:
            return respond(unknown_image)
        return respond(
            Problem(
                "unavailable",
                "This version of the service cannot read this image, which a newer one has written. Nothing of it is "
                "lost. Send the same request again later.",
                headers={"Retry-After": str(error.retry_after_seconds)},
            )
        )

    @app.not_found
    def _no_route(_: Exception) -> Response[str]:
        request = app.current_event
        methods = methods_of(request.path)
        # What matches a route and came here has characters in it that neither an id nor a variant's name has.
        if not methods or request.http_method in methods:
            raise Problem(
                "unknown_path",
                "There is nothing at this path. GET /openapi.json tells what there is.",
            )
        allowed = ", ".join(methods)
        raise Problem("method_not_allowed", f"This path takes {allowed}.", headers={"Allow": allowed})

    @app.exception_handler(Exception)
    def _internal(error: Exception) -> Response[str]:
        logger.exception("unexpected error", exc_info=error)
        return respond(Problem("internal", "Something unexpected happened here. Tell the operator the correlation id."))

    return app


def handles[Handler: Callable[..., Response[str]]](
    app: Router, route: Route, protection: Callable[..., Response[str]] | None = None
) -> Callable[[Handler], Handler]:
    """Registers the decorated function for the route, behind the protection of one that is rate-limited.

    Query parameters that the route does not have are refused: a misspelt one would otherwise be ignored, and a photo
    developed at once that was to wait.
    """
    if route.is_rate_limited != (protection is not None):
        raise ValueError(f"{route.name}: a route that is rate-limited needs a protection, and no other has one")

    def refuse_unknown_parameters(app: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
        # A request may be signed in its query instead of a header
        # (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html).
        given = {name for name in app.current_event.query_string_parameters if not name.lower().startswith("x-amz-")}
        if given <= route.query:
            return next_middleware(app)
        known = ", ".join(sorted(route.query))
        raise Problem(
            "unknown_parameter",
            f"Only these parameters are known here: {known}." if known else "There are no parameters here.",
        )

    middlewares: list[Callable[..., Response[str]]] = [refuse_unknown_parameters, *([protection] if protection else [])]
    register: Callable[[Handler], Handler] = app.route(rule=route.rule, method=route.method, middlewares=middlewares)
    return register
