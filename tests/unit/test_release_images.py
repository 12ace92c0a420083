"""Releasing a batch: only images still waiting for this time, as far as their lane has room, possibly twice."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS, LANES, SLOW, Lane
from darkroom.domain.schedules.hold import (
    FULL_SLOT,
    HELD_AT_MOST_SECONDS,
    RELEASE,
    Batch,
    HeldMessage,
    UnreadableBatch,
    batch_key,
)
from darkroom.operations.schedules.release_images import (
    WINDOWS_AHEAD_SECONDS,
    Released,
    ReleaseImagesPorts,
    release_images,
)
from tests.support.fakes.damage import damage_once, flipped
from tests.support.fakes.load_shedding import lanes_deployed_with
from tests.support.fakes.stores import FakeHoldQueue, FakeHolds, FakeImages, FakeLanes, FakeReservations
from tests.support.faults import ProcessDied, meanwhile
from tests.support.images import pending
from tests.support.schedules import DAY, NOW, entry

WAKE_AT = NOW // 1000 * 1000


@dataclass
class Plane:
    """The stores of a delay plane with one batch in them."""

    images: Any = field(default_factory=FakeImages)
    lanes: Any = field(default_factory=FakeLanes)
    hold_queue: Any = field(default_factory=FakeHoldQueue)
    holds: Any = field(default_factory=FakeHolds)
    reservations: Any = field(default_factory=FakeReservations)
    now: int = NOW
    service: Mapping[str, Lane] = field(default_factory=lambda: LANES)
    out_of_time: Callable[[], bool] = lambda: False
    keys: dict[str, str] = field(default_factory=dict)

    def store(self, *entries: HeldMessage, level: str = "release", name: str = "batch") -> None:
        ordered = tuple(sorted(entries, key=lambda entry: entry.process_at))
        batch = Batch(level=level, wake_at=WAKE_AT, entries=ordered)
        dumped = batch.dumped()
        self.keys[name] = batch_key(batch, dumped)
        self.holds.put(self.keys[name], dumped)
        for held in entries:
            image = pending(
                image_id=held.message.image_id,
                status=Status.SCHEDULED,
                process_at=held.process_at,
                schedule=held.message.schedule,
            )
            self.images.rows[held.message.image_id] = image

    def release(self, position: int = 0, begins_at: int | None = None, name: str = "batch") -> Released:
        return release_images(
            ReleaseImagesPorts(
                images=self.images,
                lanes=self.lanes,
                hold_queue=self.hold_queue,
                holds=self.holds,
                reservations=self.reservations,
                clock=lambda: self.now,
                service=self.service,
            ),
            self.keys.get(name, "holds/gone"),
            position=position,
            begins_at=begins_at,
            out_of_time=self.out_of_time,
        )

    @property
    def sent(self) -> list[int]:
        return [int(message.image_id) for message in self.lanes.sent]


@pytest.fixture
def plane() -> Plane:
    return Plane()


def test_a_release_sends_each_message_with_the_delay_that_is_left_and_removes_the_object(plane: Plane) -> None:
    plane.store(entry(1, 300), entry(2, 899.5), entry(3, -1))
    released = plane.release()
    assert list(zip(plane.sent, plane.lanes.delays, strict=True)) == [(3, 0), (1, 300), (2, 900)]
    assert all(message.process_at is None for message in plane.lanes.sent)
    assert (released.done, released.sent, released.latest_seconds) == (True, 3, 1.0)
    assert plane.holds.objects == {}


@pytest.mark.guards("release-current-schedule")
@pytest.mark.parametrize(
    "change",
    [
        {"status": Status.CANCELLED},
        {"status": Status.PENDING},
        {"status": Status.DONE},
        {"schedule": 1},
        {"run": 2},
        {"schedule": 2, "process_at": NOW + 300_000},
    ],
    ids=str,
)
def test_what_no_longer_waits_for_this_time_does_not_go(plane: Plane, change: dict[str, Any]) -> None:
    plane.store(entry(1, 300), entry(2, 300))
    image_id = entry(1, 300).message.image_id
    plane.images.rows[image_id] = replace(plane.images.rows[image_id], **change)
    released = plane.release()
    assert (plane.sent, released.stale, released.done) == ([2], 1, True)


def test_an_image_without_a_row_does_not_go(plane: Plane) -> None:
    plane.store(entry(1, 300))
    plane.images.rows.clear()
    assert (plane.release().stale, plane.sent) == (1, [])


def test_what_woke_so_late_that_its_lane_can_hold_it_is_not_held_once_more(plane: Plane) -> None:
    plane.store(entry(1, -50), entry(2, 900), entry(3, 901), level="hours")
    released = plane.release()
    assert list(zip(plane.sent, plane.lanes.delays, strict=True)) == [(1, 0), (2, 900)]
    assert [message.image_id for message in plane.hold_queue.held] == [entry(3, 901).message.image_id]
    assert (released.done, released.sent, released.held, released.latest_seconds) == (True, 2, 1, 50.0)


def test_a_batch_of_a_wider_ring_is_held_once_more_with_its_times(plane: Plane) -> None:
    plane.store(entry(1, 5000), entry(2, 7000), level="hours")
    released = plane.release()
    assert [message.process_at for message in plane.hold_queue.held] == [NOW + 5_000_000, NOW + 7_000_000]
    assert (released.done, released.held, plane.sent, plane.holds.objects) == (True, 2, [], {})


def test_a_batch_that_is_gone_was_released_before() -> None:
    assert Plane().release(position=7).done


def test_what_a_lane_cannot_hold_yet_is_waited_for(plane: Plane) -> None:
    plane.store(*(entry(number, 300) for number in range(100)), entry(100, 890))
    plane.now -= 100_000  # a slow clock
    released = plane.release()
    assert (released.done, released.position) == (False, 100)
    # As late as its lead allows, so that a window sends more.
    assert NOW + 590_000 <= released.wake_at <= NOW + 591_000 and released.wake_at % 1000 == 0
    plane.now = released.wake_at
    assert plane.release(released.position).done
    assert plane.lanes.delays[-1] in (299, 300)


def finished(plane: Plane) -> list[tuple[int, int]]:
    """Plays all windows; returns each message's id and when it becomes visible, in ms after the batch's time."""
    released = plane.release()
    windows, shown = 1, 0
    instants = []
    while True:
        instants += [plane.now + 1000 * delay - NOW - 300_000 for delay in plane.lanes.delays[shown:]]
        shown = len(plane.lanes.delays)
        if released.done:
            break
        assert released.wake_at > plane.now
        plane.now, windows = released.wake_at, windows + 1
        released = plane.release(released.position, released.begins_at)
    plane.windows = windows  # type: ignore[attr-defined]
    return list(zip(plane.sent, instants, strict=True))


@pytest.mark.guards("release-paced-by-lane")
def test_many_of_the_same_time_come_one_after_the_other_as_their_lane_can_take_them(plane: Plane) -> None:
    count = 50 * FULL_SLOT
    plane.store(*(entry(number, 300) for number in range(count)))
    shown = finished(plane)
    assert [number for number, _ in shown] == list(range(count))
    for number, instant in shown:
        in_turn = 1000 * number / SLOW.release_per_second
        assert in_turn <= instant <= in_turn + 2000, "never before its window, and no later than seconds are whole"
    assert plane.windows < 5, "one window sends ten minutes of them"  # type: ignore[attr-defined]


def test_a_lane_with_more_workers_takes_them_faster() -> None:
    count = 5 * FULL_SLOT
    plane = Plane(service=lanes_deployed_with(slow=40))
    plane.store(*(entry(number, 300) for number in range(count)))
    last = finished(plane)[-1][1]
    in_turn = 1000 * (count - 1) / SLOW.release_per_second / 4
    assert in_turn <= last <= in_turn + 2000


def test_100_000_images_take_few_turns_and_little_of_an_executions_history() -> None:
    windows = 100_000 / SLOW.release_per_second / (LANE_DELAY_SECONDS - RELEASE.lead_seconds)
    # A window enters three states: eight events and some for retries. A history can have 25,000 events
    # (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
    assert 20 * windows < 25_000


def test_a_second_batch_of_the_same_time_waits_behind_the_first(plane: Plane) -> None:
    plane.reservations.busy["slow"] = NOW + 300_000 + 60_000
    plane.store(*(entry(number, 300) for number in range(FULL_SLOT)))
    assert min(instant for _, instant in finished(plane)) >= 60_000


def test_few_images_wait_behind_nobody(plane: Plane) -> None:
    plane.reservations.busy["slow"] = NOW + 10**9
    plane.store(*(entry(number, 300) for number in range(FULL_SLOT - 1)))
    assert {instant for _, instant in finished(plane)} == {0}
    assert plane.reservations.busy["slow"] == NOW + 10**9


@pytest.mark.guards("release-window-of-wanted")
def test_what_is_not_wanted_any_more_takes_no_turn(plane: Plane) -> None:
    plane.store(*(entry(number, WINDOWS_AHEAD_SECONDS) for number in range(5 * FULL_SLOT)))
    for number in range(4 * FULL_SLOT):
        del plane.images.rows[entry(number, WINDOWS_AHEAD_SECONDS).message.image_id]
    plane.release()
    assert len(plane.sent) == FULL_SLOT
    assert max(plane.lanes.delays) <= WINDOWS_AHEAD_SECONDS + 1 + FULL_SLOT / SLOW.release_per_second
    length = 1000 * FULL_SLOT / SLOW.release_per_second
    assert plane.reservations.busy["slow"] == pytest.approx(NOW + 1000 * WINDOWS_AHEAD_SECONDS + length, abs=5)


def test_two_batches_of_the_same_time_do_not_take_the_same_turns(plane: Plane) -> None:
    for name, first in (("batch", 0), ("other", FULL_SLOT)):
        plane.store(*(entry(first + number, WINDOWS_AHEAD_SECONDS) for number in range(FULL_SLOT)), name=name)
        assert plane.release(name=name).done
    assert max(Counter(plane.lanes.delays).values()) <= SLOW.release_per_second


@pytest.mark.guards("release-late-reservation", "release-spread-without-windows")
@pytest.mark.parametrize("others", [[300 + 2 * n for n in range(FULL_SLOT)], [300 + 400] * FULL_SLOT], ids=str)
def test_nobody_waits_behind_those_of_later_times(plane: Plane, others: list[int]) -> None:
    plane.store(*(entry(number, seconds) for number, seconds in enumerate(others)), name="other")
    plane.store(*(entry(FULL_SLOT + number, 300) for number in range(FULL_SLOT)))
    waits = plane.release(name="other")
    plane.lanes.sent.clear()
    plane.lanes.delays.clear()
    assert waits.done or waits.wake_at > NOW + 300_000
    shown = finished(plane)
    assert max(instant for _, instant in shown) <= 1000 * FULL_SLOT / SLOW.release_per_second + 2000


@pytest.mark.guards("release-reserved-stretch-kept")
def test_what_is_left_when_turns_are_too_far_ahead_reserves_them_at_once_and_keeps_them(plane: Plane) -> None:
    count = 10 * FULL_SLOT
    plane.store(*(entry(number, WINDOWS_AHEAD_SECONDS) for number in range(count)))
    plane.reservations.busy["slow"] = begins_at = NOW + 880_000
    first = plane.release()
    # Four hundred fit into the fifteen minutes that a lane holds.
    assert (first.done, first.position) == (False, 400)
    assert first.begins_at == begins_at + round(1000 * 400 / SLOW.release_per_second)
    ends_at = begins_at + round(1000 * count / SLOW.release_per_second)
    assert plane.reservations.busy["slow"] == ends_at, "nothing is reserved twice"
    plane.now = first.wake_at
    plane.out_of_time = iter([False, True, *[False] * 99]).__next__
    second = plane.release(first.position, first.begins_at)
    assert (second.position, second.begins_at) == (500, first.begins_at + 5_000)
    while not second.done:
        plane.now = second.wake_at
        second = plane.release(second.position, second.begins_at)
    assert plane.reservations.busy["slow"] == ends_at


def test_a_stretch_that_begins_later_than_the_first_hundreds_turn_takes_nobody_elses(plane: Plane) -> None:
    plane.store(*(entry(number, WINDOWS_AHEAD_SECONDS) for number in range(2 * FULL_SLOT)))
    reserve, behind = plane.reservations.reserve, NOW + 2_000_000

    def others_come_between(lane: str, **stretch: int) -> int:
        begins_at: int = reserve(lane, **stretch)
        reserve(lane, not_before=0, milliseconds=600_000)
        return begins_at

    plane.reservations.busy["slow"] = behind
    plane.reservations.reserve = others_come_between
    released = plane.release()
    assert (released.position, released.begins_at) == (0, behind + 600_000)


@pytest.mark.guards("release-window-noted-first")
@pytest.mark.parametrize("busy_until", [0, NOW + 880_000], ids=["turns_are_near", "turns_are_far"])
def test_a_call_that_died_leaves_its_turns_to_the_next(busy_until: int) -> None:
    plane, calls = Plane(), []
    plane.store(*(entry(number, WINDOWS_AHEAD_SECONDS) for number in range(5 * FULL_SLOT)))
    plane.reservations.busy["slow"] = busy_until
    send_all = plane.lanes.send_all

    def die_at_the_third(lane: str, messages: Any) -> Any:
        calls.append(len(messages))
        unsent = send_all(lane, messages)
        if len(calls) == 3:
            raise ProcessDied
        return unsent

    plane.lanes.send_all = die_at_the_third
    with pytest.raises(ProcessDied):
        plane.release()
    reserved, shown = dict(plane.reservations.busy), dict(zip(plane.sent, plane.lanes.delays, strict=True))
    plane.lanes.sent.clear()
    plane.lanes.delays.clear()
    again = plane.release()
    assert plane.sent[:1] == [200], "what had its window before is in the lane"
    assert plane.lanes.delays[:100] == [shown[number] for number in range(200, 300)]
    while not again.done:
        plane.now = again.wake_at
        again = plane.release(again.position, again.begins_at)
    wasted = plane.reservations.busy["slow"] - max(busy_until, NOW + 1000 * WINDOWS_AHEAD_SECONDS) - 5 * FULL_SLOT * 50
    assert wasted == 0 and reserved


@pytest.mark.guards("release-window-noted-first")
def test_a_call_that_died_before_it_could_wait_leaves_its_stretch_to_the_next(plane: Plane) -> None:
    plane.store(*(entry(number, WINDOWS_AHEAD_SECONDS) for number in range(5 * FULL_SLOT)))
    plane.reservations.busy["slow"] = NOW + 2_000_000
    first = plane.release()
    reserved = dict(plane.reservations.busy)
    # As if it had died before it could answer.
    assert plane.release() == first
    assert plane.reservations.busy == reserved


@pytest.mark.guards("release-unsent-not-settled")
def test_a_failure_in_the_midst_goes_on_from_there(plane: Plane) -> None:
    plane.store(*(entry(number, 300) for number in range(250)))
    send_all, calls = plane.lanes.send_all, count(1)
    plane.lanes.send_all = lambda *arguments: {10: Retryable("throttled")} if next(calls) == 3 else send_all(*arguments)
    released = plane.release()
    assert (released.done, released.position) == (False, 200)
    plane.lanes.send_all = send_all
    assert plane.release(released.position).done
    assert sorted(set(plane.sent)) == list(range(250))


def test_a_failure_at_the_beginning_is_the_executions_to_repeat(plane: Plane) -> None:
    plane.store(entry(1, 300))
    plane.lanes.send_all = lambda lane, messages: {0: Retryable("throttled")}
    with pytest.raises(Retryable):
        plane.release()
    assert plane.holds.objects


def test_a_turn_ends_in_good_time(plane: Plane) -> None:
    plane.store(*(entry(number, 300) for number in range(250)))
    answers = iter([False, True])
    plane.out_of_time = lambda: next(answers)
    assert (plane.release().position, len(plane.sent)) == (100, 100)


@pytest.mark.guards("release-batch-read-twice")
def test_a_batch_that_is_read_damaged_once_is_released(plane: Plane) -> None:
    plane.store(entry(1, 300))
    damage_once(plane.holds, "get", flipped)
    assert (plane.release().done, plane.sent, plane.holds.objects) == (True, [1], {})


@pytest.mark.parametrize("damage", [b"", b"something else"])
def test_an_object_that_cannot_be_read_stays(plane: Plane, damage: bytes) -> None:
    plane.store(entry(1, 300))
    plane.holds.objects[plane.keys["batch"]] = damage
    with pytest.raises(UnreadableBatch):
        plane.release()
    assert plane.holds.objects


@pytest.mark.guards("hold-batch-digest")
def test_bytes_that_decode_and_are_not_those_that_were_stored_are_not_released(plane: Plane) -> None:
    plane.store(entry(1, 300))
    plane.store(entry(2, 300), name="other")
    plane.holds.objects[plane.keys["batch"]] = plane.holds.objects[plane.keys["other"]]
    with pytest.raises(UnreadableBatch, match="digest"):
        plane.release()
    assert plane.sent == []


@pytest.mark.guards("hold-unknown-lane", "release-unplaceable-skipped")
@pytest.mark.parametrize("level", ["release", "hours"])
def test_an_image_of_a_lane_that_this_version_does_not_know_is_left_out_alone(plane: Plane, level: str) -> None:
    plane.store(entry(1, 300), entry(2, 200, lane="newer"), entry(3, 100), level=level)
    released = plane.release()
    assert (plane.sent, released.sent, released.stale, released.done) == ([3, 1], 2, 0, True)
    assert released.skipped == {entry(2, 0).message.image_id: "no lane of this version is called 'newer'"}


def test_a_whole_batch_of_a_lane_that_this_version_does_not_know_is_left_out(plane: Plane) -> None:
    plane.store(*(entry(number, 300, lane="newer") for number in range(FULL_SLOT)))
    released = plane.release()
    assert (len(released.skipped), released.done, plane.reservations.busy) == (FULL_SLOT, True, {})


@pytest.mark.guards("hold-time-lower-bound", "release-beyond-batch-skipped", "release-unplaceable-skipped")
@pytest.mark.parametrize("level", ["release", "hours"])
@pytest.mark.parametrize("seconds", [10.0**27, 9_500 * 365 * DAY, -(10.0**27), HELD_AT_MOST_SECONDS + 1, 1_000])
def test_an_image_whose_time_nobody_can_hold_is_left_out_alone(plane: Plane, level: str, seconds: float) -> None:
    good = [entry(number, 300) for number in range(FULL_SLOT)]
    plane.store(*good, entry(FULL_SLOT, seconds), level=level)
    shown = finished(plane)[:FULL_SLOT]
    assert sorted(number for number, _ in shown) == list(range(FULL_SLOT))
    assert max(instant for _, instant in shown) <= 1000 * FULL_SLOT / SLOW.release_per_second + 2000


def test_what_is_left_out_is_told_by_image_and_counts_only_if_it_still_waits(plane: Plane) -> None:
    plane.store(entry(1, 300, lane="newer"), entry(2, 300, lane="newer"))
    del plane.images.rows[entry(1, 0).message.image_id]
    released = plane.release()
    assert (list(released.skipped), released.stale) == ([entry(2, 0).message.image_id], 1)


@pytest.mark.parametrize("level", ["release", "hours"])
def test_a_message_that_its_queue_refuses_is_left_out_alone(plane: Plane, level: str) -> None:
    times = (100, 200, 300, 400) if level == "release" else (100, 200, 5000, 6000)
    plane.store(*(entry(number, seconds) for number, seconds in enumerate(times, 1)), level=level)
    refused = {entry(number, 0).message.image_id for number in (2, 3)}

    def refuse(message: Any, **_: int) -> None:
        if message.image_id in refused:
            raise Unplaceable("SQS refuses its message")

    meanwhile(plane.lanes, "send", refuse)
    meanwhile(plane.hold_queue, "put", refuse)
    released = plane.release()
    assert (set(released.skipped), released.sent + released.held, released.done) == (refused, 2, True)


def test_a_queue_that_does_not_answer_is_no_reason_to_leave_anybody_out(plane: Plane) -> None:
    plane.store(entry(1, 300), entry(2, 300))
    plane.lanes.send_all = lambda lane, messages: {0: Unplaceable("refused"), 1: Retryable("throttled")}
    with pytest.raises(Retryable):
        plane.release()
    assert plane.holds.objects


@pytest.mark.guards("unreadable-release-skipped")
def test_an_unreadable_row_is_left_to_the_sweeper_and_its_neighbours_are_released(plane: Plane) -> None:
    plane.store(entry(1, 300), entry(2, 300))
    bad = f"{1:026d}"
    plane.images.unreadable[bad] = plane.images.rows.pop(bad)
    released = plane.release()
    assert (plane.sent, released.done, released.sent, released.stale) == ([2], True, 1, 0)
    assert [row.row_id for row in released.unreadable] == [bad]
