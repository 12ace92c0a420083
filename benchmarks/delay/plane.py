"""The delay plane by its own operations, with every request counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.delay.ways import AWS_CALL_MILLISECONDS, BATCH
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import HOLD, LANES
from darkroom.domain.kernel.message import Message
from darkroom.operations.schedules.hold_images import HoldImagesPorts, hold_images
from darkroom.operations.schedules.release_images import ReleaseImagesPorts, release_images
from tests.support.fakes.messages import KEYS, received
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.stores import (
    FakeDeadLetters,
    FakeHoldQueue,
    FakeHolds,
    FakeImages,
    FakeLanes,
    FakeReservations,
    FakeWakeUps,
)
from tests.support.virtual.cloud import Call, Cloud, Plan, Remote, always
from tests.support.virtual.virtual_time import START, VirtualTime

DAY = 24 * 3600
SUBMITTED_WITHIN_SECONDS = 3600
EVENT_MESSAGES = 7_000
"""How many records 6 MB are."""

BAD_MESSAGES = (
    "nothing of ours",
    f'{{"v":1,"image_id":"{"0" * 26}","tenant_id":"t","lane":"nowhere","run":1,"schedule":0,"process_at":{START}}}',
    f'{{"v":1,"image_id":"{"0" * 26}","tenant_id":"t","lane":"slow","run":1,"schedule":0,"process_at":{10**30}}}',
)
"""The bad messages in every event of the hold queue, besides the images."""

WINDOW_SECONDS = 60
STATES_OF_A_WINDOW = 3
HOLD_GB, RELEASE_GB = 0.5, 1.0


@dataclass(frozen=True, kw_only=True)
class Load:
    """How far ahead the images of an hour are scheduled: all to one instant, or scattered over all that time."""

    name: str
    days: float
    aligned: bool

    @property
    def seconds(self) -> float:
        """How long an image waits on average."""
        return self.days * DAY * (1 if self.aligned else 0.5)


LOADS = (
    Load(name="30 days, aligned", days=30, aligned=True),
    Load(name="30 days, scattered", days=30, aligned=False),
    Load(name="364 days, scattered", days=364, aligned=False),
)


def _image() -> Image:
    return accepted_image(now=START, process_at=START + 1)


class _Rows(FakeImages):
    """Every image is still waiting; rows are generated on demand."""

    def get_all(self, image_ids: Sequence[str]) -> dict[str, Image]:
        image = _image()
        return {image_id: replace(image, image_id=image_id) for image_id in image_ids}


class _Queue(FakeLanes, FakeHoldQueue):
    """The lanes or the hold queue, which only hand over what they get."""

    def __init__(self, take: Callable[[Sequence[Message]], None]) -> None:
        super().__init__()
        self._take = take

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        self._take([message for message, _ in messages])
        return {}

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        self._take(messages)
        return {}


class _WakeUps(FakeWakeUps):
    def __init__(self, start: Callable[[str, Milliseconds], None]) -> None:
        super().__init__()
        self._start = start

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        super().set(name, key, wake_at)
        self._start(key, wake_at)


def _billed(**units: float) -> Plan:
    return always(Call(service="", billed={name.replace("_", " "): count for name, count in units.items()}))


def _batches(messages: Sequence[object]) -> Sequence[Call]:
    return [Call(service="", billed={"SQS requests": 1})] * -(-len(messages) // BATCH)


_WRITTEN, _READ = _billed(DynamoDB_write_units=1), _billed(DynamoDB_read_units=1)
PLANS: Mapping[str, Mapping[str, Plan]] = {
    # Consistent, under 4 KB.
    "images": {"get_all": lambda ids: [Call(service="", billed={"DynamoDB read units": len(ids)})]},
    "lanes": {"send_all": lambda lane, messages: _batches(messages)},
    "hold_queue": {"put_all": _batches},
    "holds": {"put": _billed(S3_puts=1, objects=1), "get": _billed(S3_gets=1), "delete": _billed(S3_deletes=1)},
    "reservations": {"reserve": _WRITTEN, "note_window": _WRITTEN, "window_of": _READ},
    "wake_ups": {"set": _billed(executions=1, Step_Functions_transitions=1)},  # Done
}
"""What each method is billed, by store; besides, an object and an execution are counted."""


@dataclass
class Plane:
    """One load through the delay plane. `counts` are the requests by the name of their price, plus `executions`,
    `objects`, `released` and `held again`."""

    load: Load
    images: int
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.time = VirtualTime()
        self._waiting: list[str] = []
        self._drains = False
        self._cloud = Cloud(self.time, {}, random.Random(self.seed))
        stores: dict[str, Any] = {
            "images": _Rows(),
            "lanes": _Queue(lambda messages: self.counts.update({"released": len(messages)})),
            "hold_queue": _Queue(self._hold_again),
            "holds": FakeHolds(),
            "reservations": FakeReservations(),
            "wake_ups": _WakeUps(
                lambda key, wake_at: self.time.at_instant(wake_at, lambda: self._window(key, 0, None))
            ),
        }
        self._stores: dict[str, Any] = {
            name: Remote(self._cloud, name, store, PLANS[name]) for name, store in stores.items()
        }

    def run(self) -> Mapping[str, int]:
        """Plays the load to its end; returns `counts`."""
        chance = random.Random(self.seed)
        minutes = SUBMITTED_WITHIN_SECONDS // WINDOW_SECONDS
        for minute in range(minutes):
            first, last = (self.images * part // minutes for part in (minute, minute + 1))
            self.time.at(
                minute * WINDOW_SECONDS * 1000,
                lambda first=first, last=last: self._arrive(first, last, chance),  # type: ignore[misc]
            )
        self.time.run()
        billed = Counter({name: round(count) for name, count in self._cloud.billed.items()})
        return self.counts + billed + Counter(calls=self._cloud.calls.total())

    def _arrive(self, first: int, last: int, chance: random.Random) -> None:
        """A minute's uploads: each sends one message of its own to the hold queue."""
        bodies = []
        for number in range(first, last):
            # No further ahead than the load's days for the first upload either: images are held for at most 364.
            ahead = self.load.days * DAY
            if not self.load.aligned:
                ahead = chance.uniform(SUBMITTED_WITHIN_SECONDS + 1000, ahead)
            process_at = START + int(ahead * 1000)
            message = Message.model_construct(
                v=1,
                image_id=f"{number:026d}",
                tenant_id="default",
                lane="slow",
                run=1,
                schedule=0,
                process_at=process_at,
            )
            bodies.append(message.model_dump_json())
        self.counts["SQS requests"] += len(bodies)
        self._wait(bodies)

    def _hold_again(self, messages: Sequence[Message]) -> None:
        self.counts["held again"] += len(messages)
        self._wait([message.model_dump_json() for message in messages])

    def _wait(self, bodies: Sequence[str]) -> None:
        self._waiting += bodies
        if self._waiting and not self._drains:
            self._drains = True
            self.time.after(WINDOW_SECONDS * 1000, self._drain)

    def _drain(self) -> None:
        """The events of a window: Lambda's pollers receive and delete ten messages at a time."""
        while self._waiting:
            event, self._waiting = self._waiting[:EVENT_MESSAGES], self._waiting[EVENT_MESSAGES:]
            self.counts["SQS requests"] += 2 * -(-len(event) // BATCH)
            with_calls = self._cloud.calls.total()
            # Bad messages among them cost the good ones nothing.
            bodies = [*BAD_MESSAGES, *event]
            ports = HoldImagesPorts(
                lanes=self._stores["lanes"],
                holds=self._stores["holds"],
                wake_ups=self._stores["wake_ups"],
                clock=self.time.now,
                known_lanes=LANES,
                message_keys=KEYS,
                rejected_messages=FakeDeadLetters(),
            )
            holding = hold_images(ports, [received(HOLD, body) for body in bodies], out_of_time=lambda: False)
            if holding.failed.keys() != set(range(len(BAD_MESSAGES))):
                raise RuntimeError(f"failed: {holding.failed}")
            self._ran(HOLD_GB, self._cloud.calls.total() - with_calls)
        self._drains = False

    def _window(self, key: str, position: int, begins_at: Milliseconds | None) -> None:
        self.counts["Step Functions transitions"] += STATES_OF_A_WINDOW
        with_calls = self._cloud.calls.total()
        released = release_images(
            ReleaseImagesPorts(
                images=self._stores["images"],
                lanes=self._stores["lanes"],
                hold_queue=self._stores["hold_queue"],
                holds=self._stores["holds"],
                reservations=self._stores["reservations"],
                clock=self.time.now,
                service=LANES,
            ),
            key,
            position=position,
            begins_at=begins_at,
            out_of_time=lambda: False,
        )
        self._ran(RELEASE_GB, self._cloud.calls.total() - with_calls)
        if not released.done:
            self.time.at_instant(released.wake_at, lambda: self._window(key, released.position, released.begins_at))

    def _ran(self, gigabytes: float, calls: int) -> None:
        self.counts["Lambda requests"] += 1
        self.counts["Lambda GB-milliseconds"] += round(gigabytes * (calls * AWS_CALL_MILLISECONDS + 50))
