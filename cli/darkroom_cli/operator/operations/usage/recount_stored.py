"""Counts what tenants store anew, from their rows: for what was accepted before it was counted, and after events that
were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.usage import UsageCounts
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.ports import ImageRegistry

_TRIES = 5
"""An event may be counted between reading a sum and correcting it; not five times in a row."""


@dataclass(frozen=True, kw_only=True)
class RecountStoredPorts:
    """What a recount needs."""

    images: ImageRegistry
    usage: UsageCounts
    audit: Trail


@dataclass(kw_only=True)
class Recount:
    """What the rows store, by tenant, what is counted where that differs, and the rows that this version cannot
    read."""

    stored: Mapping[str, Stored]
    counted: Mapping[str, Stored]
    unreadable: list[UnreadableRow] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """The tenants whose sum is not what their rows store."""
        tenants = sorted(self.stored.keys() | self.counted.keys())
        return [
            tenant_id
            for tenant_id in tenants
            if self.stored.get(tenant_id, NOTHING) != self.counted.get(tenant_id, NOTHING)
        ]


def recount_stored(ports: RecountStoredPorts) -> Recount:
    """Reads every row and every sum. What is written or counted meanwhile may make a difference that is none. Raises
    Retryable."""
    stored: dict[str, Stored] = {}
    unreadable: list[UnreadableRow] = []
    for row in ports.images.everything():
        if isinstance(row, UnreadableRow):
            unreadable.append(row)
        else:
            stored[row.tenant_id] = stored.get(row.tenant_id, NOTHING) + stored_by(row)
    return Recount(stored=stored, counted=ports.usage.all_stored(), unreadable=unreadable)


def correct_stored(ports: RecountStoredPorts, recount: Recount) -> list[str]:
    """Corrects the sums that are wrong by the difference that was found; returns the tenants whose sums changed under
    every attempt. Raises Retryable."""
    left = []
    with ports.audit.action("recount", is_certain=False) as audited:
        for tenant_id in recount.wrong:
            audited.begin(tenant_id)
            difference = recount.stored.get(tenant_id, NOTHING) - recount.counted.get(tenant_id, NOTHING)
            if _add(ports, tenant_id, difference):
                audited.add(tenant_id, "tenants")
            else:
                left.append(tenant_id)
    return left


def _add(ports: RecountStoredPorts, tenant_id: str, difference: Stored) -> bool:
    for _ in range(_TRIES):
        before = ports.usage.stored(tenant_id)
        if ports.usage.correct(tenant_id, before, before + difference):
            return True
    return False
