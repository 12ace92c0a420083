"""Adds, changes or removes a schedule: its row says so, and the sweep of bulk work does the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from darkroom.domain.bulk.schedules import Plan, Schedule, add, pause, resume, run_now, schedule_id_of
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.ports.bulk import Schedules
from darkroom.ports.kernel import Clock, Fenced
from darkroom_cli.operator.operations.kernel.audit_trail import Trail

type Decision = Literal["pause", "resume", "run", "remove"]

_DECIDED = {"pause": pause, "resume": resume, "run": run_now}

_TRIES = 5
"""A tick may come between reading the row and writing it; not five in a row."""


@dataclass(frozen=True, kw_only=True)
class DecideSchedulePorts:
    """What deciding on a schedule needs."""

    schedules: Schedules
    clock: Clock
    audit: Trail


def add_schedule(ports: DecideSchedulePorts, plan: Plan) -> Schedule:
    """The new schedule. Raises Rejected as `add` does, and for a name that is in use (`exists`); Retryable if the table
    cannot answer: perhaps it was added, and the list says so."""
    row = add(plan, now=ports.clock())
    with ports.audit.action("add_schedule", row.schedule_id, job=plan.job):
        written = ports.schedules.create(row)
    if written != row:
        raise Rejected("exists", f"There is a schedule {plan.name} already: remove it first.")
    return written


def decide_schedule(ports: DecideSchedulePorts, name: str, decision: Decision) -> Schedule | None:
    """The schedule as it is then, or was before it was removed; None if there is none. One that is so stays as it is.
    Raises Rejected (`runs`, `own`), Retryable if the table cannot answer, and UnreadableRow."""
    schedule_id = schedule_id_of(name)
    with ports.audit.action(f"{decision}_schedule", is_certain=False) as audited:
        for _ in range(_TRIES):
            before = ports.schedules.get(schedule_id)
            if before is None:
                return None
            after = _removable(before) if decision == "remove" else _DECIDED[decision](before, now=ports.clock())
            if after == before and decision != "remove":
                return before
            audited.begin(schedule_id)  # guard: audit-schedule-announced
            try:
                if decision != "remove":
                    return ports.schedules.change(before, after)
                ports.schedules.remove(before)
            except Fenced:
                continue
            else:
                return before
    raise Retryable("the schedule changed under every attempt to change it")


def _removable(schedule: Schedule) -> Schedule:
    if schedule.is_own:
        raise Rejected("own", "It is the stack's own, and would be there again: pause it.")
    if schedule.running_for is not None:
        raise Rejected("runs", "It runs: wait for the end of that run.")
    return schedule
