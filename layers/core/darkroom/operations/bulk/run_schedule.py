"""Looks at one schedule: begins the run that is due, unless one goes on, and has its job done until it has ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping, report_failure
from darkroom.domain.bulk.schedules import (
    MAX_ATTEMPTS,
    OWN,
    Plan,
    RunOutcome,
    Schedule,
    add,
    begin,
    caught_up,
    claim,
    end,
    go_on,
    planned_anew,
    try_again,
)
from darkroom.domain.kernel.errors import Rejected
from darkroom.operations.bulk.settle_batch import Settled
from darkroom.ports.bulk import Schedules
from darkroom.ports.kernel import Clock, Fenced

LATER_SECONDS = 60
"""When a job is asked again that has to wait for something."""

_TRIES = 5
"""An operator may come between reading a row and writing what came of its run; not five in a row."""

type Job = Callable[[Schedule, Callable[[], bool]], Settled]
"""Does what is to be done in the schedule's run, or a part of it until it is out of time, and says whether it has ended
(`gone`, `ended`), goes on at once, or later. It may be asked again for the same `running_for`, whatever it answered,
and must then find done what it has done. Rejected says that it can never be done; anything else is tried again."""


@dataclass(frozen=True, kw_only=True)
class RunSchedulePorts:
    """What looking at schedules needs; `jobs` are what they may run, by name, and `own` is what the stack itself plans,
    of which the process has put `planned` into the table."""

    schedules: Schedules
    jobs: Mapping[str, Job]
    clock: Clock
    own: tuple[Plan, ...] = OWN
    planned: set[str] = field(default_factory=set)


def plan_own(ports: RunSchedulePorts) -> None:
    """Puts the stack's own schedules into the table, once per process: those that are missing, and those that another
    version planned otherwise. What fails is logged, and done by the next sweep."""
    for plan in ports.own:
        if plan.name in ports.planned:
            continue
        with bookkeeping("a schedule of the stack's own not planned", schedule=plan.name), suppress(Fenced):
            row = ports.schedules.create(add(plan, now=ports.clock(), is_own=True))
            if row.plan != plan:
                ports.schedules.change(row, planned_anew(row, plan, now=ports.clock()))
            ports.planned.add(plan.name)


def run_schedule(
    ports: RunSchedulePorts, schedule_id: str, *, out_of_time: Callable[[], bool] = lambda: False
) -> Settled:
    """Begins a run if its time has come, as its row says, and gives the job an attempt.

    The row has one run at a time, and each attempt has it until its lease ends; both are written before anything is
    done. So a tick that comes twice finds the row changed, and after a crash another attempt has the same run. Raises
    Retryable if the table cannot answer, and UnreadableRow.
    """
    row, now = ports.schedules.get(schedule_id), ports.clock()
    if row is None:
        return "gone"
    if row.due_at is None or row.due_at > now:  # guard: bulk-schedules-lease
        return "later"
    try:
        if row.running_for is None:
            ready = caught_up(row, now)
            if ready.due_at is None or ready.due_at > now:
                ports.schedules.change(row, ready)
                return "later"
            claimed = ports.schedules.change(row, claim(begin(ready, now=now), now=now))
        elif row.attempts >= MAX_ATTEMPTS:  # guard: bulk-schedules-attempts-bound
            error = row.error or "the function died in each attempt"
            ports.schedules.change(row, end(row, RunOutcome.FAILED, now=now, error=error))
            return "ended"
        else:
            claimed = ports.schedules.change(row, claim(row, now=now))
    except Fenced:
        return "later"  # another tick was faster, or an operator has changed it: it is due
    return _attempt(ports, claimed, out_of_time)


def _attempt(ports: RunSchedulePorts, claimed: Schedule, out_of_time: Callable[[], bool]) -> Settled:
    """Has the job done what it can, and writes what came of it."""
    job = ports.jobs.get(claimed.plan.job)
    try:
        if job is None:
            raise Rejected("unknown_job", f"This version of the stack has no job {claimed.plan.job}.")
        settled = job(claimed, out_of_time)
    except Rejected as error:
        report_failure("a scheduled job cannot be done", error, schedule=claimed.plan.name)
        why = error.message
        return _next(
            ports, _write(ports, claimed, lambda row: end(row, RunOutcome.FAILED, now=ports.clock(), error=why))
        )
    except Exception as error:  # guard: bulk-schedules-failure-retried
        report_failure("a scheduled job failed", error, schedule=claimed.plan.name)
        why = str(error) or type(error).__name__
        _write(ports, claimed, lambda row: try_again(row, why, now=ports.clock()))
        return "later"
    if settled in ("gone", "ended"):
        return _next(ports, _write(ports, claimed, lambda row: end(row, RunOutcome.DONE, now=ports.clock())))
    pause = 0 if settled == "goes_on" else LATER_SECONDS * 1000
    return "later" if _write(ports, claimed, lambda row: go_on(row, at=ports.clock() + pause)) is None else settled


def _next(ports: RunSchedulePorts, ended: Schedule | None) -> Settled:
    """Whether another run waits for this one's end: a schedule of every minute would never catch up by one a tick."""
    if ended is None:
        return "later"
    return "goes_on" if ended.due_at is not None and ended.due_at <= ports.clock() else "ended"


def _write(ports: RunSchedulePorts, claimed: Schedule, change: Callable[[Schedule], Schedule]) -> Schedule | None:
    """Writes what came of an attempt if the row is still this attempt's, None if not; an operator may have paused it
    meanwhile."""
    row: Schedule | None = claimed
    for _ in range(_TRIES):
        # guard: bulk-schedules-own-attempt
        if row is None or (row.running_for, row.due_at) != (claimed.running_for, claimed.due_at):
            return None
        try:
            return ports.schedules.change(row, change(row))
        except Fenced:
            row = ports.schedules.get(claimed.schedule_id)
    return None  # the next attempt finds the run where it is
