"""The HTTP edge that all API functions share: JSON out, and every error as an RFC 9457 problem."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware

from darkroom.aws.clients import within
from darkroom.domain.errors import Rejected, Retryable
from darkroom.domain.field_problems import InvalidFields
from darkroom.domain.tenants import ALLOWANCES, NOBODY_IN_PARTICULAR, Caller, Tier, caller_from, is_tenant_id
from darkroom.operations.read_image import UnknownImage
from darkroom.settings import AccessSettings
from darkroom.telemetry import logger

ANSWER_SECONDS = 8.5
"""What all AWS calls for one request may take together. A client is told within ten seconds that a service does not
answer, while it still listens, and well before the gateway gives up after thirty."""

UNAVAILABLE_RETRY_AFTER_SECONDS = 5
"""When to ask again where nothing says how long a service will be away."""

_REJECTED_STATUS: dict[str, HTTPStatus] = {
    "empty_upload": HTTPStatus.BAD_REQUEST,
    "upload_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported_format": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "unknown_preset": HTTPStatus.BAD_REQUEST,
    "unknown_variants": HTTPStatus.BAD_REQUEST,
    "invalid_recipe": HTTPStatus.BAD_REQUEST,
    "invalid_upload": HTTPStatus.BAD_REQUEST,
    "conflicting_parameters": HTTPStatus.BAD_REQUEST,
    "invalid_idempotency_key": HTTPStatus.BAD_REQUEST,
    "idempotency_key_reused": HTTPStatus.UNPROCESSABLE_ENTITY,
    "image_deleted": HTTPStatus.GONE,
    "invalid_process_at": HTTPStatus.BAD_REQUEST,
    "invalid_delay": HTTPStatus.BAD_REQUEST,
    "invalid_expires_at": HTTPStatus.BAD_REQUEST,
    "invalid_move": HTTPStatus.BAD_REQUEST,
    "invalid_limit": HTTPStatus.BAD_REQUEST,
    "unknown_status": HTTPStatus.BAD_REQUEST,
    "invalid_cursor": HTTPStatus.BAD_REQUEST,
    "invalid_form": HTTPStatus.BAD_REQUEST,
    "not_scheduled": HTTPStatus.CONFLICT,
}

_TITLES: dict[str, str] = {
    "empty_upload": "The upload is empty",
    "unreadable_body": "The body cannot be read",
    "upload_too_large": "The upload is too large",
    "unsupported_format": "Not an image that can be developed",
    "unknown_preset": "Unknown preset",
    "unknown_variants": "Unknown variants",
    "invalid_recipe": "The recipe cannot be used",
    "invalid_upload": "The upload cannot be announced so",
    "conflicting_parameters": "Parameters that exclude each other",
    "invalid_idempotency_key": "Invalid Idempotency-Key",
    "idempotency_key_reused": "Idempotency-Key reused",
    "image_deleted": "The image was deleted",
    "invalid_process_at": "Unusable process_at",
    "invalid_delay": "Unusable delay",
    "invalid_expires_at": "Unusable expires_at",
    "invalid_move": "The body does not say when",
    "invalid_limit": "Unusable limit",
    "unknown_status": "Unknown status",
    "invalid_cursor": "Unusable cursor",
    "invalid_form": "The form cannot be used",
    "not_scheduled": "The image is not scheduled",
    "unknown_image": "Unknown image",
    "unknown_variant": "Unknown variant",
    "variant_not_ready": "The variant is not ready",
    "unknown_path": "Unknown path",
    "no_tenant": "The token names no tenant",
    "method_not_allowed": "Method not allowed",
    "unavailable": "Temporarily unavailable",
    "internal": "Internal error",
}


class Problem(Exception):
    """An error answer; `code` is stable, `detail` says what to do, `errors` which fields are wrong, if any."""

    def __init__(
        self,
        *,
        status: HTTPStatus,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = errors


def problem_response(problem: Problem, correlation_id: str) -> Response[str]:
    """The answer for `problem`, in `application/problem+json`; the correlation id finds the request in the logs."""
    body: dict[str, Any] = {
        "type": f"urn:darkroom:problem:{problem.code.replace('_', '-')}",
        "title": _TITLES[problem.code],
        "status": problem.status.value,
        "detail": problem.detail,
        "code": problem.code,
        "correlation_id": correlation_id,
    }
    if problem.errors:
        body["errors"] = list(problem.errors)
    return Response(
        status_code=problem.status.value,
        content_type="application/problem+json",
        body=json.dumps(body),
        headers={"Cache-Control": "no-store", **problem.headers},
    )


def json_response(status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str]) -> Response[str]:
    """A JSON answer."""
    return Response(
        status_code=status.value, content_type="application/json", body=json.dumps(document), headers=dict(headers)
    )


class Router(APIGatewayHttpResolver):
    """A router for HTTP API events (payload 2.0) that knows by which credential callers are let in."""

    def __init__(self, access: AccessSettings) -> None:
        super().__init__()
        self.access = access


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
        return respond(
            Problem(
                status=_REJECTED_STATUS[error.code],
                code=error.code,
                detail=error.message,
                errors=[asdict(problem) for problem in error.problems],
            )
        )

    @app.exception_handler(Rejected)
    def _rejected(error: Rejected) -> Response[str]:
        return respond(Problem(status=_REJECTED_STATUS[error.code], code=error.code, detail=error.message))

    @app.exception_handler(UnknownImage)
    def _unknown_image(_: UnknownImage) -> Response[str]:
        return respond(
            Problem(status=HTTPStatus.NOT_FOUND, code="unknown_image", detail="There is no image with this id.")
        )

    @app.exception_handler(Retryable)
    def _unavailable(error: Retryable) -> Response[str]:
        logger.warning("unavailable", extra={"cause": str(error)})
        retry_after_seconds = max(UNAVAILABLE_RETRY_AFTER_SECONDS, error.retry_after_seconds)
        return respond(
            Problem(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                code="unavailable",
                detail="A service that this needs does not answer now. Send the same request again.",
                headers={"Retry-After": str(retry_after_seconds)},
            )
        )

    @app.exception_handler(Exception)
    def _internal(error: Exception) -> Response[str]:
        logger.exception("unexpected error", exc_info=error)
        return respond(
            Problem(
                status=HTTPStatus.INTERNAL_SERVER_ERROR,
                code="internal",
                detail="Something unexpected happened here. Tell the operator the correlation id.",
            )
        )

    return app


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


def _passed(word: dict[str, Any]) -> dict[str, Any]:
    if not word:
        raise RuntimeError("the request came past the authorizer: its route in template.yaml lacks `security`")
    return word


def _caller_of_token(claims: Mapping[str, str], access: AccessSettings) -> Caller:
    tenant_id = claims.get(access.jwt_tenant_claim, "")
    if not is_tenant_id(tenant_id):
        raise Problem(
            status=HTTPStatus.FORBIDDEN,
            code="no_tenant",
            detail=f"The token's claim {access.jwt_tenant_claim!r} names no tenant: that takes 1 to 128 letters, "
            "digits and . _ : | @ -, a letter or digit first.",
        )
    # The issuer decides who pays: a claim that is missing, or a word that nobody knows, gives nothing for free.
    tier = Tier.PAID if claims.get(access.jwt_tier_claim) == Tier.PAID else Tier.FREE
    return Caller(tenant_id=tenant_id, tier=tier, allowance=ALLOWANCES[tier])


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
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise Problem(
            status=HTTPStatus.BAD_REQUEST,
            code="unreadable_body",
            detail="The body is not base64 as the gateway sends it.",
        ) from error
