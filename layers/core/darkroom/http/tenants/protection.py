"""Protects a route from overload, cheapest check first: health, rate limit, load shedding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from darkroom.domain.kernel.errors import TurnedAway
from darkroom.domain.kernel.tenants import Allowance, Caller
from darkroom.domain.tenants.rate_limits import Policy
from darkroom.domain.tenants.token_bucket import seconds_to_next, tokens_left
from darkroom.http.kernel.callers import caller_of
from darkroom.http.kernel.problems import Problem
from darkroom.http.kernel.router import Next, Response, Router
from darkroom.http.tenants.rate_limit import limit_field, policy_field
from darkroom.operations.tenants.take_token import TakeTokenPorts, take_token
from darkroom.telemetry import logger


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a request of one route costs: so many tokens of the policy's bucket."""

    policy: Policy
    cost: Callable[[Router], int] = lambda app: 1

    def of(self, app: Router, caller: Caller) -> Charge | None:
        """What this request costs its caller; None if it has no allowance."""
        if caller.allowance is None:
            return None
        # guard: allowances-cost-burst-bound, allowances-cost-of-reads
        cost = min(self.cost(app), caller.allowance.burst)
        return Charge(policy=self.policy, allowance=caller.allowance, cost=cost)


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one request costs: so many tokens of a bucket with that allowance, at most a full one."""

    policy: Policy
    allowance: Allowance
    cost: int


REQUEST = Price(policy=Policy.TENANT)
"""The price of a request that uploads, changes or deletes."""


def protected(
    rate_limit: TakeTokenPorts, *, price: Price = REQUEST, require_healthy: Callable[[], None] | None = None
) -> Callable[[Router, Next], Response]:
    """A middleware for one route.

    Every answer tells the client its tenant's allowance. While a store is known not to answer, `require_healthy` raises
    Retryable, and the refusal costs no token. After that check the request costs what `price` says. The operation
    decides whether its lane has room (TurnedAway), because a request that repeats an earlier one passes.
    """

    def protect(app: Router, next_middleware: Next) -> Response:
        caller = caller_of(app)
        charge = price.of(app, caller)
        if charge is not None:
            app.answer_headers["RateLimit-Policy"] = policy_field(charge.policy, charge.allowance, cost=charge.cost)
        if require_healthy is not None:  # guard: allowances-outage-uncharged
            require_healthy()
        try:
            if charge is not None:
                _enforce(app, caller, rate_limit, charge)  # guard: allowances-request-charged
            return next_middleware(app)
        except TurnedAway as error:
            raise _refusal(app, caller, error, charge) from error

    return protect


def _enforce(app: Router, caller: Caller, ports: TakeTokenPorts, charge: Charge) -> None:
    """Takes the tokens for the request and tells the client what is left. Raises TurnedAway (`too_many_requests`) if
    there are too few; if the tenant's bucket does not answer, the request is served."""
    taken, now = take_token(ports, caller, charge.policy, charge.cost), ports.clock() * 1000
    allowance = charge.allowance
    if taken is None:
        with single_metric("AllowancesUnknown", MetricUnit.Count, 1, default_dimensions={"service": logger.service}):
            pass
        return
    wait_seconds = seconds_to_next(taken.tat, allowance, now, 1 if taken.is_taken else charge.cost)
    left = tokens_left(taken.tat, allowance, now) if taken.is_taken else 0
    app.answer_headers["RateLimit"] = limit_field(charge.policy, left, allowance, wait_seconds=wait_seconds)
    if not taken.is_taken:
        kind = "requests" if charge.policy is Policy.TENANT else "reads"
        counts = "" if charge.cost == 1 else f"This one counts as {charge.cost}. "
        raise TurnedAway(
            "too_many_requests",
            f"This tenant may send {allowance.requests_per_second} {kind} per second, and {allowance.burst} at once. "
            f"{counts}Send the same request again after {max(1, wait_seconds)} seconds.",
            retry_after_seconds=max(1, wait_seconds),
        )


def _refusal(app: Router, caller: Caller, error: TurnedAway, charge: Charge | None) -> Problem:
    """Returns the problem for a request that was turned away, and counts it."""
    logger.info("turned away", extra={"reason": error.code, "retry_after_seconds": error.retry_after_seconds})
    dimensions = {"service": logger.service, "reason": error.code, "tier": caller.tier.value}
    with single_metric("RequestsTurnedAway", MetricUnit.Count, 1, default_dimensions=dimensions):
        pass
    if error.code == "overloaded":
        name = "PayingTenantsShed" if caller.tier.pays else "FreeTenantsShed"  # guard: shedding-alarm-by-tier
        with single_metric(name, MetricUnit.Count, 1, default_dimensions={"service": logger.service}):
            pass
    if "RateLimit" in app.answer_headers and charge is not None:
        # Whatever is left of the allowance, none of it helps before then.
        wait_seconds = error.retry_after_seconds
        app.answer_headers["RateLimit"] = limit_field(charge.policy, 0, charge.allowance, wait_seconds=wait_seconds)
    return Problem(error.code, error.message, headers={"Retry-After": str(error.retry_after_seconds)})
