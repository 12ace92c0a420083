"""Four layers keep an image from being made twice: which of them holds what, if the three others are switched off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import Message
from darkroom.ports.images import StoredOutput
from repository.report import ROOT
from tests.support.fakes import FakeImages, FakeOnce, FakeOutputs, World
from tests.support.fakes.pictures import jpeg

pytestmark = pytest.mark.promise("idempotency-layers")

PHOTO = jpeg(320, 240)
A_LEASE_AND_A_BACKOFF_SECONDS = 3600

LAYERS = ("broker deduplication", "record", "natural keys", "conditional writes")
HOLDS = ("one image", "one end", "objects unchanged", "developed once")


@dataclass
class Table(FakeImages):
    """The table of images. Unless its writes are `conditional`, the last one wins. What is in `at_ends` happens just
    before the next writes that end an image."""

    conditional: bool = True
    at_ends: list[Callable[[], None]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def create(self, image: Image) -> Image:
        if not self.conditional:
            self.rows.pop(image.image_id, None)
        return super().create(image)

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        is_end = after.status is Status.DONE and before.status is not Status.DONE
        if is_end and self.at_ends:
            self.at_ends.pop(0)()
        written = super().change(before, after, fence=fence if self.conditional else ())
        self.ends[before.image_id] += is_end
        return written


@dataclass
class Objects(FakeOutputs):
    """The bucket of variants; unless keys are `natural`, a put replaces what is there."""

    natural: bool = True
    replaced: int = 0

    def put_if_absent(self, key: str, body: bytes, **about: Any) -> StoredOutput:
        if not self.natural:
            self.replaced += self.objects.pop(key, None) is not None
        return super().put_if_absent(key, body, **about)


class NoRecord(FakeOnce):
    """It remembers nothing."""

    def keep(self, key: str, result: dict[str, Any]) -> None:
        pass


@dataclass
class Story:
    """A client sends a photo three times, an end is not written, a worker outlives its lease, and each message comes
    twice."""

    on: frozenset[str]
    delivered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.images = Table(conditional="conditional writes" in self.on)
        self.outputs = Objects(natural="natural keys" in self.on)
        once = FakeOnce() if "record" in self.on else NoRecord()
        self.world = World(images=self.images, outputs=self.outputs, once=once)
        self.worked = 0

    def send(self) -> None:
        """The client's request; without natural keys the repetitions of a request are requests of their own."""
        key = "order-17" if "natural keys" in self.on else None
        self.world.submit(PHOTO, idempotency_key=key, variants="thumb")

    def messages(self) -> list[Message]:
        """What the broker delivers of what was sent: everything twice, or nothing that it has delivered before."""
        sent = [*self.world.lanes.sent]
        self.world.lanes.sent.clear()
        if "broker deduplication" not in self.on:
            return sent * 2
        fresh = {message.model_dump_json(): message for message in sent}
        fresh = {body: message for body, message in fresh.items() if body not in self.delivered}
        self.delivered |= fresh.keys()
        return [*fresh.values()]

    def deliver(self, message: Message) -> None:
        self.worked += 1
        self.world.deliver(message, receipt=f"receipt-{self.worked}", receive_count=1)

    def play(self) -> dict[str, bool]:
        """What held."""
        self.send()
        self.send()
        first, *others = self.messages()

        def unwritten() -> None:
            raise Retryable("the table does not answer")

        def outlived() -> None:
            self.world.advance(A_LEASE_AND_A_BACKOFF_SECONDS)
            self.deliver(first)

        self.images.at_ends = [unwritten, outlived]
        for message in (first, first, *others):
            self.deliver(message)
            self.world.advance(A_LEASE_AND_A_BACKOFF_SECONDS)
        assert self.images.at_ends == []
        self.send()
        for message in self.messages():
            self.deliver(message)
        ends, puts = self.images.ends, self.outputs.puts
        assert {image.status for image in self.images.rows.values()} == {Status.DONE}, "and all that were sent are made"
        return {
            "one image": len(self.images.rows) == 1,
            "one end": set(ends.values()) == {1},
            "objects unchanged": self.outputs.replaced == 0,
            "developed once": set(puts.values()) == {1},
        }


def documented() -> dict[str, dict[str, bool]]:
    """The table of docs/testing.md: what holds, by what is on."""
    page = (ROOT / "docs" / "testing.md").read_text()
    section = page.partition("## Layers of idempotency\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    (_, *names), *rows = [line for line in lines if not line[0].startswith("---")]
    assert tuple(names) == HOLDS
    return {on: dict(zip(HOLDS, (cell == "yes" for cell in cells), strict=True)) for on, *cells in rows}


ROWS = {
    "all four": frozenset(LAYERS),
    **{f"{layer} alone": frozenset({layer}) for layer in LAYERS},
    "none": frozenset(),
}


@pytest.mark.parametrize("on", ROWS)
def test_what_holds_is_what_the_page_says(on: str) -> None:
    assert Story(ROWS[on]).play() == documented()[on]


def test_the_page_has_no_other_rows() -> None:
    assert documented().keys() == ROWS.keys()


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_but_the_brokers_holds_something_that_the_three_others_do_not(layer: str) -> None:
    held = Story(frozenset(LAYERS) - {layer}).play()
    assert all(held.values()) == (layer == "broker deduplication"), "a broker's is never needed"
