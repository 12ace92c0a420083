"""The authorizer of API keys: says to the gateway whether a request may pass, and on whose behalf."""

from __future__ import annotations

from typing import Any, TypedDict

from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom import wiring
from darkroom.domain.tenants import context_of
from darkroom.operations.authorize_request import Denied, authorize_request
from darkroom.telemetry import entry_point, logger

ports = wiring.authorize_request()

ANSWER_SECONDS = 8.0
"""What both reads may take together. The gateway waits 10 seconds for an authorizer
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html)."""


class RequestEvent(TypedDict):
    """As much as is read of API Gateway's event. Powertools' class for it comes with those of all other services, which
    would cost each cold start 50 ms that a client waits for."""

    identitySource: list[str]


@entry_point(of_gateway=True, has_metrics=False)
def handler(event: RequestEvent, context: LambdaContext) -> dict[str, Any]:
    # What the gateway took from the request is what it remembers the answer by, so that is what the answer is about.
    (authorization,) = event["identitySource"]
    with wiring.within(ANSWER_SECONDS):  # Retryable goes through: the gateway answers 500 and remembers nothing
        outcome = authorize_request(ports, authorization)
    if isinstance(outcome, Denied):
        logger.info("denied", extra={"reason": outcome.reason, "key_id": outcome.key_id})
        return {"isAuthorized": False}
    return {"isAuthorized": True, "context": context_of(outcome)}
