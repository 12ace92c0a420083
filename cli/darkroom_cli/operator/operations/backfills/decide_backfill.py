"""Starts a backfill, or has one pause, go on or end: its row says so, and the sweep of bulk work does the rest."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.bulk.backfills import Backfill, BackfillState, Selection, backfill_id_from_bits, decided, start
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.bulk import Backfills
from darkroom.ports.kernel import Clock, Fenced, Randomness
from darkroom_cli.operator.operations.kernel.audit_trail import Trail

_TRIES = 5
"""A look may come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class DecideBackfillPorts:
    """What deciding on a backfill needs."""

    backfills: Backfills
    clock: Clock
    randomness: Randomness
    audit: Trail


def start_backfill(ports: DecideBackfillPorts, selection: Selection, *, rate: int | None) -> Backfill:
    """The new backfill. Raises Retryable if the table cannot answer: perhaps it was started, and the list says so."""
    backfill_id = backfill_id_from_bits(ports.randomness(16))
    with ports.audit.action("start_backfill", backfill_id, preset=f"{selection.preset}@{selection.version}"):
        return ports.backfills.create(start(backfill_id, selection, rate=rate, now=ports.clock()))


def decide_backfill(ports: DecideBackfillPorts, backfill_id: str, state: BackfillState) -> Backfill | None:
    """The backfill as it is then, None if there is none; one that has that state, or a final one, stays as it is.
    Raises Retryable if the table cannot answer, and UnreadableRow."""
    with ports.audit.action("decide_backfill", is_certain=False, state=state.value) as audited:
        for _ in range(_TRIES):
            before = ports.backfills.get(backfill_id)
            if before is None or (after := decided(before, state, now=ports.clock())) == before:
                return before
            audited.begin(backfill_id)  # guard: audit-backfill-announced
            try:
                return ports.backfills.change(before, after)
            except Fenced:
                continue
    raise Retryable("the backfill changed under every attempt to change it")
