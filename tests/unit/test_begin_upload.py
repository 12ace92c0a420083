"""Announcing an upload: what is promised, what is refused, and what a retry finds."""

import re
from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import Rejected, Retryable, TurnedAway
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.kernel.tenants import Tier
from darkroom.ports.kernel import Fenced
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.faults import failing, meanwhile

PHOTO = jpeg()


def test_an_announced_upload_has_a_row_that_waits_and_a_form_for_its_bytes_alone(world: World) -> None:
    begun = world.begin(PHOTO, content_type="image/jpeg")
    image = world.row(begun.image.image_id)
    assert is_image_id(image.image_id)
    assert (image.status, image.has_original, image.source.size_bytes) == (Status.AWAITING_UPLOAD, False, len(PHOTO))
    assert begun.form is not None and begun.form.fields["Content-Type"] == "image/jpeg"
    assert begun.form.fields["sha256"] == image.source.sha256 and begun.form.fields["bytes"] == str(len(PHOTO))
    assert begun.form.expires_at == world.now + 300_000
    assert (world.lanes.sent, world.originals.objects) == ([], {})


@pytest.mark.guards("tenants-upload-tier-lane")
@pytest.mark.parametrize(("tier", "lane"), [(Tier.PAID, "fast"), (Tier.FREE, "slow")])
def test_an_announced_upload_is_its_tenants_and_travels_in_the_lane_of_their_tier(tier: Tier, lane: str) -> None:
    world = World()
    begun = world.begin(PHOTO, tenant_id="acme", tier=tier)
    assert (begun.image.tenant_id, begun.image.lane) == ("acme", lane)
    world.upload(begun, PHOTO)
    world.accept_upload(begun.image.image_id)
    assert [(message.tenant_id, message.lane) for message in world.lanes.sent] == [("acme", lane)]


def test_the_row_is_there_before_its_form_can_be_sent(world: World) -> None:
    def look(*_: Any, **__: Any) -> Any:
        assert len(world.images.rows) == 1
        raise Retryable("the test ends here")

    world.uploads.form_for = look
    with pytest.raises(Retryable):
        world.begin(PHOTO)


def test_a_file_that_is_too_large_is_refused_and_leaves_nothing() -> None:
    world = World(limits=Limits(max_bytes=len(PHOTO) - 1))
    with pytest.raises(
        Rejected, match=re.escape(f"has {excess_in_words(len(PHOTO), len(PHOTO) - 1)} are allowed")
    ) as refusal:
        world.begin(PHOTO)
    assert (refusal.value.code, world.images.rows) == ("upload_too_large", {})
    World(limits=Limits(max_bytes=len(PHOTO))).begin(PHOTO)


def test_the_same_key_and_bytes_are_one_image_with_a_fresh_form_and_time(world: World) -> None:
    first = world.begin(PHOTO, idempotency_key="k")
    world.advance(299)
    again = world.begin(PHOTO, idempotency_key="k", content_type="image/jpeg")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.image.image_id == first.image.image_id
    assert again.form is not None and again.form.expires_at == world.now + 300_000
    assert world.row(again.image.image_id).due_at == world.now + 900_000
    assert len(world.images.rows) == 1


def test_two_announcements_without_a_key_are_two_images(world: World) -> None:
    assert world.begin(PHOTO).image.image_id != world.begin(PHOTO).image.image_id


@pytest.mark.parametrize("other", [{"preset": "avatar"}, {"variants": ["thumb"]}, {"delay": "PT1H"}])
def test_the_same_key_with_another_order_is_refused(world: World, other: dict[str, Any]) -> None:
    world.begin(PHOTO, idempotency_key="k")
    with pytest.raises(Rejected) as refusal:
        world.begin(PHOTO, idempotency_key="k", **other)
    assert refusal.value.code == "idempotency_key_reused"
    with pytest.raises(Rejected):
        world.begin(jpeg(10, 10), idempotency_key="k")


@pytest.mark.guards("upload-announced-key-distinct")
def test_a_key_that_announced_bytes_is_not_answered_as_if_it_had_brought_them_nor_the_other_way_round() -> None:
    world = World()
    world.begin(PHOTO, idempotency_key="announced")
    world.submit(PHOTO, idempotency_key="sent")
    for request, key in ((world.submit, "announced"), (world.begin, "sent")):
        with pytest.raises(Rejected) as refusal:
            request(PHOTO, idempotency_key=key)
        assert refusal.value.code == "idempotency_key_reused"


def test_a_repeat_after_the_upload_arrived_gets_its_image_and_no_form(world: World) -> None:
    begun = world.begin(PHOTO, idempotency_key="k")
    world.upload(begun, PHOTO)
    world.accept_upload(begun.image.image_id)
    again = world.begin(PHOTO, idempotency_key="k")
    assert (again.replayed, again.form, again.image.status) == (True, None, Status.PENDING)


@pytest.mark.guards("upload-renewal-fence")
def test_a_repeat_while_the_upload_arrives_gets_its_current_state(world: World) -> None:
    begun = world.begin(PHOTO, idempotency_key="k")

    def arrive(*_: Any, **__: Any) -> None:
        world.upload(begun, PHOTO)
        world.accept_upload(begun.image.image_id)

    meanwhile(world.images, "change", arrive, times=1)
    again = world.begin(PHOTO, idempotency_key="k")
    assert (again.form, again.image.status) == (None, Status.PENDING)


def test_a_row_that_changes_under_every_look_is_answered_by_a_503(world: World) -> None:
    image = world.begin(PHOTO, idempotency_key="k").image
    world.images = failing(world.images, "change", Fenced(image))
    with pytest.raises(Retryable):
        world.begin(PHOTO, idempotency_key="k")


def test_the_key_of_a_deleted_image_gets_no_other_form(world: World) -> None:
    begun = world.begin(PHOTO, idempotency_key="k")
    world.delete(begun.image.image_id)
    for photo in (PHOTO, PHOTO + b"more"):
        with pytest.raises(Rejected) as refusal:
            world.begin(photo, idempotency_key="k")
        assert refusal.value.code == "image_deleted"


def test_a_time_that_is_past_is_refused_and_one_to_come_is_kept(world: World) -> None:
    with pytest.raises(Rejected) as refusal:
        world.begin(PHOTO, process_at="2020-01-01T00:00:00Z")
    assert refusal.value.code == "invalid_process_at"
    assert world.begin(PHOTO, delay="PT1H").image.process_at == world.now + 3_600_000


@pytest.mark.guards("load-shedding-announcement")
def test_a_full_lane_turns_new_announcements_away_but_no_repetition_and_nothing_that_was_announced() -> None:
    world = World()
    begun = world.begin(PHOTO, idempotency_key="k")
    world.depths.depths["slow"] = 10**6
    world.advance(60)
    with pytest.raises(TurnedAway) as refusal:
        world.begin(PHOTO, idempotency_key="another")
    assert refusal.value.code == "overloaded"
    assert len(world.images.rows) == 1
    assert world.begin(PHOTO, idempotency_key="k").form is not None
    world.upload(begun, PHOTO)
    assert world.accept_upload(begun.image.image_id).outcome == "accepted"
    assert len(world.lanes.sent) == 1


def test_what_is_announced_for_a_time_after_the_backlog_is_let_in(world: World) -> None:
    world.depths.depths["slow"] = 1200  # ten minutes, at the rate that the lane is sure to keep
    with pytest.raises(TurnedAway):
        world.begin(PHOTO, delay="PT9M")
    assert world.begin(PHOTO, delay="PT10M").form is not None
