"""The authorizer of API keys: tells the gateway whether a request may pass, and on whose behalf."""

from __future__ import annotations

from typing import Any, TypedDict

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.kernel.tenants import context_of
from darkroom.operations.tenants.authorize_request import Denied, authorize_request
from darkroom.telemetry import entry_point, logger
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.tenants.authorize_request import wire

ports = wire()

ANSWER_SECONDS = 8.0
"""The total time of both reads. The gateway waits 10 seconds for an authorizer
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html)."""


class RequestEvent(TypedDict):
    """The fields of API Gateway's event that are read here. Powertools' class for the event would import those of all
    other services, and cost each cold start 50 ms that a client waits for."""

    identitySource: list[str]


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: RequestEvent, context: LambdaContext) -> dict[str, Any]:
    # The gateway caches the answer under this value, so the decision is based on the same value.
    (authorization,) = event["identitySource"]  # guard: authorizer-judges-cache-key
    with within(ANSWER_SECONDS):  # Retryable propagates: the gateway answers 500 and caches nothing
        outcome = authorize_request(ports, authorization)
    if isinstance(outcome, Denied):
        logger.info("denied", extra={"reason": outcome.reason, "key_id": outcome.key_id})
        return {"isAuthorized": False}
    return {"isAuthorized": True, "context": context_of(outcome)}
