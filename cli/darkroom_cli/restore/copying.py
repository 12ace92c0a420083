"""Copies the rows that a live table lacks back into it, several at a time. It may be stopped anywhere and run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import batched

from darkroom.ports.kernel import Clock
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.restore.decisions import Decision, RestoredItem, RestoreOutcome
from darkroom_cli.restore.tables import ROWS_AT_ONCE, Copy, LiveTable, Stream
from darkroom_cli.terminal.many import do_to_many

ROWS_PER_SECOND, AT_A_TIME = 500, 16
"""The pace: at most an eighth of what a table that nobody has used for days takes (4,000 writes a second)."""

MOST_GONE, MOST_SHARE_GONE = 10, 0.05
"""If more rows than that, and more than that share of those that came back, have no original, the originals may be lost
as well: no row is made a tombstone for that without the operator's word."""

HELD = 10_000
"""How many rows that are held back are named; all of them are counted."""

type Decide = Callable[[RestoredItem], Decision]
"""What becomes of an item that the live table lacks."""


@dataclass(kw_only=True)
class Copying:
    """What was found so far, and what became of it; `tombstones` are those of rows whose original is gone, and
    `erased_meanwhile` tenants that were erased at the same time."""

    counts: Counter[RestoreOutcome] = field(default_factory=Counter)
    held: dict[str, str] = field(default_factory=dict)
    tombstones: list[RestoredItem] = field(default_factory=list)
    erased_meanwhile: list[str] = field(default_factory=list)
    is_complete: bool = True

    @property
    def lacking(self) -> int:
        """How many rows the live table lacked and may have."""
        return self.counts.total() - self.counts[RestoreOutcome.THERE] - self.counts[RestoreOutcome.FORGOTTEN]

    @property
    def seems_lost(self) -> bool:
        """Whether so many originals are gone that the bucket may have lost them."""
        return self.counts[RestoreOutcome.GONE] > max(MOST_GONE, MOST_SHARE_GONE * self.lacking)


@dataclass(frozen=True, kw_only=True)
class CopyingPorts:
    """What copying needs; `audited` is the operator's action, None if nothing is to be written, and `on_read` is told
    how many writes of a stream were read."""

    source: Copy | Stream
    decide: Decide
    clock: Clock
    patience: TransientRetry
    audited: AuditedAction | None
    on_read: Callable[[int], None] = lambda writes: None

    @property
    def live(self) -> LiveTable:
        """The table into which rows are copied."""
        return self.source.live


def copy_rows(
    ports: CopyingPorts, *, originals_are_whole: bool, on_progress: Callable[[Copying], None] = lambda so_far: None
) -> Copying:
    """Puts every row that the live table lacks as `decide` says, and returns what became of each.

    Rows whose original is gone come last, after a second look, and only if they are few or the operator says that
    `originals_are_whole`. Raises Retryable if a store cannot answer for minutes: what was put stays, and a repetition
    continues from there.
    """
    run = Copying()

    def act(item: RestoredItem) -> Decision:
        return ports.patience(_copy, ports, item)

    def note(item: RestoredItem, decision: Decision) -> None:
        run.counts[decision.outcome] += 1
        if decision.outcome is RestoreOutcome.HELD and len(run.held) < HELD:
            run.held[ports.live.id_of(item)] = decision.reason
        if decision.outcome is RestoreOutcome.GONE and decision.item is not None:
            run.tombstones.append(decision.item)
        on_progress(run)

    def put_tombstone(tombstone: RestoredItem) -> bool:
        return ports.patience(_put, ports, tombstone, RestoreOutcome.GONE)

    _each(ports, _lacking(ports, run), act, note)
    if ports.audited is not None and (originals_are_whole or not run.seems_lost):  # guard: restore-lost-originals
        _each(ports, run.tombstones, put_tombstone, lambda _, __: on_progress(run))
    run.is_complete = not ports.patience.stop()
    return run


def _each[Result](
    ports: CopyingPorts,
    items: Iterable[RestoredItem],
    act: Callable[[RestoredItem], Result],
    note: Callable[[RestoredItem, Result], None],
) -> None:
    pace = RateLimiter(per_second=ROWS_PER_SECOND, clock=ports.clock, pause=ports.patience.pause)
    do_to_many(items, act, pace=pace, at_a_time=AT_A_TIME, stop=ports.patience.stop, on_outcome=note)


def _lacking(ports: CopyingPorts, run: Copying) -> Iterator[RestoredItem]:
    """The items that the live table lacks at this moment; the others are counted."""
    for some in batched(ports.source.items(ports.patience, ports.on_read), ROWS_AT_ONCE, strict=False):
        present = ports.patience(ports.live.present, some)
        run.counts[RestoreOutcome.THERE] += len(present)
        yield from (item for item in some if ports.live.id_of(item) not in present)


def _copy(ports: CopyingPorts, item: RestoredItem) -> Decision:
    decision = ports.decide(item)
    is_put = decision.item is not None and decision.outcome is not RestoreOutcome.GONE
    if is_put and decision.item is not None and not _put(ports, decision.item, decision.outcome):
        return Decision(outcome=RestoreOutcome.THERE)
    return decision


def _put(ports: CopyingPorts, item: RestoredItem, outcome: RestoreOutcome) -> bool:
    """Whether the live table has the item now; if nothing is to be written, whether it would have it."""
    if ports.audited is None:
        return True
    is_there = ports.live.put(dict(item))
    if is_there:
        ports.audited.add(ports.live.id_of(item), outcome.value)
    return is_there
