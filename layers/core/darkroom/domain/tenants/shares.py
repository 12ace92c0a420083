"""How much of a lane's work each of its tenants takes, and who takes so much that others may feel it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

WINDOW_MINUTES = 15
"""Over how many minutes the shares are taken."""

NOISY_OF_CAPACITY, NOISY_TIMES_MEDIAN = 0.2, 5.0
"""A tenant is noisy with so much of what all of a lane's workers can do, if that is also so many times what the median
of the lane's other tenants takes: who is alone there, or one of a few alike, disturbs nobody."""


@dataclass(frozen=True, kw_only=True)
class TenantShare:
    """The work of a tenant's images in a lane: how long they kept its workers busy, which part that is of the lane's
    work (`of_work`) and of what its workers can do (`of_capacity`), and how many times what the median of its other
    tenants took (None: it has none)."""

    tenant_id: str
    busy_milliseconds: int
    of_work: float
    of_capacity: float
    times_median: float | None

    @property
    def is_noisy(self) -> bool:
        """Whether others may feel it."""
        return (
            self.of_capacity >= NOISY_OF_CAPACITY  # guard: noisy-part-of-capacity
            and self.times_median is not None
            and self.times_median >= NOISY_TIMES_MEDIAN  # guard: noisy-beside-the-median
        )


def ranking(busy_milliseconds: Mapping[str, int], workers: int) -> tuple[TenantShare, ...]:
    """The shares of a lane with so many workers in the window, the largest first, of tenants that took any."""
    took = {tenant_id: busy for tenant_id, busy in busy_milliseconds.items() if busy > 0}
    total, capacity = sum(took.values()), workers * WINDOW_MINUTES * 60_000

    def share(tenant_id: str, busy: int) -> TenantShare:
        others = [other for name, other in took.items() if name != tenant_id]
        return TenantShare(
            tenant_id=tenant_id,
            busy_milliseconds=busy,
            of_work=busy / total,
            of_capacity=busy / capacity,
            times_median=busy / median(others) if others else None,
        )

    return tuple(share(*each) for each in sorted(took.items(), key=lambda item: (-item[1], item[0])))
