"""Holding far-off images: nothing is settled before its batch is stored and its wake-up is set."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.lanes import HOLD, LANES
from darkroom.domain.kernel.message import Message, UnreadableMessage
from darkroom.domain.kernel.signature import Received, VerificationFailure
from darkroom.domain.schedules.hold import (
    HELD_AT_MOST_SECONDS,
    MAX_BATCH_BYTES,
    Batch,
    HeldMessage,
    UnreadableBatch,
    level_of,
    read_batch,
)
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from darkroom.operations.schedules.hold_images import HoldImagesPorts, Holding, hold_images
from tests.support.fakes.messages import KEYS, received, unsigned
from tests.support.fakes.stores import FakeDeadLetters, FakeHolds, FakeLanes, FakeWakeUps
from tests.support.faults import meanwhile, raising
from tests.support.schedules import DAY, NOW, entry


@dataclass
class Plane:
    """The stores of a delay plane."""

    lanes: Any = field(default_factory=FakeLanes)
    holds: Any = field(default_factory=FakeHolds)
    wake_ups: Any = field(default_factory=FakeWakeUps)
    rejected: FakeDeadLetters = field(default_factory=lambda: FakeDeadLetters(messages={HOLD: []}))
    out_of_time: bool = False

    def hold(self, *entries: HeldMessage | str | Received) -> Holding:
        return hold_images(
            HoldImagesPorts(
                lanes=self.lanes,
                holds=self.holds,
                wake_ups=self.wake_ups,
                clock=lambda: NOW,
                known_lanes=LANES,
                message_keys=KEYS,
                rejected_messages=self.rejected,
            ),
            [
                entry
                if isinstance(entry, Received)
                else received(
                    HOLD, entry if isinstance(entry, str) else message_of(entry), message_id=f"message-{number}"
                )
                for number, entry in enumerate(entries)
            ],
            out_of_time=lambda: self.out_of_time,
        )


def message_of(entry: HeldMessage) -> Message:
    return entry.message.model_copy(update={"process_at": entry.process_at})


def body_of(entry: HeldMessage) -> str:
    return message_of(entry).model_dump_json()


def dead_letter_of(key: str) -> str:
    return json.dumps({"v": 1, "batch": key, "position": 0, "error": "E", "cause": "", "execution": "arn"})


refuse = raising(Retryable("throttled"))


@pytest.fixture
def plane() -> Plane:
    return Plane()


def test_a_far_image_is_written_down_and_set_to_wake(plane: Plane) -> None:
    holding = plane.hold(entry(1, DAY))
    ((name, (key, wake_at)),) = plane.wake_ups.wakings.items()
    batch = read_batch(plane.holds.objects[key])
    assert (batch.entries, batch.wake_at) == ((entry(1, DAY),), wake_at)
    assert name.removeprefix("hold-") in key
    assert (holding.held, holding.batches, holding.failed, plane.lanes.sent) == (1, 1, {}, [])


@pytest.mark.guards("delay-rounded-up")
def test_what_has_come_near_meanwhile_goes_to_its_lane_with_the_delay_that_is_left(plane: Plane) -> None:
    holding = plane.hold(entry(1, 600.001), entry(2, -30))
    assert list(zip([int(sent.image_id) for sent in plane.lanes.sent], plane.lanes.delays, strict=True)) == [
        (2, 0),
        (1, 601),
    ]
    assert (holding.sent, plane.holds.objects) == (2, {})


def test_the_waking_is_not_set_before_the_batch_is_stored(plane: Plane) -> None:
    plane.holds.put = refuse
    assert list(plane.hold(entry(1, DAY)).failed) == [0]
    assert plane.wake_ups.wakings == {}


@pytest.mark.guards("hold-message-until-wake-set")
def test_nothing_is_settled_whose_waking_could_not_be_set(plane: Plane) -> None:
    plane.wake_ups.set = refuse
    assert list(plane.hold(entry(1, DAY), entry(2, 40 * DAY), entry(3, 5)).failed) == [0, 1]


def test_a_failed_batch_costs_the_others_nothing(plane: Plane) -> None:
    meanwhile(plane.holds, "put", raising(Retryable("throttled")), times=1)
    holding = plane.hold(entry(1, DAY), entry(2, 40 * DAY))
    assert (len(holding.failed), holding.batches, len(plane.wake_ups.wakings)) == (1, 1, 1)


def test_a_repetition_stores_the_same_batch_and_sets_it_once(plane: Plane) -> None:
    plane.hold(entry(1, DAY), entry(2, DAY + 60))
    plane.hold(entry(2, DAY + 60), entry(1, DAY))
    assert (len(plane.holds.objects), len(plane.wake_ups.wakings)) == (1, 1)


def test_an_image_that_was_delivered_twice_waits_once_and_both_messages_go(plane: Plane) -> None:
    assert plane.hold(entry(1, DAY), entry(1, DAY)).held == 1
    plane.holds.put = refuse
    assert list(plane.hold(entry(1, DAY), entry(1, DAY)).failed) == [0, 1]


def test_a_lane_that_takes_only_some_leaves_the_others_to_come_again(plane: Plane) -> None:
    plane.lanes.send_all = lambda lane, messages: dict.fromkeys((1, 2), Retryable("throttled"))
    assert list(plane.hold(entry(1, 300), entry(2, 100), entry(3, 200)).failed) == [2, 0]


def test_what_there_is_no_time_for_comes_again() -> None:
    plane = Plane(out_of_time=True)
    assert list(plane.hold(entry(1, DAY)).failed) == [0]
    assert plane.holds.objects == {}


def test_a_lane_that_does_not_answer_costs_far_off_images_nothing(plane: Plane) -> None:
    plane.lanes.send_all = refuse
    holding = plane.hold(entry(1, 300), entry(2, DAY))
    assert (list(holding.failed), holding.held, holding.sent) == ([0], 1, 0)


def test_the_largest_batch_comes_last_so_that_little_is_promised_twice_where_it_dies(plane: Plane) -> None:
    plane.hold(
        *(entry(number, DAY) for number in range(3)), entry(3, 40 * DAY), *(entry(4 + n, 100 * DAY) for n in (0, 1))
    )
    assert [len(read_batch(dumped).entries) for dumped in plane.holds.objects.values()] == [1, 2, 3]


# ── Whatever is wrong with one, the others go on ─────────────────────────────────────────────────────────────────────

FAR_FUTURE = 9_500 * 365 * DAY
BAD = {
    "junk": ("nothing of ours", UnreadableMessage),
    "nothing": ("", UnreadableMessage),
    "deep": ("[" * 100_000, UnreadableMessage),
    "another version": (body_of(entry(1, DAY)).replace('"v":1', '"v":2'), UnreadableMessage),
    "a negative time": (body_of(entry(1, DAY)).replace(f"{NOW + DAY * 1000}", "-1"), UnreadableMessage),
    "a time of 5,000 digits": (body_of(entry(1, DAY)).replace(f"{NOW + DAY * 1000}", "9" * 5_000), UnreadableMessage),
    "a time of 30 digits": (body_of(entry(1, 10.0**27)), Unplaceable),
    "the year 11476": (body_of(entry(1, FAR_FUTURE)), Unplaceable),
    "more than a year": (body_of(entry(1, HELD_AT_MOST_SECONDS + 1)), Unplaceable),
    "an unknown lane, near": (body_of(entry(1, 300, lane="newer")), Unplaceable),
    "an unknown lane, far": (body_of(entry(1, DAY, lane="newer")), Unplaceable),
    "a tenant that is no message group": (body_of(entry(1, 300)).replace("default", "ü ü"), UnreadableMessage),
    "a damaged batch": (dead_letter_of(f"holds/x/{'0' * 40}.json.gz"), UnreadableBatch),
    "a batch of too many bytes": (dead_letter_of(f"holds/x/{'1' * 40}.json.gz"), UnreadableBatch),
}


@pytest.mark.guards(
    "hold-dead-letter-bug-isolated",
    "hold-message-bug-isolated",
    "hold-tenant-message-group",
    "hold-time-upper-bound",
    "hold-unplaceable-refused",
)
@pytest.mark.parametrize(("body", "reason"), BAD.values(), ids=BAD)
def test_a_bad_message_fails_alone_and_says_why(plane: Plane, body: str, reason: type[Exception]) -> None:
    plane.holds.put(f"holds/x/{'0' * 40}.json.gz", Batch(level="release", wake_at=0, entries=()).dumped()[:-1])
    plane.holds.put(f"holds/x/{'1' * 40}.json.gz", bytes(MAX_BATCH_BYTES + 1))
    holding = plane.hold(entry(2, 300), body, entry(3, DAY), entry(4, 40 * DAY))
    assert {place: type(error) for place, error in holding.failed.items()} == {1: reason}
    assert str(holding.failed[1]) and len(str(holding.failed[1])) < 1_000
    assert (holding.sent, holding.held, holding.batches) == (1, 2, 2)


def test_the_furthest_that_can_be_scheduled_is_held() -> None:
    assert Plane().hold(entry(1, MAX_DELAY_SECONDS)).held == 1


def test_a_dead_letter_wakes_its_batch_again_and_one_of_a_missing_batch_has_nothing_to_do(plane: Plane) -> None:
    plane.hold(entry(1, DAY))
    ((name, (key, wake_at)),) = plane.wake_ups.wakings.items()
    plane.wake_ups.wakings.clear()
    holding = plane.hold(dead_letter_of(key), dead_letter_of(f"holds/x/{'0' * 40}.json.gz"))
    assert (holding.woken, holding.failed, plane.wake_ups.wakings) == (1, {}, {name: (key, wake_at)})


@pytest.mark.guards("hold-batch-digest")
def test_a_batch_whose_bytes_are_not_those_that_were_stored_is_not_set_to_wake(plane: Plane) -> None:
    plane.hold(entry(1, DAY), entry(2, 40 * DAY))
    key, other = plane.holds.objects
    plane.holds.objects[key] = plane.holds.objects[other]
    plane.wake_ups.wakings.clear()
    assert type(plane.hold(dead_letter_of(key)).failed[0]) is UnreadableBatch
    assert plane.wake_ups.wakings == {}


@pytest.mark.guards("hold-dead-letter-time-limit")
def test_dead_letters_come_after_images_and_stop_in_good_time(plane: Plane) -> None:
    plane.holds.get = refuse
    holding = plane.hold(dead_letter_of(f"holds/x/{'0' * 40}.json.gz"), entry(1, DAY))
    assert (list(holding.failed), holding.held) == ([0], 1)
    plane.out_of_time = True
    plane.holds.get = lambda key: pytest.fail("there was no time for it")
    assert type(plane.hold(dead_letter_of(f"holds/x/{'0' * 40}.json.gz")).failed[0]) is Retryable


@pytest.mark.guards("hold-lane-bug-isolated", "hold-sends-per-lane")
@pytest.mark.parametrize("error", [Retryable("throttled"), KeyError("fast"), RuntimeError("a bug")], ids=repr)
def test_a_lane_that_fails_costs_no_other_lanes_images_anything(plane: Plane, error: Exception) -> None:

    def fail_in_the_fast_lane(message: Message, **_: int) -> None:
        if message.lane == "fast":
            raise error

    meanwhile(plane.lanes, "send", fail_in_the_fast_lane)
    holding = plane.hold(entry(1, 100, lane="fast"), entry(2, 200), entry(3, 300, lane="fast"), entry(4, DAY))
    assert holding.failed == {0: error, 2: error}
    assert (holding.sent, holding.held) == (1, 1)


def test_a_message_that_its_queue_refuses_fails_alone(plane: Plane) -> None:
    plane.lanes.send_all = lambda lane, messages: {1: Unplaceable("refused")}
    holding = plane.hold(entry(1, 100), entry(2, 200), entry(3, 300))
    assert (list(holding.failed), holding.sent) == ([1], 2)


@pytest.mark.guards("hold-batch-bug-isolated")
@pytest.mark.parametrize("port", ["holds", "wake_ups"])
def test_a_batch_that_trips_a_bug_costs_the_others_nothing(plane: Plane, port: str) -> None:
    method = {"holds": "put", "wake_ups": "set"}[port]
    meanwhile(getattr(plane, port), method, raising(RuntimeError("a bug")), times=1)
    holding = plane.hold(entry(1, DAY), entry(2, 40 * DAY))
    assert ([type(error) for error in holding.failed.values()], holding.batches) == ([RuntimeError], 1)


@pytest.mark.guards("hold-wheel-bug-isolated")
def test_an_image_whose_place_on_the_wheel_trips_a_bug_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trip(process_at: int, now: int) -> Any:
        if process_at == entry(2, 40 * DAY).process_at:
            raise ZeroDivisionError
        return level_of(process_at, now)

    monkeypatch.setattr("darkroom.domain.schedules.hold.level_of", trip)
    holding = Plane().hold(entry(1, DAY), entry(2, 40 * DAY), entry(3, 300))
    assert ([type(error) for error in holding.failed.values()], holding.held) == ([ZeroDivisionError], 1)
    assert list(holding.failed) == [1]


# ── Messages that do not verify ──────────────────────────────────────────────────────────────────────────────────────


def forged(entry: HeldMessage) -> Received:
    return unsigned(body_of(entry), message_id="forged")


def test_what_does_not_verify_is_set_aside_and_the_rest_is_held(plane: Plane) -> None:
    holding = plane.hold(entry(1, DAY), forged(entry(2, DAY)), forged(entry(3, 60)))
    assert (holding.failed, holding.held, holding.sent) == ({}, 1, 0)
    assert holding.rejected == {1: VerificationFailure.UNSIGNED, 2: VerificationFailure.UNSIGNED}
    assert len(plane.rejected.messages[HOLD]) == 2


def test_what_cannot_be_set_aside_comes_again(plane: Plane) -> None:
    plane.rejected.put_rejected = refuse  # type: ignore[method-assign]
    holding = plane.hold(entry(1, DAY), forged(entry(2, DAY)))
    assert (holding.held, holding.rejected, list(holding.failed)) == (1, {}, [1])
    assert isinstance(holding.failed[1], Retryable)


@pytest.mark.guards("signatures-rejection-time")
def test_without_time_left_what_is_rejected_comes_again() -> None:
    plane = Plane(out_of_time=True)
    holding = plane.hold(forged(entry(2, DAY)))
    assert (list(holding.failed), plane.rejected.messages[HOLD]) == ([0], [])


def test_a_batch_of_the_state_machine_needs_no_signature(plane: Plane) -> None:
    assert plane.hold(unsigned(dead_letter_of(f"holds/x/{'0' * 40}.json.gz"))).failed == {}
    assert plane.rejected.messages[HOLD] == []
