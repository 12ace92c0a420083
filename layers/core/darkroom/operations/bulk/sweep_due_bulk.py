"""Looks at all bulk work that is due."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts, feed_backfill
from darkroom.operations.bulk.reconcile import ReconcilePorts, reconcile, reconciliation
from darkroom.operations.bulk.run_import import RunImportPorts, run_import
from darkroom.operations.bulk.run_schedule import RunSchedulePorts, plan_own, run_schedule
from darkroom.operations.bulk.settle_batch import SettleBatchPorts, settle_batch
from darkroom.ports.bulk import DueRow
from darkroom.ports.kernel import UnreadableRow

LIMIT = 1000
"""How many rows one sweep lists."""

POSTPONED_SECONDS = 600
"""How long a row is postponed that is unreadable or of an unknown kind, or which trips a bug."""


@dataclass(frozen=True, kw_only=True)
class SweepDueBulkPorts(SettleBatchPorts):
    """What a sweep needs; without `imports`, in a stack that fetches nothing, those that there are wait, and without
    `reconciling` nothing is compared."""

    imports: RunImportPorts | None = None
    feeding: FeedBackfillPorts
    scheduling: RunSchedulePorts
    reconciling: ReconcilePorts | None = None


@dataclass(kw_only=True)
class BulkSweep:
    """What one sweep did, by outcome; `unreadable` are the rows that were met, `errors` holds unexpected errors by
    the place of the row, and `complete` is False if time ran out. `differences` are those that the reconciliation has
    confirmed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    complete: bool = True
    differences: int = 0


def sweep_due_bulk(ports: SweepDueBulkPorts, *, out_of_time: Callable[[], bool]) -> BulkSweep:
    """Looks at what is due in turns, until done or `out_of_time`. What a table cannot serve now stays due; a row that
    is unreadable or trips a bug is looked at again later, and does not stop the others."""
    sweep = BulkSweep()
    plan_own(ports.scheduling)
    if ports.reconciling is not None:
        with bookkeeping("reconciliation not read"):  # guard: bulk-reconcile-stops-no-sweep
            sweep.differences = reconciliation(ports.reconciling).confirmed
    waiting = deque(ports.batches.due(ports.clock(), LIMIT))
    while waiting:
        if out_of_time():
            sweep.complete = False
            break
        due = waiting.popleft()
        outcome: str
        try:
            outcome = _look(ports, due, out_of_time, sweep.unreadable.append)
        except UnreadableRow as error:
            sweep.unreadable.append(error)
            outcome = "unreadable"
        except Retryable:
            outcome = "unreachable"
        except Exception as error:  # guard: bulk-look-isolated
            sweep.errors[due.place] = error
            outcome = "error"
        sweep.outcomes[outcome] += 1
        if outcome == "goes_on":
            waiting.append(due)
        if outcome in ("unreadable", "unknown", "error"):
            with bookkeeping("look at bulk work not postponed"):
                ports.batches.postpone(due, ports.clock() + POSTPONED_SECONDS * 1000)
    return sweep


def _look(
    ports: SweepDueBulkPorts,
    due: DueRow,
    out_of_time: Callable[[], bool],
    unreadable: Callable[[UnreadableRow], object],
) -> str:
    """Looks at the row by its kind; one that only a newer version knows is left to that."""
    if due.part == "batch":
        return settle_batch(ports, due.place, out_of_time=out_of_time, unreadable=unreadable)
    if due.part == "import" and ports.imports is not None:
        return run_import(ports.imports, due.place, out_of_time=out_of_time)
    if due.part == "backfill":
        return feed_backfill(ports.feeding, due.place, out_of_time=out_of_time, unreadable=unreadable)
    if due.part == "schedule":
        return run_schedule(ports.scheduling, due.place, out_of_time=out_of_time)
    if due.part == "reconciliation" and ports.reconciling is not None:
        return reconcile(ports.reconciling, out_of_time=out_of_time, unreadable=unreadable)
    return "unknown"
