"""Whom the edge serves an image to: by its order or its tenant, changed later, and to nobody once it is deleted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.events.event import events_of_image
from darkroom.domain.images.image import DeadLetterState, Image, Status, Variant
from darkroom.domain.images.listing import thumb_of
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls, picture_of, urls_of
from darkroom.domain.kernel.errors import Rejected, Retryable, UnknownImage
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.kernel.visibility import Visibility, edge_until
from darkroom.http.images.documents import listed_document, status_document
from darkroom.operations.images.add_variants import NotDone
from darkroom.operations.images.change_visibility import ChangeVisibilityPorts, change_visibility
from darkroom.operations.images.delete_image import DeleteImagePorts, EdgePorts, delete_image, edge_keeps_until
from darkroom.operations.images.read_image import ReadImagePorts, edge_urls, variant_url
from darkroom_cli.operator.domain.next_run import replay
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.stores import FakeEdge
from tests.support.faults import Faults, Mode, ProcessDied, at, failing, meanwhile
from tests.support.images import NOW, developed, pending

PRIVATE, PUBLIC, SIGNED = Visibility.PRIVATE, Visibility.PUBLIC, Visibility.SIGNED
EDGE = EdgeUrls(base="https://d1.example")
SECOND_LOOK_SECONDS = 1801


@pytest.fixture
def world() -> World:
    return World(delivers=True, edge=EDGE)


def change(world: World, image_id: str, wanted: Visibility, *, moved_to: str | None = None, **others: Any) -> Image:
    ports = world.ports(ChangeVisibilityPorts, **others)
    return change_visibility(ports, image_id, wanted, tenant_id="default", tier=Tier.FREE, moved_to=moved_to)


def changed(world: World, image_id: str, wanted: Visibility) -> Image:
    change(world, image_id, wanted)
    world.deliver(world.lanes.sent[-1], f"receipt-{len(world.lanes.sent)}")
    return world.row(image_id)


def prefixes(world: World) -> set[str]:
    return {key.partition("/")[0] for key in world.outputs.objects}


# ── Orders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("visibility-needs-an-edge", "visibility-usual-without-edge")
@pytest.mark.parametrize(
    ("delivers", "order", "usual", "gets"),
    [
        (True, None, PRIVATE, PRIVATE),
        (True, None, SIGNED, SIGNED),
        (True, "public", SIGNED, PUBLIC),
        (True, "private", PUBLIC, PRIVATE),
        (False, None, PUBLIC, PRIVATE),
        (False, "private", PUBLIC, PRIVATE),
        (False, "public", PRIVATE, None),
    ],
)
def test_an_order_says_who_sees_the_image_or_else_its_tenant(
    delivers: bool, order: str | None, usual: Visibility, gets: Visibility | None
) -> None:
    world = World(delivers=delivers)
    if gets is None:
        with pytest.raises(Rejected) as refusal:
            world.submit(jpeg(), visibility=order)
        assert refusal.value.code == "part_not_deployed"
        return
    order_of = {} if order is None else {"visibility": order}
    image_id = world.submit(jpeg(), usual=usual, viewer_seconds=60, **order_of).image.image_id
    world.deliver(world.lanes.sent[-1])
    assert (world.row(image_id).visibility, world.row(image_id).viewer_seconds) == (gets, 60)
    assert prefixes(world) == {{PRIVATE: "outputs"}.get(gets, gets.value)}


@pytest.mark.guards("visibility-in-fingerprint")
def test_another_visibility_is_another_request_under_a_key_and_an_unknown_word_is_refused(world: World) -> None:
    world.submit(jpeg(), idempotency_key="k", visibility="public")
    for again, code in (("signed", "idempotency_key_reused"), ("open", "unknown_visibility")):
        with pytest.raises(Rejected) as refusal:
            world.submit(jpeg(), idempotency_key="k", visibility=again)
        assert refusal.value.code == code
    assert world.submit(jpeg(), idempotency_key="k", visibility="public").replayed


# ── What is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def variant(
    name: str, width: int, height: int, form: str = "jpeg", *, prefix: str = "public", key: str = ""
) -> Variant:
    key = f"{prefix}/i/1/{key or name}"
    return Variant(name=name, width=width, height=height, format=form, size_bytes=1, sha256="", key=key)


@pytest.mark.guards("picture-srcset-same-crop", "picture-by-key")
def test_a_picture_is_the_widest_that_every_browser_shows_with_the_smaller_ones_of_the_same_crop() -> None:
    row = pending(
        status=Status.DONE,
        variants=(
            variant("square", 400, 400),
            variant("s", 333, 222),
            variant("l", 1000, 667),
            variant("same-width", 1000, 667),
            variant("other-format", 1000, 667, "webp"),
            variant("new", 2000, 1334, "avif"),
            variant("kept-private", 3000, 2000, prefix="outputs"),
            variant("kept-signed", 3000, 2000, prefix="signed"),
            variant("card", 300, 300, key="card.jpg"),
            variant("card.webp", 300, 300, "webp"),
            variant("card.avif", 300, 300, "avif"),
        ),
    )
    picture = picture_of(row, EDGE)
    assert picture is not None
    assert (picture.url, picture.width, picture.height, picture.expires_at) == (
        "https://d1.example/public/i/1/l",
        1000,
        667,
        None,
    )
    assert picture.srcset == "https://d1.example/public/i/1/s 333w, https://d1.example/public/i/1/l 1000w"
    assert picture_of(row, NO_EDGE) is None
    upright = tuple(variant(f"w{width}", width, height) for width, height in ((683, 2048), (342, 1024), (213, 640)))
    picture = picture_of(replace(row, variants=upright), EDGE)
    assert picture is not None and picture.srcset.count("w,") == 2, "a narrow side is rounded as well"
    assert urls_of(row, EDGE)["card"] == "https://d1.example/public/i/1/card", "the edge chooses the format"
    assert urls_of(row, EDGE)["card.avif"] == "https://d1.example/public/i/1/card.avif"
    group = tuple(one for one in row.variants if one.name.startswith("card"))
    shown = thumb_of(replace(row, variants=(replace(group[0], size_bytes=9), *group[1:])))
    assert shown is not None and shown.name == "card", "a thumb is what every browser shows"


@pytest.mark.guards("signer-outage-tolerated")
def test_signed_urls_are_only_in_the_answer_to_who_asks_for_this_image(world: World) -> None:
    image_id = developed(world, visibility="signed")
    row, signed = world.row(image_id), replace(EDGE, signature="Policy=p", expires_at=NOW + 9)
    ports = world.ports(ReadImagePorts, url_signer=Signer(signed))
    own = status_document(row, world.outputs.url_of, edge=edge_urls(ports, row))
    assert {document["url"].partition("?")[2] for document in own["variants"]} == {"Policy=p"}
    assert own["picture"] is not None and own["picture"]["expires_at"] is not None
    others = [listed_document(row, edge=EDGE), list(events_of_image(row, EDGE))[-1].data]
    assert "Policy" not in str(others) and others[0]["picture"] is None
    silent = world.ports(ReadImagePorts, url_signer=failing(Signer(signed), "sign", Retryable("no answer")))
    shown = status_document(row, world.outputs.url_of, edge=edge_urls(silent, row))
    assert shown["picture"] is None
    assert {document["url"].partition("/signed/")[0] for document in shown["variants"]} == {"https://outputs.example"}
    private = world.row(developed(world))
    assert edge_urls(world.ports(ReadImagePorts, url_signer=None), private) == EDGE


class Signer:
    """The `UrlSigner` port."""

    def __init__(self, signed: EdgeUrls) -> None:
        self._signed = signed

    def sign(self, image_id: str) -> EdgeUrls:
        return self._signed


def test_a_public_variant_has_one_permanent_address(world: World) -> None:
    image_id = developed(world, visibility="public")
    row = world.row(image_id)
    url = variant_url(world.ports(ReadImagePorts), image_id, row.variants[0].name, tenant_id="default")
    assert url == f"https://d1.example/{row.variants[0].key}"
    listed = listed_document(row, edge=EDGE)
    assert (listed["variants"][0]["url"], listed["visibility"]) == (url, "public")
    assert listed["picture"] is not None and url in listed["picture"]["srcset"]


# ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("visibility-former-removed", "visibility-edge-told")
@pytest.mark.parametrize("path", [(PUBLIC,), (PUBLIC, SIGNED), (SIGNED, PRIVATE), (PUBLIC, PRIVATE, PUBLIC)])
def test_the_same_bytes_lie_where_the_new_visibility_wants_them_and_nowhere_else_an_edge_reads(
    world: World, path: tuple[Visibility, ...]
) -> None:
    image_id = developed(world)
    before, was_at = world.row(image_id), PRIVATE
    bytes_before = sorted(world.outputs.objects.values())
    for wanted in path:
        world.stale_edge.told.clear()
        row = changed(world, image_id, wanted)
        assert (row.status, row.visibility, row.completed_at) == (Status.DONE, wanted, before.completed_at)
        assert prefixes(world) == {{PRIVATE: "outputs"}.get(wanted, wanted.value)}
        assert sorted(world.outputs.objects.values()) == bytes_before
        assert {variant.key for variant in row.variants} == {*world.outputs.objects}
        told = [] if was_at is PRIVATE and path[0] is wanted else [(image_id, 0), (image_id, 900)]
        assert [one for one in world.stale_edge.told if was_at is not PRIVATE] == (
            told if was_at is not PRIVATE else []
        )
        was_at = wanted
    *_, event = events_of_image(world.row(image_id), EDGE)
    assert (event.type.value, event.data["visibility"]) == ("image.visibility_changed", path[-1])


@pytest.mark.guards("visibility-live-lane")
def test_an_image_that_was_imported_becomes_visible_in_its_tenants_lane(world: World) -> None:
    image_id = developed(world)
    world.images.rows[image_id] = replace(world.row(image_id), lane="bulk")
    assert (change(world, image_id, PUBLIC).lane, world.lanes.sent[-1].lane) == ("slow", "slow")
    other_id = developed(world)
    assert change(world, other_id, PUBLIC, moved_to="bulk").lane == "bulk", "its tenant was moved"


@pytest.mark.guards(
    "works-own-image-only",
    "visibility-needs-an-edge",
    "visibility-repeat-resends-message",
    "visibility-one-work-at-a-time",
    "visibility-version-fence",
)
def test_what_a_request_for_another_visibility_is_answered(world: World) -> None:
    image_id = developed(world)
    ports = world.ports(ChangeVisibilityPorts)
    with pytest.raises(UnknownImage):
        change_visibility(ports, image_id, PUBLIC, tenant_id="other", tier=Tier.FREE)
    with pytest.raises(Rejected, match="CloudFront"):
        change(world, image_id, PUBLIC, delivers=False)
    assert change(world, image_id, PRIVATE).work is None, "it is private"
    other = developed(world)
    meanwhile(world.images, "change", lambda *_, **__: change(world, other, SIGNED), times=1)
    with pytest.raises(NotDone):
        change(world, other, PUBLIC)
    meanwhile(world.images, "change", lambda *_, **__: change(world, image_id, PUBLIC), times=1)
    sent = len(world.lanes.sent)
    assert change(world, image_id, PUBLIC).run == 2, "another request was faster, and has begun it"
    assert len(world.lanes.sent) > sent + 1, "its message may have been lost"
    with pytest.raises(NotDone):
        change(world, image_id, SIGNED)
    awaited = world.submit(jpeg()).image.image_id
    with pytest.raises(NotDone):
        change(world, awaited, PUBLIC)
    row = replace(world.row(developed(world)), dead_letter=DeadLetterState.OWED)
    world.images.rows[row.image_id] = row
    with pytest.raises(NotDone):
        change(world, row.image_id, PUBLIC)


MOVING: dict[str, Callable[[World, str], None]] = {
    "goes on": lambda world, image_id: None,
    "deleted meanwhile": lambda world, image_id: world.delete(image_id),
}


@pytest.mark.guards(
    "visibility-moved-fence", "visibility-prospect-in-row", "edge-told-of-removal", "removal-every-prefix"
)
@pytest.mark.promise("delivery-deleted-everywhere")
@pytest.mark.parametrize("ends", MOVING)
@pytest.mark.parametrize("path", [(PUBLIC, PRIVATE), (PRIVATE, PUBLIC), (SIGNED, PUBLIC)])
def test_whatever_strikes_a_move_nothing_is_left_where_it_was_and_the_edge_is_told_afterwards(
    ends: str, path: tuple[Visibility, Visibility]
) -> None:
    modes: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")
    number = 0
    while all(_struck_move(number, mode, MOVING[ends], *path) for mode in modes):
        number += 1
    assert number > 10


def _struck_move(
    number: int, mode: Mode, ends: Callable[[World, str], None], was: Visibility, wanted: Visibility
) -> int:
    """An image gets another visibility while one call of the worker is struck; returns how often a call was: 0 if there
    are not so many."""
    world = World(delivers=True, edge=EDGE)
    image_id = developed(world, visibility=was.value)
    change(world, image_id, wanted)
    faults, whole = Faults(plan=at(number, mode)), (world.images, world.outputs, world.stale_edge)
    for name in ("images", "outputs", "stale_edge"):
        setattr(world, name, faults.around(name, getattr(world, name)))
    with suppress(ProcessDied):
        world.deliver(world.lanes.sent[-1], "struck")
    world.images, world.outputs, world.stale_edge = whole
    ends(world, image_id)
    removed_at = len(world.stale_edge.told) if world.row(image_id).is_deleted else 0
    for turn in range(6):
        world.advance(SECOND_LOOK_SECONDS)
        world.sweep()
        if world.lanes.sent:
            world.deliver(world.lanes.sent[-1], f"again-{turn}")
    row = world.row(image_id)
    if row.is_deleted:
        assert world.outputs.objects == {}, (number, mode)
    else:
        assert (row.status, row.visibility) == (Status.DONE, wanted), (number, mode)
        assert {*world.outputs.objects} == {variant.key for variant in row.variants}, (number, mode)
    is_owed = row.is_deleted or was is not PRIVATE
    assert bool(world.stale_edge.told[removed_at:]) >= is_owed, (number, mode)
    return faults.struck.total()


@pytest.mark.guards("visibility-moved-whole", "visibility-failed-change-again", "visibility-failed-copies-removed")
def test_a_move_that_fails_is_reported_leaves_no_copy_and_can_be_asked_for_and_replayed_again(world: World) -> None:
    image_id = developed(world)
    change(world, image_id, PUBLIC)
    whole, first = dict(world.outputs.objects), world.row(image_id).variants[0].key
    world.outputs.objects[first] = whole[first][:-1] + b"x"
    for attempt in range(5):
        world.deliver(world.lanes.sent[-1], f"failing-{attempt}")
        world.advance(300)
    failed = world.row(image_id)
    assert (failed.status, failed.failed_work is not None) == (Status.DONE, True)
    assert prefixes(world) == {"outputs", "public"}
    outputs, world.outputs = world.outputs, failing(world.outputs, "remove", Retryable("no answer"))
    world.sweep()
    assert sum(map(world.dead_letters.depth, world.dead_letters.queues)) == 1, "an operator hears of it all the same"
    with pytest.raises(NotDone):  # whose copies would be removed
        change(world, image_id, PUBLIC)
    world.outputs = outputs
    for _ in range(2):
        world.advance(SECOND_LOOK_SECONDS)
        world.sweep()
    assert (prefixes(world), world.stale_edge.told) == ({"outputs"}, [(image_id, 0), (image_id, 900)])
    world.outputs.objects = whole
    assert replay(failed, now=world.now).work == replace(
        failed.works[-1], run=3, requested_at=world.now, ended_at=None, failed=False, error=None
    )
    assert (world.row(image_id).dead_letter, sum(map(world.dead_letters.depth, world.dead_letters.queues))) == (
        DeadLetterState.KEPT,
        1,
    )
    assert changed(world, image_id, PRIVATE).failed_work is None, "what the failed work may have left is removed"
    assert changed(world, image_id, PUBLIC).visibility is PUBLIC


# ── Deletion ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("edge-forgets-what-is-gone", "removal-exposed-listed")
@pytest.mark.promise("delivery-deleted-everywhere")
def test_a_deletion_removes_the_objects_then_has_the_edge_forget_them_and_again_after_the_second_look(
    world: World,
) -> None:
    image_id, private = developed(world, visibility="public"), developed(world)
    world.outputs.objects[f"public/{image_id}/t1/w8.webp"] = b"made when a viewer first asked for it"
    world.delete(image_id)
    world.delete(private)
    outputs, world.outputs = world.outputs, failing(world.outputs, "remove", Retryable("no answer"))
    world.sweep()
    assert (world.stale_edge.told, world.row(private).leftovers is not None) == ([], True)
    world.outputs = outputs
    world.sweep()
    assert (world.stale_edge.told, world.outputs.objects) == ([(image_id, 0)], {})
    edge, world.stale_edge = world.stale_edge, failing(FakeEdge(), "forget", Retryable("no answer"))
    world.advance(SECOND_LOOK_SECONDS)
    world.sweep()
    assert world.row(image_id).due_at is not None, "it is owed"
    assert world.row(private).due_at is None, "no edge has it"
    world.stale_edge = edge
    world.sweep()
    assert (edge.told, world.row(image_id).due_at) == ([(image_id, 0), (image_id, 0)], None)


class Budget:
    """The `EdgeBudget` port."""

    def __init__(self, spent: bool) -> None:
        self._spent = spent

    def is_spent(self, now: int) -> bool:
        return self._spent


@pytest.mark.guards("edge-until-unread", "edge-until-untold")
def test_a_deletion_says_until_when_the_edge_may_have_the_image(world: World) -> None:
    image_id, private = developed(world, visibility="public"), developed(world)
    tombstone, other = (
        delete_image(world.ports(DeleteImagePorts), one, tenant_id="default") for one in (image_id, private)
    )
    told = EdgePorts(edge_budget=Budget(spent=False), edge_seconds=86_400)
    assert edge_keeps_until(told, other) is None
    assert edge_keeps_until(replace(told, edge_seconds=None), tombstone) is None
    soon, later = (edge_until(world.now, edge_seconds=86_400, is_told=is_told) for is_told in (True, False))
    assert later - soon == 86_400_000
    assert edge_keeps_until(told, tombstone) == soon
    assert edge_keeps_until(replace(told, edge_budget=Budget(spent=True)), tombstone) == later
    silent = failing(Budget(spent=False), "is_spent", Retryable("no answer"))
    assert edge_keeps_until(replace(told, edge_budget=silent), tombstone) == later, "nobody knows"
