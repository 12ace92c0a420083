"""The HTTP edge that all API functions share: JSON out, and every error as an RFC 9457 problem."""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

import pybase64
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.metrics import MetricUnit, single_metric
from pydantic import Field

from darkroom.aws.clients import within
from darkroom.domain.errors import Rejected, Retryable, TurnedAway
from darkroom.domain.field_problems import InvalidFields
from darkroom.domain.tenants import ALLOWANCES, NOBODY_IN_PARTICULAR, Caller, Tier, caller_from, is_tenant_id
from darkroom.domain.token_bucket import limit_field, policy_field, seconds_to_next, tokens_left
from darkroom.http.routes import NO_SNIFFING, Route, methods_of
from darkroom.operations.read_image import UnknownImage
from darkroom.operations.take_token import take_token
from darkroom.ports import Clock, TokenBuckets, UnreadableRow
from darkroom.settings import AccessSettings
from darkroom.telemetry import logger, report_unreadable

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

ANSWER_SECONDS = 8.5
"""What all AWS calls for one request may take together. A client is told within ten seconds that a service does not
answer, while it still listens, and well before the gateway gives up after thirty."""

JSON = "application/json"

UNAVAILABLE_RETRY_AFTER_SECONDS = 5
"""When to ask again where nothing says how long a service will be away."""

PROBLEMS: dict[str, tuple[HTTPStatus, str]] = {
    "empty_upload": (HTTPStatus.BAD_REQUEST, "The upload is empty"),
    "unknown_preset": (HTTPStatus.BAD_REQUEST, "Unknown preset"),
    "unknown_variants": (HTTPStatus.BAD_REQUEST, "Unknown variants"),
    "invalid_recipe": (HTTPStatus.BAD_REQUEST, "The recipe cannot be used"),
    "conflicting_parameters": (HTTPStatus.BAD_REQUEST, "Parameters that exclude each other"),
    "invalid_idempotency_key": (HTTPStatus.BAD_REQUEST, "Invalid Idempotency-Key"),
    "invalid_process_at": (HTTPStatus.BAD_REQUEST, "Unusable process_at"),
    "invalid_delay": (HTTPStatus.BAD_REQUEST, "Unusable delay"),
    "invalid_expires_at": (HTTPStatus.BAD_REQUEST, "Unusable expires_at"),
    "invalid_move": (HTTPStatus.BAD_REQUEST, "The body does not say when"),
    "invalid_upload": (HTTPStatus.BAD_REQUEST, "The upload cannot be announced so"),
    "invalid_form": (HTTPStatus.BAD_REQUEST, "The form cannot be used"),
    "invalid_limit": (HTTPStatus.BAD_REQUEST, "Unusable limit"),
    "unknown_status": (HTTPStatus.BAD_REQUEST, "Unknown status"),
    "invalid_cursor": (HTTPStatus.BAD_REQUEST, "Unusable cursor"),
    "unreadable_body": (HTTPStatus.BAD_REQUEST, "The body cannot be read"),
    "unknown_parameter": (HTTPStatus.BAD_REQUEST, "Unknown parameter"),
    "no_tenant": (HTTPStatus.FORBIDDEN, "The token names no tenant"),
    "unknown_image": (HTTPStatus.NOT_FOUND, "Unknown image"),
    "unknown_variant": (HTTPStatus.NOT_FOUND, "Unknown variant"),
    "unknown_path": (HTTPStatus.NOT_FOUND, "Unknown path"),
    "method_not_allowed": (HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed"),
    "not_scheduled": (HTTPStatus.CONFLICT, "The image is not scheduled"),
    "variant_not_ready": (HTTPStatus.CONFLICT, "The variant is not ready"),
    "image_deleted": (HTTPStatus.GONE, "The image was deleted"),
    "upload_too_large": (HTTPStatus.CONTENT_TOO_LARGE, "The upload is too large"),
    "unsupported_format": (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Not an image that can be developed"),
    "unsupported_media_type": (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The body is of another media type"),
    "idempotency_key_reused": (HTTPStatus.UNPROCESSABLE_CONTENT, "Idempotency-Key reused"),
    "too_many_requests": (HTTPStatus.TOO_MANY_REQUESTS, "Too many requests"),
    "overloaded": (HTTPStatus.TOO_MANY_REQUESTS, "More to do than can be done in time"),
    "internal": (HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error"),
    "variant_missing": (HTTPStatus.INTERNAL_SERVER_ERROR, "The variant is missing"),
    "unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, "Temporarily unavailable"),
}
"""Every problem by its code: its status and its title."""


class Problem(Exception):
    """An error answer: `code` is one of PROBLEMS, `detail` says what to do, `errors` which fields are wrong, if any."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title = PROBLEMS[code]
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = errors


def problem_type(code: str) -> str:
    """The stable `type` of a problem (RFC 9457, section 3.1.1)."""
    return f"urn:darkroom:problem:{code.replace('_', '-')}"


class FieldErrorDocument(TypedDict):
    """What is wrong with one field."""

    field: Annotated[str, Field(description="Its path: `variants.2.width`.")]
    message: str


class ProblemDocument(TypedDict):
    """An error (RFC 9457)."""

    type: Annotated[str, Field(description="Stable: an URN that ends with the code.")]
    title: str
    status: int
    detail: Annotated[str, Field(description="What to do, for people.")]
    code: Annotated[str, Field(description="Stable: branch on it.")]
    correlation_id: Annotated[str, Field(description="Finds the request in the operator's logs.")]
    errors: NotRequired[list[FieldErrorDocument]]


def problem_document(problem: Problem, correlation_id: str) -> ProblemDocument:
    """What a client is told of `problem`; the correlation id finds the request in the logs."""
    document: ProblemDocument = {
        "type": problem_type(problem.code),
        "title": problem.title,
        "status": problem.status.value,
        "detail": problem.detail,
        "code": problem.code,
        "correlation_id": correlation_id,
    }
    if problem.errors:
        document["errors"] = [{"field": error["field"], "message": error["message"]} for error in problem.errors]
    return document


def problem_response(problem: Problem, correlation_id: str) -> Response[str]:
    """The answer for `problem`, in `application/problem+json`."""
    return Response(
        status_code=problem.status.value,
        content_type="application/problem+json",
        body=json.dumps(problem_document(problem, correlation_id)),
        headers={"Cache-Control": "no-store", **problem.headers},
    )


def json_response(status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str]) -> Response[str]:
    """A JSON answer."""
    return Response(
        status_code=status.value, content_type="application/json", body=json.dumps(document), headers=dict(headers)
    )


class Router(APIGatewayHttpResolver):
    """A router for HTTP API events (payload 2.0) that knows by which credential callers are let in, and none of whose
    answers a browser may take for something else than it says.

    `answer_headers` are what the answer to the current request carries whatever it is, a problem too.
    """

    def __init__(self, access: AccessSettings) -> None:
        super().__init__()
        self.access = access
        self.answer_headers: dict[str, str] = {}

    def resolve(self, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        self.answer_headers = {NO_SNIFFING.name: NO_SNIFFING.example}
        answer = super().resolve(event, context)
        # Here and not in a middleware, which errors go past.
        answer["headers"] |= self.answer_headers
        return answer


def create_app() -> Router:
    """A router for HTTP API events (payload 2.0) that answers every error as a problem."""
    app = Router(AccessSettings.read())
    app.use(middlewares=[_in_time])

    def respond(problem: Problem) -> Response[str]:
        return problem_response(problem, correlation_id_of(app))

    @app.exception_handler(Problem)
    def _problem(problem: Problem) -> Response[str]:
        return respond(problem)

    @app.exception_handler(InvalidFields)
    def _invalid_fields(error: InvalidFields) -> Response[str]:
        return respond(Problem(error.code, error.message, errors=[asdict(problem) for problem in error.problems]))

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

    @app.exception_handler(TurnedAway)
    def _turned_away(error: TurnedAway) -> Response[str]:
        tier = caller_of(app).tier
        logger.info("turned away", extra={"reason": error.code, "retry_after_seconds": error.retry_after_seconds})
        dimensions = {"service": logger.service, "reason": error.code, "tier": tier.value}
        with single_metric("RequestsTurnedAway", MetricUnit.Count, 1, default_dimensions=dimensions):
            pass
        if "RateLimit" in app.answer_headers and (allowance := caller_of(app).allowance) is not None:
            # Whatever is left of the allowance, nothing of it is of use before that.
            app.answer_headers["RateLimit"] = limit_field(0, allowance, wait_seconds=error.retry_after_seconds)
        return respond(Problem(error.code, error.message, headers={"Retry-After": str(error.retry_after_seconds)}))

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


def handles[Handler: Callable[..., Response[str]]](app: Router, route: Route) -> Callable[[Handler], Handler]:
    """Registers the decorated function for the route. Query parameters that the route does not have are refused: a
    misspelt one would otherwise be ignored, and a photo developed at once that was to wait."""

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

    register: Callable[[Handler], Handler] = app.route(
        rule=route.rule, method=route.method, middlewares=[refuse_unknown_parameters]
    )
    return register


def _in_time(app: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[str]:
    with within(ANSWER_SECONDS):
        return next_middleware(app)


def correlation_id_of(app: Router) -> str:
    """The gateway's id of the current request: in every log line about it, and in the rows that it makes."""
    return app.current_event.request_context.request_id


def caller_of(app: Router) -> Caller:
    """Who sent the current request: by the credential that the gateway has seen, never by a header or a parameter.

    Raises Problem (`no_tenant`) for a token without a tenant. A request that brings no word of the authorizer that it
    should have passed is a hole in the template: it is refused (RuntimeError), and not taken for the default tenant's.
    """
    authorizer = app.current_event.request_context.authorizer
    match app.access.access:
        case "keys":
            caller = caller_from(_passed(authorizer.get_lambda))
        case "jwt":
            caller = _caller_of_token(_passed(authorizer.jwt_claim), app.access)
        case "iam" | "anonymous":
            caller = NOBODY_IN_PARTICULAR
    logger.append_keys(tenant_id=caller.tenant_id, **({} if caller.key_id is None else {"key_id": caller.key_id}))
    return caller


def announce_allowance(app: Router, caller: Caller) -> None:
    """Tells the client in its answer, whatever that will be, how much its tenant may ask for."""
    if caller.allowance is not None:
        app.answer_headers["RateLimit-Policy"] = policy_field(caller.allowance)


def hold_to_allowance(app: Router, caller: Caller, *, buckets: TokenBuckets, clock: Clock) -> None:
    """Takes a token for the request, and tells the client what is left. Raises TurnedAway (`too_many_requests`) where
    there is none; where the tenant's bucket does not answer, the request is served."""
    taken, now = take_token(caller, buckets=buckets, clock=clock), clock()
    allowance = caller.allowance
    if allowance is None:
        return
    if taken is None:
        logger.warning("the tenant's bucket does not answer")
        with single_metric("AllowancesUnknown", MetricUnit.Count, 1, default_dimensions={"service": logger.service}):
            pass
        return
    wait_seconds = seconds_to_next(taken.tat, allowance, now * 1000)
    left = tokens_left(taken.tat, allowance, now * 1000) if taken.is_taken else 0
    app.answer_headers["RateLimit"] = limit_field(left, allowance, wait_seconds=wait_seconds)
    if not taken.is_taken:
        raise TurnedAway(
            "too_many_requests",
            f"This tenant may send {allowance.requests_per_second} requests a second, and {allowance.burst} at once. "
            f"Send the same request again after {max(1, wait_seconds)} seconds.",
            retry_after_seconds=max(1, wait_seconds),
        )


def _passed(word: dict[str, Any]) -> dict[str, Any]:
    if not word:
        raise RuntimeError("the request came past the authorizer: its route in template.yaml lacks `security`")
    return word


def _caller_of_token(claims: Mapping[str, str], access: AccessSettings) -> Caller:
    tenant_id = claims.get(access.jwt_tenant_claim, "")
    if not is_tenant_id(tenant_id):
        raise Problem(
            "no_tenant",
            f"The token's claim {access.jwt_tenant_claim!r} names no tenant: that takes 1 to 128 letters, "
            "digits and . _ : | @ -, a letter or digit first.",
        )
    # The issuer decides who pays: a claim that is missing, or a word that nobody knows, gives nothing for free.
    tier = Tier.PAID if claims.get(access.jwt_tier_claim) == Tier.PAID else Tier.FREE
    return Caller(tenant_id=tenant_id, tier=tier, allowance=ALLOWANCES[tier])


def json_body(app: Router) -> bytes:
    """The body of a request that says something. Raises Problem (`unsupported_media_type`) where it says by its
    `Content-Type` that it is no JSON."""
    content_type = app.current_event.headers.get("content-type", JSON)
    if content_type.partition(";")[0].strip().lower() != JSON:
        # RFC 9110, section 15.5.16: in this answer Accept says what would have been taken.
        raise Problem(
            "unsupported_media_type", f"Send the body as JSON: Content-Type: {JSON}", headers={"Accept": JSON}
        )
    return raw_body(app)


def raw_body(app: Router) -> bytes:
    """The request's body as the client sent it.

    The gateway passes bodies of text types as text and all others as base64; a photo sent as `text/plain` has been
    damaged on the way by the time it arrives here, and is refused by its first bytes.
    """
    body = app.current_event.body
    if body is None:
        return b""
    if not app.current_event.is_base64_encoded:
        return body.encode()
    try:
        # By SIMD: the standard library takes a hundred times as long, 40 ms of CPU for 4 MB.
        return pybase64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise Problem("unreadable_body", "The body is not base64 as the gateway sends it.") from error
