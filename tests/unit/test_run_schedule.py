"""Schedules: each planned time is run once, whatever the clock, the tick or the process does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, get_args
from unittest.mock import patch

import pytest

from darkroom.aws.bulk.schedules_table import SCHEDULES
from darkroom.domain.bulk.backfills import BackfillState, Selection, start
from darkroom.domain.bulk.cron import latest_times, next_time
from darkroom.domain.bulk.schedules import (
    CATCH_UP_RUNS,
    GRACE_SECONDS,
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    Missed,
    Plan,
    RunOutcome,
    Schedule,
    add,
    due_of,
    pause,
    resume,
    run_now,
)
from darkroom.domain.events.event import EventType, PublishedEvent
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.instants import Milliseconds, from_rfc3339, rfc3339
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.operations.bulk.jobs import jobs_of
from darkroom.operations.bulk.run_schedule import RunSchedulePorts, plan_own, run_schedule
from darkroom.ports.kernel import Fenced
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.support.fakes.batch_rows import FakeSchedules
from tests.support.fakes.batches import BatchesWorld
from tests.support.faults import Call, Faults, Mode, ProcessDied

MINUTE, HOUR = 60_000, 3_600_000
BERLIN = "Europe/Berlin"
MAPPING = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionBatchesTable"]


def at(text: str) -> Milliseconds:
    return from_rfc3339(text)


@dataclass
class StreamedSchedules(FakeSchedules):
    """The schedules, with their writes as the stream hands them over."""

    written: list[tuple[Schedule | None, Schedule]] = field(default_factory=list)

    def change(self, before: Schedule, after: Schedule) -> Schedule:
        current = self.rows.get(before.schedule_id)
        row = super().change(before, after)
        if row != current:
            self.written.append((current, row))
        return row

    @property
    def events(self) -> list[PublishedEvent]:
        """What webhooks hear."""
        return [event for pair in self.written if (event := event_of(*pair)) is not None]


@dataclass
class SchedulesWorld(BatchesWorld):
    """A world of one schedule, whose runs are noted."""

    schedules: Any = field(default_factory=StreamedSchedules)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.runs: list[str] = []
        self.answers: list[Any] = []
        self.jobs["announce"] = self._run
        self.now = at("2026-11-21T09:00:00Z")

    def _run(self, schedule: Schedule, _: Callable[[], bool]) -> Any:
        self.runs.append(str(rfc3339(schedule.running_for))[:16])
        answer = self.answers.pop(0) if self.answers else "ended"
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def add(self, cron: str = "0 * * * *", **plan: Any) -> Schedule:  # type: ignore[override]
        stated: dict[str, Any] = {"name": "it", "job": "announce", "target": "acme", **plan}
        row: Schedule = self.schedules.create(add(Plan(cron=cron, **stated), now=self.now))
        return row

    def tick(self) -> str:
        return run_schedule(self.ports(RunSchedulePorts), "sc_it")

    def sweep_for(self, minutes: int) -> None:
        for _ in range(minutes):
            self.now += MINUTE
            self.sweep_bulk()

    @property
    def schedule(self) -> Schedule:
        row: Schedule = self.schedules.rows["sc_it"]
        return row

    def change(self, decide: Callable[..., Schedule]) -> None:
        self.schedules.change(self.schedule, decide(self.schedule, now=self.now))


@pytest.fixture
def world() -> SchedulesWorld:
    return SchedulesWorld()


def test_each_planned_time_is_run_once(world: SchedulesWorld) -> None:
    world.add("*/15 * * * *")
    world.sweep_for(61)
    assert [run[-5:] for run in world.runs] == ["09:15", "09:30", "09:45", "10:00"]
    row = world.schedule
    assert (row.completed_for, row.outcome, row.running_for) == (at("2026-11-21T10:00:00Z"), RunOutcome.DONE, None)
    assert row.due_at == row.planned_for == at("2026-11-21T10:15:00Z")


@pytest.mark.guards("bulk-schedules-second-hour", case="put back, added in the second hour")
@pytest.mark.parametrize(
    ("cron", "begins", "runs"),
    [
        ("30 2 * * *", "2026-03-28T12:00Z", ["29T01:00", "30T00:30"]),
        ("30 2 * * *", "2026-10-24T12:00Z", ["25T00:30", "26T01:30"]),
        ("30 2 * * *", "2026-10-25T01:15Z", ["26T01:30"]),
        ("0 * * * *", "2026-10-24T22:30Z", ["24T23:00", "25T00:00", "25T01:00", "25T02:00"]),
        ("0 * * * *", "2026-03-28T23:30Z", ["29T00:00", "29T01:00", "29T02:00"]),
    ],
    ids=["put forward", "put back", "put back, added in the second hour", "hourly, put back", "hourly, put forward"],
)
def test_on_the_day_of_the_clock_change_each_time_is_run_once(
    world: SchedulesWorld, cron: str, begins: str, runs: list[str]
) -> None:
    world.now = at(begins)
    world.add(cron, timezone=BERLIN)
    for _ in range(600):
        if len(world.runs) < len(runs):
            world.now += 5 * MINUTE
            world.sweep_bulk()
    assert [run[-8:] for run in world.runs] == runs


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "UTC"])
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 * * * *", "0 1-3 * * *", "15,45 * * * *", "0 2 1 * *"])
def test_backwards_and_forwards_the_times_are_the_same(zone: str, cron: str) -> None:
    for begins in ("2026-03-07T00:00Z", "2026-03-28T00:00Z", "2026-04-04T00:00Z", "2026-10-24T00:00Z"):
        first, last = at(begins), at(begins) + 37 * HOUR
        forwards, time = list[Milliseconds](), first
        while (time := next_time(cron, zone, after=time)) <= last:
            forwards.append(time)
        for until in (last, first + 24 * HOUR + 15 * MINUTE, first + 25 * HOUR + 15 * MINUTE):
            backwards = list(takewhile(first.__lt__, latest_times(cron, zone, until=until)))
            assert backwards[::-1] == [each for each in forwards if each <= until]


@pytest.mark.guards("bulk-schedules-skip-missed")
@pytest.mark.parametrize(
    ("missed", "runs"),
    [(Missed.SKIP, ["15:00"]), (Missed.CATCH_UP, ["10:00", "11:00", "12:00", "13:00", "14:00", "15:00"])],
)
def test_an_outage_is_caught_up_or_skipped(world: SchedulesWorld, missed: Missed, runs: list[str]) -> None:
    world.add(missed=missed)
    world.now = at("2026-11-21T15:09:00Z")
    world.sweep_for(1)
    assert [run[-5:] for run in world.runs] == runs
    assert (world.schedule.skipped_for is None) == (missed is Missed.CATCH_UP)
    world.sweep_for(40)
    assert len(world.runs) == len(runs), "nothing is run again"


@pytest.mark.guards("bulk-schedules-catch-up-bound")
def test_what_is_caught_up_is_bounded_and_the_latest(world: SchedulesWorld) -> None:
    world.add("* * * * *", missed=Missed.CATCH_UP)
    world.now += HOUR
    world.sweep_for(1)
    assert len(world.runs) == CATCH_UP_RUNS and world.runs[-1] == str(rfc3339(world.now))[:16]
    world.sweep_for(1)
    assert len(world.runs) == CATCH_UP_RUNS + 1, "it is up to date"


def test_what_is_a_little_late_is_run_though_it_is_skipped_otherwise(world: SchedulesWorld) -> None:
    world.add()
    world.now = at("2026-11-21T10:00:00Z") + GRACE_SECONDS * 1000
    assert world.tick() == "ended" and len(world.runs) == 1
    world.now = at("2026-11-21T11:00:00Z") + GRACE_SECONDS * 1000 + 1
    assert world.tick() == "later" and len(world.runs) == 1
    assert world.schedule.planned_for == at("2026-11-21T12:00:00Z")


@pytest.mark.guards("bulk-schedules-jitter")
def test_schedules_of_one_time_begin_apart_and_each_as_it_says(world: SchedulesWorld) -> None:
    plans = [Plan(name=f"n{number}", cron="0 4 * * *", job="announce", jitter_seconds=600) for number in range(40)]
    dues = {due_of(plan, 0) for plan in plans}
    assert len(dues) == 40 and min(dues) >= 0 and 300_000 < max(dues) <= 600_000
    row = world.add("0 4 * * *", jitter_seconds=600)
    assert row.due_at is not None and row.planned_for < row.due_at <= row.planned_for + 600_000
    world.now = row.due_at - 1
    assert world.tick() == "later" and not world.runs
    world.now += 1
    assert world.tick() == "ended" and world.runs == ["2026-11-22T04:00"]


@pytest.mark.guards("bulk-schedules-lease")
def test_a_tick_that_comes_twice_runs_nothing_twice(world: SchedulesWorld) -> None:
    world.add()
    world.now = world.schedule.planned_for
    row = world.schedule
    world.answers = ["later"]
    assert world.tick() == world.tick() == "later" and len(world.runs) == 1
    world.schedules.rows["sc_it"] = row
    with patch.object(world.schedules, "change", side_effect=Fenced(None)):
        assert world.tick() == "later" and len(world.runs) == 1, "another has begun it since the row was read"


@pytest.mark.parametrize("dies", ["the job", "before its end is written", "while it is begun"])
def test_after_a_crash_the_run_goes_on_and_none_begins_beside_it(world: SchedulesWorld, dies: str) -> None:
    world.add("* * * * *")
    world.now = world.schedule.planned_for
    change, calls = world.schedules.change, iter(range(9))

    def dying(before: Schedule, after: Schedule) -> Schedule:
        number = next(calls)
        if dies == "while it is begun" and number == 0:
            change(before, after)
            raise ProcessDied
        if dies == "before its end is written" and number == 1:
            raise ProcessDied
        written: Schedule = change(before, after)
        return written

    world.answers = [ProcessDied()] if dies == "the job" else []
    with patch.object(world.schedules, "change", dying), pytest.raises(ProcessDied):
        world.tick()
    planned = str(rfc3339(world.schedule.running_for))[:16]
    world.now += LEASE_SECONDS * 1000 - 1
    assert world.tick() == "later"
    world.now += 1
    assert world.tick() == "goes_on", "the next one is due by then"
    assert set(world.runs) == {planned} and world.schedule.completed_for == at(planned + "Z")


@pytest.mark.guards("bulk-schedules-attempts-bound")
@pytest.mark.guards("bulk-schedules-failure-retried")
@pytest.mark.parametrize("failure", [Retryable("throttled"), ValueError("a bug"), ProcessDied()], ids=str)
def test_a_run_that_always_fails_ends_as_failed_and_the_next_is_made(
    world: SchedulesWorld, failure: BaseException
) -> None:
    world.add("0 0 * * *")
    world.now = world.schedule.planned_for
    world.answers = [failure] * MAX_ATTEMPTS
    for _ in range(6 * 60):
        with suppress(ProcessDied):
            world.tick()
        world.now += MINUTE
    row = world.schedule
    assert len(world.runs) == MAX_ATTEMPTS and row.running_for is None and row.outcome is RunOutcome.FAILED
    assert row.error == (str(failure) or "the function died in each attempt")
    world.sweep_for(19 * 60)
    assert (world.schedule.outcome, world.schedule.error) == (RunOutcome.DONE, None)


def test_a_job_that_goes_on_has_all_its_attempts_again(world: SchedulesWorld) -> None:
    world.add()
    world.now = world.schedule.planned_for
    world.answers = [ValueError("a bug"), "goes_on", "later", "ended"]
    world.tick()
    world.now += MINUTE
    assert world.tick() == "goes_on" and world.schedule.attempts == 0 and world.schedule.error is None
    assert world.tick() == "later"
    world.now += MINUTE
    assert world.tick() == "ended" and len(set(world.runs)) == 1


def test_a_job_that_can_never_be_done_is_not_tried_again(world: SchedulesWorld) -> None:
    world.add(job="pause_backfill", target="bf_9")
    world.now = world.schedule.planned_for
    assert world.tick() == "ended"
    assert (world.schedule.outcome, world.schedule.error) == (RunOutcome.FAILED, "There is no backfill bf_9.")
    world.jobs.clear()
    world.now = world.schedule.planned_for
    assert world.tick() == "ended" and "has no job" in str(world.schedule.error)


@pytest.mark.guards("bulk-schedules-own-attempt")
def test_an_attempt_that_has_lost_its_lease_writes_nothing(world: SchedulesWorld) -> None:
    world.add()
    world.now = world.schedule.planned_for

    def slowly(_: Schedule, __: Callable[[], bool]) -> Any:
        world.jobs["announce"] = lambda *_: "later"
        world.now += LEASE_SECONDS * 1000
        assert world.tick() == "later"
        return "ended"

    world.jobs["announce"] = slowly
    assert world.tick() == "later" and world.schedule.running_for is not None


@pytest.mark.guards("bulk-schedules-paused-rests")
def test_a_pause_lets_what_runs_end_and_begins_no_more(world: SchedulesWorld) -> None:
    world.add()
    world.now = world.schedule.planned_for

    def paused_meanwhile(_: Schedule, __: Callable[[], bool]) -> Any:
        world.change(pause)
        return "ended"

    world.jobs["announce"] = paused_meanwhile
    assert world.tick() == "ended"
    assert (world.schedule.outcome, world.schedule.due_at) == (RunOutcome.DONE, None)
    world.change(pause)  # again: it stays as it is
    world.jobs["announce"] = world._run
    world.sweep_for(3 * 60 + 30)
    assert not world.runs
    world.change(resume)
    world.sweep_for(60)
    assert world.runs == ["2026-11-21T14:00"], "those of the pause are skipped"


@pytest.mark.guards("bulk-schedules-run-alone")
def test_a_run_that_an_operator_asks_for_is_beside_the_planned_ones(world: SchedulesWorld) -> None:
    world.add()
    world.change(pause)
    world.now += 90_500
    world.change(run_now)
    with pytest.raises(Rejected, match="runs already"):
        world.change(run_now)
    assert world.tick() == "ended" and world.runs == ["2026-11-21T09:01"]
    first = world.schedule.completed_for
    world.change(run_now)
    assert world.tick() == "ended" and world.schedule.completed_for == (first or 0) + 1000
    assert world.schedule.due_at is None, "it is paused"
    world.change(resume)
    assert world.schedule.planned_for == at("2026-11-21T10:00:00Z")


@pytest.mark.guards("bulk-schedules-told-once")
def test_a_run_is_announced_once_with_an_id_of_its_time(world: SchedulesWorld) -> None:
    written: list[tuple[Schedule | None, Schedule]] = [(None, world.add())]
    world.answers = ["ended", "goes_on", ValueError("a bug"), "ended", Rejected("x", "never")]
    world.sweep_for(185)
    world.change(pause)
    world.change(resume)
    written += world.schedules.written
    events = world.schedules.events
    key, filters = {"part": {"S": "schedule"}}, MAPPING["FilterCriteria"]["Filters"]
    other = Plan(name="it", cron="0 * * * *", job="pause_backfill", target="bf_1")
    written += [(before and replace(before, plan=other), replace(row, plan=other)) for before, row in written]
    for before, after in written:
        images = {"NewImage": SCHEDULES.item_of(after) | key}
        images |= {} if before is None else {"OldImage": SCHEDULES.item_of(before) | key}
        told = event_of(before, after)
        assert passes(filters, {"dynamodb": {"Keys": key, **images}}) == (told is not None)
    assert [*events_of(written[0][1])] == []
    first, second = at("2026-11-21T10:00:00Z"), at("2026-11-21T11:00:00Z")
    assert [event.event_id for event in events] == [f"sc_it-{first // 1000}", f"sc_it-{second // 1000}"]
    assert {(event.type, event.tenant_id) for event in events} == {(EventType.SCHEDULE_DUE, "acme")}
    assert events[0].data == {
        "id": "sc_it",
        "tenant_id": "acme",
        "name": "it",
        "planned_for": "2026-11-21T10:00:00.000Z",
    }


def test_a_window_opens_and_closes_for_a_backfill(world: SchedulesWorld) -> None:
    row = world.backfills.create(start("bf_1", Selection(preset="standard", version=9), rate=None, now=world.now))
    for name, cron, job in (("open", "0 22 * * *", "resume_backfill"), ("close", "0 6 * * *", "pause_backfill")):
        world.add(cron, name=name, job=job, target=row.backfill_id)
    states = list[BackfillState]()
    for _ in range(3):
        world.sweep_for(8 * 60)
        states.append(world.backfills.rows["bf_1"].state)
    assert states == [BackfillState.RUNNING, BackfillState.RUNNING, BackfillState.PAUSED]
    with patch.object(world.backfills, "change", side_effect=Fenced(None)):
        resumes = world.jobs["resume_backfill"]
        assert resumes(world.schedules.rows["sc_open"], lambda: False) == "goes_on"


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"name": "Nightly"}, "small letters"),
        ({"name": "a" * 41}, "small letters"),
        ({"cron": "0 4 * *"}, "five fields"),
        ({"cron": "0 0 4 * * *"}, "five fields"),
        ({"cron": "0 4 * * " + "1," * 50 + "1"}, "five fields"),
        ({"cron": "61 4 * * *"}, "Bad minute"),
        ({"cron": "0 0 30 2 *"}, "Bad day-of-month"),
        ({"cron": "0 0 * * 1#6"}, "Bad day-of-week"),
        ({"timezone": "Europe/Atlantis"}, "Europe/Berlin"),
        ({"timezone": "../UTC"}, "Europe/Berlin"),
        ({"timezone": "Europe"}, "Europe/Berlin"),
        ({"job": "reconcile"}, "one of announce, pause_backfill, resume_backfill"),
        ({"target": None}, "needs a tenant"),
        ({"jitter_seconds": 3601}, "from 0 to 3600"),
        ({"jitter_seconds": -1}, "from 0 to 3600"),
    ],
)
def test_what_cannot_be_planned_is_refused(world: SchedulesWorld, stated: dict[str, Any], words: str) -> None:
    with pytest.raises(Rejected, match=words):
        world.add(**stated)


def test_the_stack_plans_its_own_once_and_anew_when_a_version_changes_them(world: SchedulesWorld) -> None:
    world.own = (Plan(name="it", cron="0 3 * * *", job="future"),)
    world.sweep_bulk()
    first = world.schedule
    assert first.is_own and first.planned_for == at("2026-11-22T03:00:00Z")
    world.sweep_bulk()
    assert world.schedule == first
    world.change(pause)
    world.own = (replace(world.own[0], cron="0 5 * * *"),)
    world.planned.clear()  # another process
    with patch.object(world.schedules, "create", side_effect=Retryable):
        plan_own(world.ports(RunSchedulePorts))
    assert not world.planned
    world.sweep_bulk()
    assert world.schedule.planned_for == at("2026-11-22T05:00:00Z") and world.schedule.paused_at is not None


# ── Whatever strikes any call, and two ticks at once ─────────────────────────────────────────────────────────────────

MODES: tuple[Mode, ...] = tuple(
    mode for mode in get_args(Mode.__value__) if mode not in ("applied late", "read damaged")
)


class Play:
    """Two hours of an hourly schedule, which is announced, and of one that closes a backfill's window in between."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.world = world = SchedulesWorld()
        world.add(missed=Missed.CATCH_UP)
        world.backfills.create(start("bf_1", Selection(preset="standard", version=9), rate=None, now=world.now))
        world.add("30 9 * * *", name="close", job="pause_backfill", target="bf_1")
        self.stores = {name: getattr(world, name) for name in ("schedules", "backfills", "batches")}
        for name, store in self.stores.items():
            setattr(world, name, self.faults.around(name, store))
        world.jobs |= {**jobs_of(world.backfills, world.clock), "announce": self._run}

    def _run(self, schedule: Schedule, out_of_time: Callable[[], bool]) -> Any:
        ended = {event.sequence * 1000 for event in self.stores["schedules"].events}
        assert schedule.running_for not in ended, "nothing is run again once it has ended"
        return self.world._run(schedule, out_of_time)

    def sweep(self) -> None:
        self.faults.is_dead = False
        with suppress(ProcessDied, Retryable, PermissionError):
            self.world.sweep_bulk()

    def over(self) -> Play:
        rows = self.stores["schedules"].rows
        while self.world.now < at("2026-11-21T11:30:00Z"):
            self.sweep()
            due = min(row.due_at for row in rows.values())
            self.world.now = max(self.world.now + MINUTE, due)
        hours = [at(f"2026-11-21T{hour}:00:00Z") for hour in (10, 11)]
        assert [event.sequence * 1000 for event in self.stores["schedules"].events] == hours, "each is announced once"
        assert sorted(set(self.world.runs)) == self.world.runs or self.faults.struck
        assert self.stores["backfills"].rows["bf_1"].state is BackfillState.PAUSED
        assert {row.running_for for row in rows.values()} == {None}
        return self


@pytest.mark.promise("schedule-faults")
@pytest.mark.parametrize("mode", [*MODES, "another tick"])
def test_each_planned_time_is_announced_once_whatever_strikes_any_call(mode: Any) -> None:
    calm = Play().over().faults
    assert calm.number > 20
    for number in range(calm.number):
        play = Play()

        def strike(call: Call, play: Play = play, number: int = number) -> Mode | None:
            if call.number != number:
                return None
            if mode != "another tick":
                return mode  # type: ignore[no-any-return]
            play.faults.plan = lambda _: None
            play.world.sweep_bulk()
            return None

        play.faults.plan = strike
        try:
            play.over()
        except AssertionError as broken:
            raise AssertionError(f"{mode} at {number} ({calm.calls[number]}): {broken}") from broken
