"""Removes dead letters permanently: those that are no longer needed, and others only if the operator insists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.dead_letters.dead_letter import Verdict
from darkroom.operations.dead_letters.cases import Case, CasePorts
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import DeadLetterSelection
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import Counts
from darkroom_cli.operator.operations.dead_letters.work_through import work_through
from darkroom_cli.operator.operations.kernel.audit_trail import Trail


@dataclass(frozen=True, kw_only=True)
class DropDeadLettersPorts(CasePorts):
    """What dropping needs besides the ports of reading dead letters."""

    audit: Trail


def is_droppable(case: Case, *, force: bool) -> bool:
    """Whether the case's dead letters may go. Without `force` only those with the verdict `settled`: the row has all
    that counts, and needs no dead letter to be found."""
    return force or case.verdict is Verdict.SETTLED


def drop_dead_letters(
    ports: DropDeadLettersPorts,
    queue: str,
    selection: DeadLetterSelection,
    *,
    force: bool,
    stop: Callable[[], bool],
    counts: Counts,
) -> bool:
    """Removes the dead letters of the selected, droppable cases, by the rows at that moment; returns whether the whole
    queue was seen. No row changes: a failed image can still be replayed by its id.

    Raises Retryable if AWS cannot answer: what was removed stays removed, and a repetition continues from there.
    """

    def wants(case: Case) -> bool:
        if not selection.covers(case, ports.clock()):
            return False
        if not is_droppable(case, force=force):
            counts.add(case.verdict.value)
            return False
        return True

    def act(case: Case) -> bool:
        names = [dead_letter.message_id for dead_letter in case.dead_letters]
        audited.begin(*names)  # guard: audit-drop-announced
        counts.add("dropped")
        for name in names:
            audited.add(name, "dropped")
        return True

    with ports.audit.action("drop", is_certain=False, queue=queue, force=force, **selection.words) as audited:
        is_whole = work_through(ports, queue, act, wants=wants, before_each=lambda: None, stop=stop)
        if stop():
            audited.interrupt()
    return is_whole
