"""Protects a route from overload, cheapest check first: health, rate limit, load shedding."""

from __future__ import annotations

from collections.abc import Callable

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom.domain.errors import TurnedAway
from darkroom.domain.tenants import Caller
from darkroom.domain.token_bucket import seconds_to_next, tokens_left
from darkroom.http.callers import caller_of
from darkroom.http.problems import Problem
from darkroom.http.rate_limit import limit_field, policy_field
from darkroom.http.router import Router
from darkroom.operations.take_token import Ports, take_token
from darkroom.telemetry import logger


def protected(
    rate_limit: Ports, *, require_healthy: Callable[[], None] | None = None
) -> Callable[[Router, NextMiddleware], Response[str]]:
    """A middleware for one route.

    Every answer tells the client its tenant's allowance. While a store is known not to answer, `require_healthy` raises
    Retryable, and the refusal costs no token. After that check the request costs a token. The operation decides whether
    its lane has room (TurnedAway), because a request that repeats an earlier one passes.
    """

    def protect(app: Router, next_middleware: NextMiddleware) -> Response[str]:
        caller = caller_of(app)
        declare_rate_limit(app, caller)
        if require_healthy is not None:
            require_healthy()
        try:
            enforce_rate_limit(app, caller, rate_limit)
            return next_middleware(app)
        except TurnedAway as error:
            raise _refusal(app, caller, error) from error

    return protect


def declare_rate_limit(app: Router, caller: Caller) -> None:
    """Makes the answer, whatever it will be, state how much the tenant may ask for."""
    if caller.allowance is not None:
        app.answer_headers["RateLimit-Policy"] = policy_field(caller.allowance)


def enforce_rate_limit(app: Router, caller: Caller, ports: Ports) -> None:
    """Takes a token for the request and tells the client what is left. Raises TurnedAway (`too_many_requests`) if there
    is none; if the tenant's bucket does not answer, the request is served."""
    taken, now = take_token(ports, caller), ports.clock()
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
            f"This tenant may send {allowance.requests_per_second} requests per second, and {allowance.burst} at once. "
            f"Send the same request again after {max(1, wait_seconds)} seconds.",
            retry_after_seconds=max(1, wait_seconds),
        )


def _refusal(app: Router, caller: Caller, error: TurnedAway) -> Problem:
    """Returns the problem for a request that was turned away, and counts it."""
    logger.info("turned away", extra={"reason": error.code, "retry_after_seconds": error.retry_after_seconds})
    dimensions = {"service": logger.service, "reason": error.code, "tier": caller.tier.value}
    with single_metric("RequestsTurnedAway", MetricUnit.Count, 1, default_dimensions=dimensions):
        pass
    if "RateLimit" in app.answer_headers and caller.allowance is not None:
        # Whatever is left of the allowance, none of it helps before then.
        app.answer_headers["RateLimit"] = limit_field(0, caller.allowance, wait_seconds=error.retry_after_seconds)
    return Problem(error.code, error.message, headers={"Retry-After": str(error.retry_after_seconds)})
