"""Removing dead letters for good: those that are of no use any more, and others only where the operator insists."""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.dead_letter import Standing
from darkroom.operations.list_dead_letters import Case, Selection, work_through
from darkroom.operations.replay_dead_letters import Tally
from darkroom.ports import Clock, DeadLetters, Images


def is_droppable(case: Case, *, force: bool) -> bool:
    """Whether the case's letters may go. Without `force` only those that stand `settled`: the row has all that counts,
    and needs no letter to be found."""
    return force or case.standing is Standing.SETTLED


def drop_dead_letters(
    queue: str,
    selection: Selection,
    *,
    force: bool,
    dead_letters: DeadLetters,
    images: Images,
    clock: Clock,
    stop: Callable[[], bool],
    tally: Tally,
) -> bool:
    """Removes the letters of the cases that are meant and droppable, by the rows as they stand at that moment; returns
    whether the whole queue was seen. No row changes: a failed image can still be replayed by its id.

    Raises Retryable where AWS cannot answer: what is gone is gone, and a repetition goes on from there.
    """

    def wants(case: Case) -> bool:
        if not selection.covers(case, clock()):
            return False
        if not is_droppable(case, force=force):
            tally.add(case.standing.value)
            return False
        return True

    def act(case: Case) -> bool:
        tally.add("dropped")
        return True

    return work_through(
        queue,
        act,
        wants=wants,
        before_each=lambda: None,
        stop=stop,
        dead_letters=dead_letters,
        images=images,
        clock=clock,
    )
