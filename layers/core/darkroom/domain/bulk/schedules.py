"""A schedule's row: a job that recurs, when it runs next, and how its latest run has ended."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, takewhile

from darkroom.domain.bulk.cron import latest_times, next_time, require_times
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds

PREFIX = "sc_"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")

MAX_JITTER_SECONDS = 3600

CATCH_UP_RUNS = 24
"""How many missed runs are made up for: a day of an hourly schedule."""

GRACE_SECONDS = 600
"""How much later than its jitter a run may begin that is not made up for: the tick comes every minute, and may fail a
few times."""

LEASE_SECONDS = 60
"""How long an attempt has before another may begin: longer than a sweep's function lives."""

MAX_ATTEMPTS = 10
"""How many attempts a run has, which take five hours: an outage may last for some of them."""

MAX_ERROR_CHARACTERS = 500


class Missed(StrEnum):
    """What becomes of runs whose time has passed while nobody could begin them."""

    CATCH_UP = "catch_up"
    SKIP = "skip"


class RunOutcome(StrEnum):
    """How a run has ended."""

    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A job that operators may schedule: what it does, and what its target is called, None if it has none."""

    does: str
    target: str | None


JOBS: Mapping[str, JobKind] = {
    "announce": JobKind(does="sends the event schedule.due to a tenant's webhooks", target="tenant"),
    "pause_backfill": JobKind(does="has a backfill begin nothing more", target="backfill"),
    "resume_backfill": JobKind(does="lets a paused backfill go on", target="backfill"),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What recurs, and when: `job` with its `target`, at the times of `cron` in the time zone `timezone`, each up to
    `jitter_seconds` later."""

    name: str
    cron: str
    timezone: str = "UTC"
    job: str
    target: str | None = None
    missed: Missed = Missed.SKIP
    jitter_seconds: int = 0


OWN: tuple[Plan, ...] = (
    # Hardly anywhere does live traffic peak then, and others' jobs begin on the hour.
    Plan(name="reconcile", cron="17 3 * * *", job="reconcile", missed=Missed.CATCH_UP, jitter_seconds=1800),
)
"""The stack's own schedules."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """One row: a plan, and how far it is.

    `planned_for` is the time of the next run. `running_for` is that of the run that has begun and not ended, since
    `started_at`; each attempt of it has the row until `due_at`. `completed_for` is that of the latest run that has
    ended, and `skipped_for` of the latest that was not made. A paused schedule begins no further run.
    """

    schedule_id: str
    plan: Plan
    is_own: bool = False
    version: int = 1
    created_at: Milliseconds
    planned_for: Milliseconds
    running_for: Milliseconds | None = None
    started_at: Milliseconds | None = None
    attempts: int = 0
    completed_for: Milliseconds | None = None
    completed_at: Milliseconds | None = None
    outcome: RunOutcome | None = None
    error: str | None = None
    skipped_for: Milliseconds | None = None
    paused_at: Milliseconds | None = None
    due_at: Milliseconds | None = None


def schedule_id_of(name: str) -> str:
    """The id of the schedule of that name."""
    return PREFIX + name


def is_schedule_id(text: str) -> bool:
    """Whether `text` is a schedule's id, and no other's."""
    return text.startswith(PREFIX)


def due_of(plan: Plan, planned_for: Milliseconds) -> Milliseconds:
    """When the run of that time begins: the same whoever asks, so that schedules of one time begin apart."""
    digest = hashlib.sha256(f"{plan.name}\0{planned_for}".encode()).digest()
    return planned_for + int.from_bytes(digest[:8]) % (plan.jitter_seconds * 1000 + 1)  # guard: bulk-schedules-jitter


def add(plan: Plan, *, now: Milliseconds, is_own: bool = False) -> Schedule:
    """The row of a new schedule. Raises Rejected (`bad_name`, `unknown_job`, `bad_target`, `bad_jitter`, `bad_cron`,
    `unknown_timezone`)."""
    if _NAME.fullmatch(plan.name) is None:
        raise Rejected("bad_name", "A schedule's name is up to 40 small letters, digits and hyphens, a letter first.")
    kind = JOBS.get(plan.job)
    if kind is None and not is_own:
        raise Rejected("unknown_job", f"A job is one of {', '.join(JOBS)}.")
    if kind is not None and (kind.target is None) != (plan.target is None):
        raise Rejected("bad_target", f"The job {plan.job} needs {f'a {kind.target}' if kind.target else 'no target'}.")
    if not 0 <= plan.jitter_seconds <= MAX_JITTER_SECONDS:
        raise Rejected("bad_jitter", f"A jitter is from 0 to {MAX_JITTER_SECONDS} seconds.")
    first = require_times(plan.cron, plan.timezone, now)
    return Schedule(
        schedule_id=schedule_id_of(plan.name),
        plan=plan,
        is_own=is_own,
        created_at=now,
        planned_for=first,
        due_at=due_of(plan, first),
    )


def planned_anew(schedule: Schedule, plan: Plan, *, now: Milliseconds) -> Schedule:
    """The schedule with what a later version of the stack plans in its place."""
    return _rest(replace(schedule, plan=plan, is_own=True, planned_for=require_times(plan.cron, plan.timezone, now)))


def pause(schedule: Schedule, *, now: Milliseconds) -> Schedule:
    """The schedule that begins nothing more; what runs ends. A paused one stays as it is."""
    if schedule.paused_at is not None:
        return schedule
    return _rest(replace(schedule, paused_at=now))


def resume(schedule: Schedule, *, now: Milliseconds) -> Schedule:
    """The schedule that goes on: what it missed is caught up or skipped as after an outage. One that is not paused
    stays as it is."""
    if schedule.paused_at is None:
        return schedule
    return _rest(replace(schedule, paused_at=None))


def run_now(schedule: Schedule, *, now: Milliseconds) -> Schedule:
    """The schedule with a run of its own beside the planned ones, also if it is paused; it waits for the tick. Raises
    Rejected (`runs`)."""
    if schedule.running_for is not None:  # guard: bulk-schedules-run-alone
        raise Rejected("runs", "It runs already: wait for the end of that run.")
    # Whole seconds, as planned times are: no run has the time of another.
    at = max(now // 1000 * 1000, (schedule.completed_for or 0) + 1000)
    return replace(schedule, running_for=at, started_at=now, attempts=0, due_at=now)


def caught_up(schedule: Schedule, now: Milliseconds) -> Schedule:
    """The schedule without the runs that were missed and are not made up for: all but the latest CATCH_UP_RUNS, or
    those that are more than GRACE_SECONDS late."""
    if schedule.planned_for > now:
        return schedule
    kept = list(_kept(schedule, now))
    planned_for = kept[-1] if kept else next_time(schedule.plan.cron, schedule.plan.timezone, after=now)
    skipped_for = schedule.planned_for if planned_for != schedule.planned_for else schedule.skipped_for
    return _rest(replace(schedule, planned_for=planned_for, skipped_for=skipped_for))


def _kept(schedule: Schedule, now: Milliseconds) -> Iterator[Milliseconds]:
    """The times that have come and are run, the latest first."""
    plan = schedule.plan
    times = latest_times(plan.cron, plan.timezone, until=now)
    come = takewhile(lambda time: time >= schedule.planned_for, times)
    if plan.missed is Missed.CATCH_UP:
        return islice(come, CATCH_UP_RUNS)  # guard: bulk-schedules-catch-up-bound
    oldest = now - (plan.jitter_seconds + GRACE_SECONDS) * 1000
    return takewhile(lambda time: time >= oldest, come)  # guard: bulk-schedules-skip-missed


def begin(schedule: Schedule, *, now: Milliseconds) -> Schedule:
    """The schedule whose next run has begun; the one after it is planned."""
    plan = schedule.plan
    return replace(
        schedule,
        running_for=schedule.planned_for,
        started_at=now,
        planned_for=next_time(plan.cron, plan.timezone, after=schedule.planned_for),
        attempts=0,
    )


def claim(schedule: Schedule, *, now: Milliseconds) -> Schedule:
    """The schedule with another attempt of its run."""
    return replace(schedule, attempts=schedule.attempts + 1, due_at=now + LEASE_SECONDS * 1000)


def go_on(schedule: Schedule, *, at: Milliseconds) -> Schedule:
    """The schedule whose run has got on, and goes on at that time with all of its attempts."""
    return replace(schedule, attempts=0, error=None, due_at=at)


def try_again(schedule: Schedule, error: str, *, now: Milliseconds) -> Schedule:
    """The schedule whose attempt has failed: later each time, an hour at most."""
    pause_seconds = min(60 << schedule.attempts - 1, 3600)
    return replace(schedule, error=error[:MAX_ERROR_CHARACTERS], due_at=now + pause_seconds * 1000)


def end(schedule: Schedule, outcome: RunOutcome, *, now: Milliseconds, error: str | None = None) -> Schedule:
    """The schedule whose run has ended."""
    ended = replace(
        schedule,
        running_for=None,
        started_at=None,
        attempts=0,
        completed_for=schedule.running_for,
        completed_at=now,
        outcome=outcome,
        error=None if error is None else error[:MAX_ERROR_CHARACTERS],
    )
    return _rest(ended)


def _rest(schedule: Schedule) -> Schedule:
    """The schedule as it waits for its next run, unless one goes on."""
    if schedule.running_for is not None:
        return schedule
    is_paused = schedule.paused_at is not None  # guard: bulk-schedules-paused-rests
    return replace(schedule, due_at=None if is_paused else due_of(schedule.plan, schedule.planned_for))
