"""Holding far-off images: nothing is settled before its batch is stored and set to wake."""

from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.errors import Retryable
from darkroom.domain.hold import Entry, read_batch
from darkroom.operations.hold_images import Holding, hold_images
from tests.fakes.stores import FakeAlarms, FakeHolds, FakeLanes
from tests.unit.test_hold import DAY, NOW, entry


@dataclass
class Plane:
    """The stores of a delay plane."""

    lanes: Any = field(default_factory=FakeLanes)
    holds: Any = field(default_factory=FakeHolds)
    alarms: Any = field(default_factory=FakeAlarms)
    out_of_time: bool = False

    def hold(self, *entries: Entry) -> Holding:
        return hold_images(
            entries,
            lanes=self.lanes,
            holds=self.holds,
            alarms=self.alarms,
            clock=lambda: NOW,
            out_of_time=lambda: self.out_of_time,
        )


def refuse(*_: object) -> None:
    raise Retryable("throttled")


def test_a_far_image_is_written_down_and_set_to_wake() -> None:
    plane = Plane()
    holding = plane.hold(entry(1, DAY))
    ((name, (key, wake_at)),) = plane.alarms.wakings.items()
    batch = read_batch(plane.holds.objects[key])
    assert (batch.entries, batch.wake_at) == ((entry(1, DAY),), wake_at)
    assert name.removeprefix("hold-") in key
    assert (holding.held, holding.batches, holding.failed, plane.lanes.sent) == (1, 1, [], [])


def test_what_has_come_near_meanwhile_goes_to_its_lane_with_the_delay_that_is_left() -> None:
    plane = Plane()
    holding = plane.hold(entry(1, 600.001), entry(2, -30))
    assert list(zip([int(one.image_id) for one in plane.lanes.sent], plane.lanes.delays, strict=True)) == [
        (2, 0),
        (1, 601),
    ]
    assert (holding.sent, plane.holds.objects) == (2, {})


def test_the_waking_is_not_set_before_the_batch_is_stored() -> None:
    plane = Plane()
    plane.holds.put = refuse
    assert plane.hold(entry(1, DAY)).failed == [0]
    assert plane.alarms.wakings == {}


def test_nothing_is_settled_whose_waking_could_not_be_set() -> None:
    plane = Plane()
    plane.alarms.set = refuse
    assert plane.hold(entry(1, DAY), entry(2, 40 * DAY), entry(3, 5)).failed == [0, 1]


def test_a_failed_batch_costs_the_others_nothing() -> None:
    plane = Plane()
    put, calls = plane.holds.put, []

    def fail_once(key: str, dumped: bytes) -> None:
        calls.append(key)
        if len(calls) == 1:
            raise Retryable("throttled")
        put(key, dumped)

    plane.holds.put = fail_once
    holding = plane.hold(entry(1, DAY), entry(2, 40 * DAY))
    assert (len(holding.failed), holding.batches, len(plane.alarms.wakings)) == (1, 1, 1)


def test_a_repetition_stores_the_same_batch_and_sets_it_once() -> None:
    plane = Plane()
    plane.hold(entry(1, DAY), entry(2, DAY + 60))
    plane.hold(entry(2, DAY + 60), entry(1, DAY))
    assert (len(plane.holds.objects), len(plane.alarms.wakings)) == (1, 1)


def test_an_image_that_was_delivered_twice_waits_once_and_both_messages_go() -> None:
    plane = Plane()
    assert plane.hold(entry(1, DAY), entry(1, DAY)).held == 1
    plane.holds.put = refuse
    assert plane.hold(entry(1, DAY), entry(1, DAY)).failed == [0, 1]


def test_a_lane_that_takes_only_some_leaves_the_others_to_come_again() -> None:
    plane = Plane()
    plane.lanes.send_all = lambda parcels: 1
    assert plane.hold(entry(1, 300), entry(2, 100), entry(3, 200)).failed == [2, 0]


def test_what_there_is_no_time_for_comes_again() -> None:
    plane = Plane(out_of_time=True)
    assert plane.hold(entry(1, DAY)).failed == [0]
    assert plane.holds.objects == {}


def test_a_lane_that_does_not_answer_costs_far_off_images_nothing() -> None:
    plane = Plane()
    plane.lanes.send_all = refuse
    holding = plane.hold(entry(1, 300), entry(2, DAY))
    assert (holding.failed, holding.held, holding.sent) == ([0], 1, 0)


def test_the_largest_batch_comes_last_so_that_little_is_promised_twice_where_it_dies() -> None:
    plane = Plane()
    plane.hold(
        *(entry(number, DAY) for number in range(3)), entry(3, 40 * DAY), *(entry(4 + n, 100 * DAY) for n in (0, 1))
    )
    assert [len(read_batch(dumped).entries) for dumped in plane.holds.objects.values()] == [1, 2, 3]
