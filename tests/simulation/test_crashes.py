"""One image through the whole pipeline, with a process dying at every call that it makes to the world."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Retryable
from proof.fakes import FakeImages, FakeLanes, FakeOnce, FakeOriginals, FakeOutputs, World
from proof.fakes.pictures import jpeg
from proof.fakes.world import VISIBILITY_SECONDS

PHOTO = jpeg(320, 240)
KEY = "order-17"

MODES = ("dies before", "dies after", "fails before", "denied", "answer lost")


class ProcessDied(BaseException):
    """The process is gone: no handler sees this."""


@dataclass
class Fault:
    """Strikes once, at the call with that number, in that mode; without a number it only counts."""

    at: int | None = None
    mode: str = ""
    calls: list[str] = field(default_factory=list)

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) - 1 != self.at:
                return call(*arguments, **options)
            if self.mode == "dies before":
                raise ProcessDied
            if self.mode == "fails before":
                raise Retryable(f"{name}: throttled")
            if self.mode == "denied":
                raise PermissionError(name)
            answer = call(*arguments, **options)
            if self.mode == "dies after":
                raise ProcessDied
            assert self.mode == "answer lost"
            del answer
            raise Retryable(f"{name}: the answer never came")

        return wrapped


class Wrapped:
    """A store whose every call may be struck."""

    def __init__(self, name: str, store: Any, fault: Fault) -> None:
        self._name, self._store, self._fault = name, store, fault

    def __getattr__(self, method: str) -> Any:
        value = getattr(self._store, method)
        if not callable(value) or method == "url_of":
            return value
        return self._fault.around(f"{self._name}.{method}", value)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._fault.around(self._name, self._store)(*arguments, **options)


@dataclass
class Story:
    """A client that repeats its request until it is answered, a queue that redelivers, and a sweeper."""

    fault: Fault
    messages: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.images, self.outputs, self.lanes = FakeImages(), FakeOutputs(), FakeLanes()
        self.world = World(
            images=Wrapped("images", self.images, self.fault),
            originals=Wrapped("originals", FakeOriginals(), self.fault),
            outputs=Wrapped("outputs", self.outputs, self.fault),
            lanes=Wrapped("lanes", self.lanes, self.fault),
            once=Wrapped("once", FakeOnce(), self.fault),
        )

    def tell(self) -> str:
        """Plays until nothing is left to do; returns the image's id."""
        image_id = self._submit()
        for _ in range(12):
            self._deliver_all()
            self._sweep()
            self.world.advance(VISIBILITY_SECONDS + 1)
        return image_id

    def _submit(self) -> str:
        for _ in range(5):
            try:
                return self.world.submit(PHOTO, idempotency_key=KEY).image.image_id
            except (ProcessDied, Retryable, PermissionError):
                self.world.advance(5)
        raise AssertionError("the client was never answered")

    def _deliver_all(self) -> None:
        self.messages += self.lanes.sent
        self.lanes.sent.clear()
        for number, message in enumerate(list(self.messages)):
            try:
                verdict = self.world.deliver(message, receipt=f"receipt-{self.world.now}-{number}")
            except (ProcessDied, PermissionError):
                continue  # neither acknowledged nor hidden: it returns after its visibility timeout
            if verdict.returns_in_seconds is None:
                self.messages.remove(message)

    def _sweep(self) -> None:
        with suppress(ProcessDied, Retryable, PermissionError):
            self.world.sweep()


def undisturbed() -> Story:
    story = Story(Fault())
    story.tell()
    return story


CALLS = undisturbed().fault.calls


def test_the_recording_found_every_kind_of_call() -> None:
    assert {
        "images.get",
        "images.create",
        "images.change",
        "images.due",
        "originals.put_if_absent",
        "originals.get",
        "outputs.put_if_absent",
        "lanes.send",
        "once",
    } <= set(CALLS)


# The calls after the image is done are the sweeps of a quiet system: one round of them is representative.
FIRST_QUIET_CALL = max(number for number, name in enumerate(CALLS) if name != "images.due") + 17


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", range(min(FIRST_QUIET_CALL, len(CALLS))), ids=lambda at: f"{at}-{CALLS[at]}")
def test_an_accepted_image_survives(at: int, mode: str) -> None:
    story = Story(Fault(at=at, mode=mode))
    image_id = story.tell()
    assert len(story.fault.calls) > at, "the fault struck"

    image = story.images.rows[image_id]
    assert image.status is Status.DONE
    assert image.due_at is None
    assert len(story.images.rows) == 1
    assert {variant.name for variant in image.variants} == {"thumb", "medium", "large", "webp"}
    assert {variant.key for variant in image.variants} == set(story.outputs.objects)
    for variant in image.variants:
        assert hashlib.sha256(story.outputs.objects[variant.key]).hexdigest() == variant.sha256
    assert story.messages == [] and story.lanes.sent == []


def test_the_outputs_are_the_same_bytes_whatever_happened() -> None:
    reference = undisturbed().outputs.objects
    for at in range(0, len(CALLS), 3):
        story = Story(Fault(at=at, mode="dies after"))
        story.tell()
        assert story.outputs.objects == reference, CALLS[at]
