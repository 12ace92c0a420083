"""One image through the whole pipeline, with a process dying at every call that it makes to the world."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.tenants.upload_tokens import UploadToken
from tests.support.fakes import FakeImages, FakeLanes, FakeOnce, FakeOriginals, FakeOutputs, World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.tenants import FakeUploadTokenUses
from tests.support.fakes.world import VISIBILITY_SECONDS
from tests.support.faults import Faults, Mode, ProcessDied, at

pytestmark = pytest.mark.promise("image-survives")

PHOTO = jpeg(320, 240)
KEY = "order-17"

MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "denied", "answer lost")


@dataclass
class Story:
    """A client that repeats its request until it is answered, a queue that redelivers, and a sweeper."""

    faults: Faults
    messages: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.images, self.outputs, self.lanes = FakeImages(), FakeOutputs(), FakeLanes()
        self.world = World(
            images=self.faults.around("images", self.images),
            originals=self.faults.around("originals", FakeOriginals()),
            outputs=self.faults.around("outputs", self.outputs),
            lanes=self.faults.around("lanes", self.lanes),
            once=self.faults.around("once", FakeOnce()),
        )
        self.hide = self.faults.around("hide", lambda seconds: None)

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
                return self.world.submit(PHOTO, idempotency_key=KEY, tier=Tier.PAID).image.image_id
            except (ProcessDied, Retryable, PermissionError):
                self.world.advance(5)
        raise AssertionError("the client was never answered")

    def _deliver_all(self) -> None:
        self.messages += self.lanes.sent
        self.lanes.sent.clear()
        for number, message in enumerate(list(self.messages)):
            try:
                receipt = f"receipt-{self.world.now}-{number}"
                verdict = self.world.deliver(message, receipt=receipt, hide=self.hide)
            except (ProcessDied, PermissionError):
                continue  # neither acknowledged nor hidden: it returns after its visibility timeout
            if verdict.returns_in_seconds is None:
                self.messages.remove(message)

    def _sweep(self) -> None:
        with suppress(ProcessDied, Retryable, PermissionError):
            self.world.sweep()


def undisturbed() -> Story:
    story = Story(Faults())
    story.tell()
    return story


CALLS = undisturbed().faults.calls


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
        "hide",
        "once",
    } <= set(CALLS)


# The calls after the image is done are the sweeps of a quiet system: one round of them is representative.
FIRST_QUIET_CALL = max(number for number, name in enumerate(CALLS) if name != "images.due") + 17


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", range(min(FIRST_QUIET_CALL, len(CALLS))), ids=lambda at: f"{at}-{CALLS[at]}")
def test_an_accepted_image_survives(number: int, mode: Mode) -> None:
    story = Story(Faults(at(number, mode), is_one_process=False))
    image_id = story.tell()
    assert len(story.faults.calls) > number, "the fault struck"

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
    for number in range(0, len(CALLS), 3):
        story = Story(Faults(at(number, "dies after"), is_one_process=False))
        story.tell()
        assert story.outputs.objects == reference, CALLS[number]


TOKEN = UploadToken(token_id="0" * 16, key_id="k", expires_at=World().now + 86_400_000, count=1, max_bytes=10**6)


def uploaded_by_token(faults: Faults) -> tuple[World, str]:
    """A browser that repeats its request, with its key, until it is answered; returns its image's id."""
    world = World(
        images=faults.around("images", FakeImages()),
        originals=faults.around("originals", FakeOriginals()),
        lanes=faults.around("lanes", FakeLanes()),
        upload_token_uses=faults.around("upload_token_uses", FakeUploadTokenUses()),
    )
    for _ in range(5):
        with suppress(ProcessDied, Retryable, PermissionError):
            return world, world.submit(PHOTO, idempotency_key=KEY, upload_token=TOKEN).image.image_id
    raise AssertionError("the browser was never answered")


@pytest.mark.parametrize("mode", MODES)
def test_an_upload_by_a_token_for_one_is_accepted_and_counts_once(mode: Mode) -> None:
    faults = Faults()
    uploaded_by_token(faults)
    assert "upload_token_uses.use" in faults.calls
    for number in range(len(faults.calls)):
        world, image_id = uploaded_by_token(Faults(at(number, mode), is_one_process=False))
        assert world.row(image_id).upload_token == TOKEN.token_id
        with pytest.raises(Rejected, match="as many photos as it allows"):
            world.submit(PHOTO, upload_token=TOKEN)
