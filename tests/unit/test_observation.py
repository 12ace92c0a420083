"""What is calculated for an operator from a bounded look at a stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Attempt, Status
from darkroom.domain.kernel.lanes import FAST
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable, pause
from darkroom_cli.operator.domain.observation import (
    DAY,
    HOUR,
    Alarm,
    Condition,
    Counted,
    LaneWaits,
    Overdue,
    causes_of,
    condition_of,
    condition_since,
    incident_first,
    lane_waits,
    overdue,
    upcoming,
    working,
)
from tests.support.fakes.rows import accepted_image

NOW = 1_795_251_600_000
SLA = FAST.sla_seconds * 1000


def alarm(description: str = "", *, name: str = "A", is_critical: bool = True, children: str = "") -> Alarm:
    return Alarm(
        name=name,
        description=description,
        reason="",
        since=NOW,
        is_critical=is_critical,
        children=frozenset(children.split()),
    )


@pytest.mark.parametrize(
    ("description", "effect", "command", "section"),
    [
        (
            "It has begun. Nothing is lost. First: ./darkroom dlq ls --older-than 12d --stack shop. See docs/a.md#b-c.",
            *("It has begun. Nothing is lost.", "./darkroom dlq ls --older-than 12d", "docs/a.md#b-c"),
        ),
        ("A lane stands. First: ./darkroom top. See docs/a.md#b.", "A lane stands.", "./darkroom top", "docs/a.md#b"),
        ("Mine: `rm -r x`. See docs/a.md#b.", "Mine: `rm -r x`. See docs/a.md#b.", None, None),
        ("", "", None, None),
    ],
)
def test_an_alarm_is_its_effect_the_first_command_and_the_section_to_read(
    description: str, effect: str, command: str | None, section: str | None
) -> None:
    read = alarm(description)
    assert (read.effect, read.command, read.section) == (effect, command, section)


@pytest.mark.guards("top-incident-before-causes")
def test_the_incident_comes_first_with_what_causes_it_and_warnings_come_last() -> None:
    late = alarm(name="Late", is_critical=False)
    apart, stuck, silent = (alarm(name=name) for name in ("Apart", "Stuck", "Silent"))
    incident = alarm(name="Incident", children="Stuck Silent Quiet")
    on = [late, apart, stuck, incident, silent]
    assert incident_first(on) == (incident, stuck, silent, apart, late)
    assert causes_of(incident, on) == (stuck, silent)
    assert causes_of(stuck, on) == ()


@pytest.mark.guards("top-oldest-excludes-ended")
def test_what_waits_in_a_lane_is_counted_and_its_oldest_is_the_one_whose_row_says_so() -> None:
    ended = accepted_image(now=NOW - SLA - 5000, image_id="1" * 26, lane="fast")
    ended = replace(ended, status=Status.DONE, waiting_since=None)
    oldest = accepted_image(now=NOW - SLA - 3000, image_id="2" * 26, lane="fast")
    shards = [[(NOW - SLA - 5000, ended.image_id), (NOW - 1, "3" * 26)], [(NOW - SLA - 3000, oldest.image_id)], []]
    assert lane_waits(FAST, shards, [ended, oldest], shard_limit=3, now=NOW) == LaneWaits(
        images=Counted(number=3, is_all=True), late=Counted(number=2, is_all=True), oldest_since=NOW - SLA - 3000
    )


def test_late_images_are_all_counted_unless_a_shard_that_was_cut_off_ends_with_one() -> None:
    late, young = (NOW - SLA - 1, "1" * 26), (NOW - SLA, "2" * 26)
    cut_off = lane_waits(FAST, [[late, young]], [], shard_limit=2, now=NOW)
    assert (cut_off.images, cut_off.late) == (Counted(number=2, is_all=False), Counted(number=1, is_all=True))
    assert lane_waits(FAST, [[late, late]], [], shard_limit=2, now=NOW).late == Counted(number=2, is_all=False)


def test_what_is_scheduled_is_counted_as_far_as_it_was_read() -> None:
    ids = [f"{number:026d}" for number in range(4)]
    soon, later, far = (NOW + 1000, ids[0]), (NOW + HOUR, ids[1]), (NOW + 2 * DAY, ids[2])
    complete = upcoming([[soon, later], [far]], shard_limit=3, now=NOW)
    assert (complete.images, complete.within_hour, complete.within_day, complete.next_at) == (
        Counted(number=3, is_all=True),
        Counted(number=1, is_all=True),
        Counted(number=2, is_all=True),
        NOW + 1000,
    )
    cut_off = upcoming([[soon, later], [far]], shard_limit=2, now=NOW)
    assert (cut_off.images.is_all, cut_off.within_hour.is_all, cut_off.within_day.is_all) == (False, True, False)
    assert upcoming([[]], shard_limit=2, now=NOW).next_at is None


def in_work(**changes: Any) -> Any:
    row = accepted_image(now=NOW, image_id="1" * 26)
    attempts = (Attempt(run=1, number=1, request_id="r-1", started_at=NOW - 9000),)
    usual: dict[str, Any] = {"status": Status.PROCESSING, "attempt": 1, "attempts": attempts, "lease_until": NOW + 1}
    return replace(row, **usual | changes)


def test_who_works_on_an_image_is_the_one_of_its_present_attempt() -> None:
    attempts = (*in_work().attempts, Attempt(run=1, number=2, request_id="r-2", started_at=NOW - 2000))
    second = in_work(image_id="2" * 26, attempt=2, attempts=attempts)
    (first, other) = working([second, in_work(), accepted_image(now=NOW)], now=NOW)
    assert (first.image_id, first.request_id, first.since, first.is_lost) == ("1" * 26, "r-1", NOW - 9000, False)
    assert (other.image_id, other.attempt, other.request_id, other.since) == ("2" * 26, 2, "r-2", NOW - 2000)
    (forgotten,) = working([in_work(attempts=())], now=NOW)
    assert (forgotten.request_id, forgotten.since) == (None, None)


def test_a_worker_whose_lease_has_lapsed_is_lost() -> None:
    (worker,) = working([in_work(lease_until=NOW - 1)], now=NOW)
    assert worker.is_lost


@pytest.mark.guards("top-sweep-return-lost-only")
@pytest.mark.parametrize(("due_at", "not_before"), [(NOW + 5000, NOW + 2000), (NOW - 9000, NOW + 5000)])
def test_an_image_whose_worker_is_lost_returns_by_the_sweep_after_its_backoff(due_at: int, not_before: int) -> None:
    (lost,) = working([in_work(lease_until=NOW - 1, due_at=due_at, not_before=not_before)], now=NOW)
    assert lost.returns_by == NOW + 65_000
    (works,) = working([in_work(due_at=due_at, not_before=not_before)], now=NOW)
    assert works.returns_by is None


def test_a_scheduled_image_is_overdue_until_a_worker_begins_it() -> None:
    row = replace(accepted_image(now=NOW), status=Status.SCHEDULED, process_at=NOW - 4000)
    younger, to_come = replace(row, process_at=NOW - 1000), replace(row, process_at=NOW + 1)
    rows = [row, younger, to_come, replace(row, status=Status.PENDING)]
    assert overdue(rows, now=NOW) == Overdue(images=2, latest_seconds=4.0)
    assert overdue([], now=NOW) == Overdue(images=0, latest_seconds=0.0)


def test_an_endpoint_is_disabled_resting_failing_paused_or_healthy() -> None:
    healthy = Endpoint(tenant_id="t", endpoint_id="we_0", url="https://a.example", events=("*",), created_at=NOW)
    failing = replace(healthy, failing_since=NOW - 5)
    resting = replace(failing, rests_until=NOW)
    disabled = disable(resting, DisabledBy.GONE, now=NOW - 3)
    paused = pause(failing, now=NOW - 4)
    assert [condition_of(each) for each in (healthy, paused, failing, resting, disabled)] == list(Condition)
    assert [condition_since(each) for each in (healthy, paused, failing, disabled)] == [None, NOW - 4, NOW - 5, NOW - 3]
