"""Looks at every batch that is due."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.bulk.settle_batch import SettleBatchPorts, settle_batch
from darkroom.ports.kernel import UnreadableRow

LIMIT = 1000
"""How many batches one sweep lists."""

POSTPONED_SECONDS = 600
"""How long a batch is postponed whose row is unreadable, or which trips a bug."""


@dataclass(kw_only=True)
class BatchesSweep:
    """What one sweep did, by outcome; `unreadable` are the rows that were met, `errors` holds unexpected errors by
    batch, and `complete` is False if time ran out."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    complete: bool = True


def sweep_due_batches(ports: SettleBatchPorts, *, out_of_time: Callable[[], bool]) -> BatchesSweep:
    """Looks at what is due in turns, until done or `out_of_time`. A batch that a table cannot serve now stays due; one
    that is unreadable or trips a bug is looked at again later, and does not stop the others."""
    sweep = BatchesSweep()
    waiting = deque(ports.batches.due(ports.clock(), LIMIT))
    while waiting:
        if out_of_time():
            sweep.complete = False
            break
        due = waiting.popleft()
        outcome: str
        try:
            outcome = settle_batch(ports, due.batch_id, out_of_time=out_of_time, unreadable=sweep.unreadable.append)
        except UnreadableRow as error:
            sweep.unreadable.append(error)
            outcome = "unreadable"
        except Retryable:
            outcome = "unreachable"
        except Exception as error:  # guard: bulk-look-isolated
            sweep.errors[due.batch_id] = error
            outcome = "error"
        sweep.outcomes[outcome] += 1
        if outcome == "goes_on":
            waiting.append(due)
        if outcome in ("unreadable", "error"):
            with bookkeeping("look at a batch not postponed"):
                ports.batches.postpone(due, ports.clock() + POSTPONED_SECONDS * 1000)
    return sweep
