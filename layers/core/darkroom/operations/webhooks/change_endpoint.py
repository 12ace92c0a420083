"""Changes an endpoint's row by a decision that is made again if another write comes first."""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.endpoint import Endpoint, reach, wake
from darkroom.operations.webhooks.read_host import read_host
from darkroom.ports.kernel import Clock, Fenced
from darkroom.ports.webhooks import Endpoints

TRIES = 8
"""How often a decision is made. Four deliveries at most change a row at a time, and those who look at it; of more that
come from runways, most find that nothing is left to change."""


def change_endpoint(
    endpoints: Endpoints, endpoint: Endpoint, decide: Callable[[Endpoint], Endpoint]
) -> Endpoint | None:
    """The row after `decide` has decided on its current version, first on `endpoint`; None if the endpoint is gone. A
    decision that changes nothing is not written. Raises Retryable."""
    current: Endpoint | None = endpoint
    for _ in range(TRIES):
        if current is None:
            return None
        after = decide(current)
        if after == current:
            return current
        try:
            return endpoints.change(current, after)
        except Fenced as error:
            current = error.current
    raise Retryable("the endpoint's row changes too often")


def end_rest_of_host(endpoints: Endpoints, endpoint: Endpoint, clock: Clock) -> None:
    """Lets an endpoint that is to be tried at once try its host, with all others that rest for it. Raises Retryable."""
    for row in read_host(endpoints, endpoint.tenant_id, endpoint.endpoint_id)[1:]:
        if row.unreached:  # guard: webhook-enable-ends-host-rest
            change_endpoint(endpoints, row, lambda current: reach(current, now=clock()))


def watch(endpoints: Endpoints, endpoint: Endpoint, at: Milliseconds, clock: Clock) -> Endpoint | None:
    """Makes sure that the sweeper looks at the endpoint at `at` or earlier; returns its row, None if it is gone. Raises
    Retryable."""
    return change_endpoint(endpoints, endpoint, lambda row: wake(row, at, now=clock()))
