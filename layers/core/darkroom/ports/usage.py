"""What counting usage needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from darkroom.ports.tenants import StoredSums

if TYPE_CHECKING:
    from darkroom.domain.kernel.stored import Stored
    from darkroom.domain.usage.usage import Count, Usage
    from darkroom.ports.kernel import UnreadableRow


class DayOfUsage(NamedTuple):
    """What a tenant used in a day in UTC, as in 2026-11-23."""

    tenant_id: str
    day: str
    usage: Usage


class UsageCounts(StoredSums, Protocol):
    """What tenants used, and what they store. Every method raises Retryable if the tables cannot answer."""

    def add(self, counts: Sequence[Count]) -> Sequence[Count]:
        """Adds each count unless its event was counted before; returns those that were added. They are a batch of
        `transactions_of`: if it raises, none or all have been added, and a repetition adds none twice."""

    def days(self, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        """The days from `since` to `until`, both included, of all tenants, in any order, read as the caller iterates;
        one that this version cannot read is named in its place. For operators."""

    def days_of(self, tenant_id: str, *, since: str, until: str) -> Iterator[DayOfUsage | UnreadableRow]:
        """The same of one tenant, the oldest first."""

    def all_stored(self) -> Mapping[str, Stored]:
        """The sums of all tenants that have one, by tenant: for operators."""

    def correct(self, tenant_id: str, before: Stored, after: Stored) -> bool:
        """Replaces the tenant's sum if it is still `before`; returns whether it was. A tenant without a sum has one of
        nothing."""

    def forget(self, tenant_id: str) -> int:
        """Removes everything that is kept of the tenant; returns how many items there were: for operators. Which
        events were counted is still known: none of them is counted again."""
