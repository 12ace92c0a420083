"""Removing dead letters for good: those that are of no use any more, and others only where the operator insists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.dead_letter import Verdict
from darkroom.operations.list_dead_letters import Case, Selection, work_through
from darkroom.operations.list_dead_letters import Ports as ListPorts
from darkroom.operations.replay_dead_letters import Counts


@dataclass(frozen=True, kw_only=True)
class Ports(ListPorts):
    """What dropping needs from outside: no more than looking at dead letters does."""


def is_droppable(case: Case, *, force: bool) -> bool:
    """Whether the case's dead letters may go. Without `force` only those that stand `settled`: the row has all that
    counts, and needs no dead letter to be found."""
    return force or case.verdict is Verdict.SETTLED


def drop_dead_letters(
    ports: Ports,
    queue: str,
    selection: Selection,
    *,
    force: bool,
    stop: Callable[[], bool],
    counts: Counts,
) -> bool:
    """Removes the dead letters of the cases that are meant and droppable, by the rows as they stand at that moment;
    returns whether the whole queue was seen. No row changes: a failed image can still be replayed by its id.

    Raises Retryable where AWS cannot answer: what is gone is gone, and a repetition goes on from there.
    """

    def wants(case: Case) -> bool:
        if not selection.covers(case, ports.clock()):
            return False
        if not is_droppable(case, force=force):
            counts.add(case.verdict.value)
            return False
        return True

    def act(case: Case) -> bool:
        counts.add("dropped")
        return True

    return work_through(ports, queue, act, wants=wants, before_each=lambda: None, stop=stop)
