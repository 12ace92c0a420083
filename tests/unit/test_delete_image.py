"""Withdrawing an image."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from darkroom.domain.images.image import Attempt, Cause, DeadLetterState, Failure, Image, Status, Variant
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Rejected, UnknownImage
from darkroom.operations.images.read_image import ReadImagePorts, read_image
from darkroom.operations.images.transcode_image import Finished
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import accepted_image, told_by

PHOTO = jpeg()


def test_an_unfinished_image_is_cancelled_and_its_message_finds_nothing_to_do(world: World) -> None:
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    world.delete(image_id)
    world.delete(image_id)
    assert world.deliver(world.lanes.sent[0]) == Finished(image=world.row(image_id), reason="terminal")
    assert world.row(image_id).status is Status.CANCELLED


@pytest.mark.guards("erasure-deleted-image-unknown", "erasure-deleted-key-used-up")
@pytest.mark.parametrize("is_done", [True, False])
def test_a_deleted_image_is_unknown_and_its_key_is_used_up_whatever_is_sent_with_it(is_done: bool) -> None:
    world = World()
    image_id = world.submit(PHOTO, idempotency_key="k").image.image_id
    if is_done:
        world.deliver(world.lanes.sent[0])
    world.delete(image_id)
    with pytest.raises(UnknownImage):
        read_image(world.ports(ReadImagePorts), image_id, tenant_id="default")
    for photo in (PHOTO, jpeg(40, 30)):
        with pytest.raises(Rejected, match="was deleted") as refusal:
            world.submit(photo, idempotency_key="k")
        assert refusal.value.code == "image_deleted"
    with pytest.raises(Rejected, match="was deleted"):
        world.begin(PHOTO, idempotency_key="k")


NOW = 1_795_251_600_000
ATTEMPTS = (
    Attempt(
        run=1,
        number=1,
        request_id="r",
        started_at=NOW,
        ended_at=NOW,
        cause=Cause(error_type="KeyError", message="m", stack="s"),
    ),
)

ENDINGS: dict[str, Callable[[Image], Image]] = {
    "pending": lambda image: image,
    "scheduled": lambda image: replace(image, status=Status.SCHEDULED, process_at=NOW + 1, expires_at=NOW + 2),
    "in progress": lambda image: replace(
        image, status=Status.PROCESSING, attempt=2, claimed_by="w", lease_until=NOW, not_before=NOW, attempts=ATTEMPTS
    ),
    "done": lambda image: replace(
        image,
        status=Status.DONE,
        completed_at=NOW,
        waiting_since=None,
        attempts=ATTEMPTS,
        variants=(Variant(name="a", width=1, height=1, format="webp", size_bytes=1, sha256="s", key="k"),),
        placeholder={"thumbhash": "t", "color": "#ffffff"},
        attention={"x": 1, "y": 2},
        notices=("something was left out",),
    ),
    "given up": lambda image: replace(
        image,
        status=Status.FAILED,
        completed_at=NOW,
        waiting_since=None,
        attempts=ATTEMPTS,
        error=Failure(code="internal", message="m", retryable=True),
        dead_letter=DeadLetterState.KEPT,
    ),
}


@pytest.mark.guards("attention-tombstone-cleared")
@pytest.mark.guards("erasure-tombstone-no-notices", case="done")
@pytest.mark.guards("erasure-tombstone-no-attempts", case="given up")
@pytest.mark.guards(
    "erasure-tombstone-no-fingerprint", "erasure-tombstone-no-recipe", "erasure-tombstone-no-source", case="pending"
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_tombstone_says_nothing_about_the_picture_or_its_errors(ending: str) -> None:
    tombstone = delete(ENDINGS[ending](accepted_image(now=NOW)), now=NOW + 5)
    assert told_by(tombstone) == set()
    assert (tombstone.image_id, tombstone.tenant_id, tombstone.preset) == ("0" * 26, "default", "standard")
    assert (tombstone.created_at, tombstone.deleted_at, tombstone.due_at) == (NOW, NOW + 5, NOW + 5)


@pytest.mark.guards("tenant-withdrawal-own-only")
@pytest.mark.parametrize("image_id", ["0" * 26, "no id at all"])
def test_an_image_that_is_not_there_or_anothers_cannot_be_deleted(world: World, image_id: str) -> None:
    theirs = world.submit(PHOTO, tenant_id="them").image.image_id
    for unknown in (image_id, theirs):
        with pytest.raises(UnknownImage):
            world.delete(unknown)
    assert not world.row(theirs).is_deleted


def test_a_claim_between_reading_and_writing_does_not_save_it(world: World) -> None:
    image_id = world.submit(PHOTO).image.image_id
    get = world.images.get
    reads: list[str] = []

    def claimed_meanwhile(wanted: str) -> Image | None:
        image: Image | None = get(wanted)
        if not reads:
            world.images.rows[wanted] = replace(
                world.images.rows[wanted], status=Status.PROCESSING, version=world.images.rows[wanted].version + 1
            )
        reads.append(wanted)
        return image

    world.images.get = claimed_meanwhile
    world.delete(image_id)
    assert world.images.rows[image_id].status is Status.CANCELLED
