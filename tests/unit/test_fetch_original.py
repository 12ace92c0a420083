"""An image that is fetched from a URL: what its request promises, how often it is tried, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.dead_letters.dead_letter import Verdict, verdict_of
from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import Image, Provenance, Status, message_for
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.media_types import SNIFF_BYTES
from darkroom.domain.images.service_level import GIVEN_UP
from darkroom.domain.images.transitions import MAX_FETCH_CLAIMS
from darkroom.domain.imports.bucket_files import NOT_REGISTERED
from darkroom.domain.imports.fetch import MAX_FETCHES, Unfetched
from darkroom.domain.kernel.errors import Rejected, Retryable, TurnedAway
from darkroom.domain.kernel.field_problems import InvalidFields
from darkroom.domain.kernel.fingerprint import fingerprint
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.http.images.request_models import MAX_ORDER_BYTES
from darkroom.http.imports.fetches import read_fetch
from darkroom.operations.imports.fetch_original import Fetching
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.domain.dead_letters import why_not_replayable
from darkroom_cli.operator.operations.images.redo_image import RedoImagePorts, redo_image
from tests.support.fakes import FakeImages, World
from tests.support.fakes.damage import flipped
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.stores import FakeFetchQueue
from tests.support.faults import ProcessDied, failing, meanwhile, raising

URL = "https://photos.example/harbour.jpg?token=secret"
PHOTO = jpeg()
VIDEO = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(10_000)
BUSY = Unfetched(code="fetch_failed", message="The server answers that it cannot send it now (503).", may_pass=True)


def serving(*answers: bytes | Unfetched, **world: Any) -> World:
    made = World(**world)
    made.remote_images.serve(URL, *answers)
    return made


def asked(world: World, **written: Any) -> Image:
    return world.ask(URL, **written).image


def fetch(world: World, image: Image, receipt: str = "receipt-1") -> Fetching:
    return world.fetch(message_for(image), receipt)


@pytest.fixture
def world() -> World:
    return serving(PHOTO)


@pytest.fixture
def image(world: World) -> Image:
    return asked(world)


def test_a_url_has_a_row_that_is_fetched_and_a_message_that_does_not_name_it(world: World) -> None:
    image = world.row(asked(world).image_id)
    assert (image.status, image.has_original, image.url) == (Status.FETCHING, False, URL)
    assert (image.accepted_at, image.waiting_since) == (None, None), "its service level counts from its arrival"
    (message,) = world.fetch_queue.asked
    assert (message.image_id, message.tenant_id) == (image.image_id, "default")
    assert "secret" not in message.model_dump_json()
    assert (world.remote_images.asked, world.lanes.sent) == ([], [])


def test_what_is_fetched_is_from_then_on_as_if_it_had_been_uploaded(world: World) -> None:
    image = asked(world, preset="avatar", notify=None)
    world.advance(30)
    assert fetch(world, image).outcome == "accepted"
    row = world.row(image.image_id)
    assert (row.status, row.attempt, row.attempts, row.not_before) == (Status.PENDING, 0, (), None)
    assert (row.accepted_at, row.waiting_since) == (world.now, world.now)
    assert world.originals.objects == {image.image_id: PHOTO}
    assert (row.source.size_bytes, row.source.media_type) == (len(PHOTO), "image/jpeg")
    (message,) = world.lanes.sent
    world.deliver(message)
    assert world.row(image.image_id).status is Status.DONE


@pytest.mark.guards("fetch-url-forgotten-on-arrival")
def test_the_url_is_forgotten_once_the_image_is_here_and_what_its_source_said_is_kept() -> None:
    world = serving(PHOTO)
    image = asked(world)
    fetch(world, image)
    row = world.row(image.image_id)
    assert (row.url, row.fetched) == (None, Provenance(etag='"1"'))
    assert "secret" not in repr(row)


def fetched_again(world: World, image: Image) -> Fetching:
    world.now = world.row(image.image_id).not_before or world.now
    return fetch(world, image)


@pytest.mark.guards("fetch-refusal-confirmed")
def test_a_source_that_sends_no_image_once_is_asked_again() -> None:
    world = serving(flipped(PHOTO[:1]) + PHOTO[1:], PHOTO)
    image = asked(world)
    assert fetch(world, image).outcome == "put_back"
    assert world.originals.objects == {}
    assert fetched_again(world, image).outcome == "accepted"


@pytest.mark.guards("fetch-accepted-formats-only")
@pytest.mark.parametrize("file", [VIDEO, VIDEO.replace(b"mp42", b"heic")])
def test_what_cannot_be_developed_here_is_read_in_its_first_bytes_alone_and_twice_at_most(file: bytes) -> None:
    world = serving(file)
    image = asked(world)
    assert [fetch(world, image).outcome, fetched_again(world, image).outcome] == ["put_back", "failed"]
    assert world.remote_images.read_bytes == [SNIFF_BYTES, SNIFF_BYTES]
    assert world.originals.objects == {}


@pytest.mark.guards("fetch-url-forgotten-at-end")
@pytest.mark.parametrize("why", [Unfetched(code="fetch_not_found", message="Nothing there (404)."), b"<!DOCTYPE html>"])
def test_the_url_is_forgotten_once_it_has_failed(why: Unfetched | bytes) -> None:
    world = serving(why)
    image = asked(world)
    if isinstance(why, bytes):
        assert fetch(world, image).outcome == "put_back"
    assert fetched_again(world, image).outcome == "failed"
    row = world.row(image.image_id)
    assert row.error is not None
    assert row.error.code == ("unsupported_format" if isinstance(why, bytes) else why.code)
    assert (row.status, row.url, row.dead_letter, row.error.retryable) == (Status.FAILED, None, None, False)
    assert "secret" not in repr(row)
    assert world.originals.objects == {}


def test_a_scheduled_image_is_fetched_at_once_and_developed_in_time(world: World) -> None:
    image = asked(world, delay="P2D")
    assert fetch(world, image).outcome == "accepted"
    row = world.row(image.image_id)
    assert (row.status, row.process_at) == (Status.SCHEDULED, image.process_at)
    assert (len(world.hold_queue.held), world.lanes.sent) == (1, [])


@pytest.mark.guards("fetch-not-before-time")
def test_a_source_that_does_not_answer_is_asked_five_times_in_longer_and_longer_pauses() -> None:
    world = serving(BUSY)
    image = asked(world)
    pauses = []
    for _ in range(MAX_FETCHES - 1):
        assert fetch(world, image).outcome == "put_back"
        row = world.row(image.image_id)
        assert (row.status, row.due_at) == (Status.FETCHING, row.not_before)
        assert row.not_before is not None and row.retry_at == row.not_before
        pauses.append((row.not_before - world.now) // 1000)
        assert fetch(world, image, "too-early").outcome == "backing_off"
        world.now = row.not_before
        world.fetch_queue.asked.clear()
        assert world.sweep().outcomes == {"rescued": 1}, "the sweeper sends the message"
        assert len(world.fetch_queue.asked) == 1
    assert pauses == [33, 101, 303, 911]
    assert fetch(world, image).outcome == "failed"
    row = world.row(image.image_id)
    assert row.error is not None
    assert (row.status, row.error.code, row.error.retryable) == (Status.FAILED, "fetch_failed", True)
    assert "tried 5 times" in row.error.message
    assert len(world.remote_images.asked) == MAX_FETCHES


@pytest.mark.guards("fetch-longest-retry-after")
def test_a_source_may_ask_for_a_pause_of_an_hour_and_of_no_more() -> None:
    world = serving(replace(BUSY, retry_after_seconds=3600), replace(BUSY, retry_after_seconds=3601))
    image = asked(world)
    fetch(world, image)
    row = world.row(image.image_id)
    assert row.not_before == world.now + 3_600_000
    world.advance(3600)
    assert fetch(world, image).outcome == "failed"


def test_no_dead_letter_and_no_error_budget_pays_for_a_source() -> None:
    world = serving(Unfetched(code="fetch_refused", message="The server refuses it (403)."))
    image = asked(world)
    fetch(world, image)
    world.advance(700)
    sweep = world.sweep()
    assert (sweep.outcomes, sweep.ended) == ({"removed": 1}, {})
    assert world.row(image.image_id).due_at is None
    assert world.dead_letters.depth("slow") == 0


@pytest.mark.guards("dead-letters-missing-original")
def test_what_never_came_cannot_be_replayed_and_needs_no_dead_letter() -> None:
    world = serving(BUSY)
    image = asked(world)
    for _ in range(MAX_FETCHES):
        world.advance(3600)
        fetch(world, image)
    row = world.row(image.image_id)
    assert "never came" in (why_not_replayable(row) or "")
    assert verdict_of(message_for(row), row) is Verdict.SETTLED


@pytest.mark.guards("fetch-live-lease")
def test_two_deliveries_at_the_same_time_fetch_once(world: World, image: Image) -> None:
    fetched_by_another: list[str] = []
    meanwhile(
        world.remote_images, "fetch", lambda *_, **__: fetched_by_another.append(fetch(world, image, "another").outcome)
    )
    assert fetch(world, image).outcome == "accepted"
    assert (fetched_by_another, world.remote_images.asked) == (["leased"], [URL])


def test_a_worker_that_died_is_followed_by_another_when_its_lease_is_over(world: World, image: Image) -> None:
    world.remote_images.fetch, alive = raising(ProcessDied), world.remote_images.fetch
    with pytest.raises(ProcessDied):
        fetch(world, image)
    world.fetch_queue.asked.clear()
    world.remote_images.fetch = alive
    world.advance(121)
    world.sweep()
    (message,) = world.fetch_queue.asked
    assert world.fetch(message, "another").outcome == "accepted"


@pytest.mark.guards("due-unfetched-leftovers-removed", "sweeper-fetch-failure-counted")
def test_workers_that_always_die_end_it_and_leave_nothing(world: World, image: Image) -> None:
    def die_late(*_: Any, **__: Any) -> Any:
        world.originals.objects[image.image_id] = PHOTO
        raise ProcessDied

    world.remote_images.fetch = die_late
    for attempt in range(MAX_FETCH_CLAIMS):
        with pytest.raises(ProcessDied):
            fetch(world, image, f"receipt-{attempt}")
        world.advance(130)
    assert fetch(world, image).outcome == "begun_too_often"
    sweep = world.sweep()
    assert (sweep.outcomes, sweep.ended) == ({"gave_up": 1}, {"slow": GIVEN_UP}), "which wakes somebody"
    row = world.row(image.image_id)
    assert row.error is not None and "fault on our side" in row.error.message
    assert (row.error.code, row.dead_letter, row.url) == ("fetch_failed", None, None)
    world.advance(601)
    world.sweep()
    assert (world.originals.objects, world.row(image.image_id).due_at) == ({}, None)


@pytest.mark.guards("fetch-tries-of-source-only")
def test_an_outage_of_our_own_uses_up_no_try_of_the_source(world: World, image: Image) -> None:
    up = world.originals
    world.originals = failing(up, "put_if_absent", Retryable("the store does not answer"))
    for _ in range(MAX_FETCHES):
        assert fetch(world, image).outcome == "put_back"
        world.advance(1200)
    world.originals = up
    world.remote_images.serve(URL, BUSY)
    for _ in range(MAX_FETCHES - 1):
        assert fetch(world, image).outcome == "put_back"
        world.advance(1200)
    assert fetch(world, image).outcome == "failed"
    error = world.row(image.image_id).error
    assert error is not None and "tried 5 times" in error.message


@pytest.mark.guards("fetch-bug-put-back", "fetch-bug-stack-kept", "fetch-bug-text-dropped")
def test_a_bug_is_left_time_to_be_mended_and_the_url_stays_until_then(world: World, image: Image) -> None:
    up, world.originals = world.originals, failing(world.originals, "put_if_absent", ZeroDivisionError(URL))
    began = world.now
    for attempt in range(MAX_FETCH_CLAIMS - 1):
        with pytest.raises(ZeroDivisionError):
            fetch(world, image)
        row = world.row(image.image_id)
        assert (row.status, row.attempt, row.url) == (Status.FETCHING, attempt + 1, URL)
        cause = row.attempts[-1].cause
        assert cause is not None and cause.message == "" and URL not in cause.stack
        assert fingerprint(cause.error_type, cause.stack) == "ZeroDivisionError@operations/fetch_original.py:_stored"
        assert row.not_before is not None and row.due_at == row.not_before
        world.now = row.not_before
    assert world.now - began > 4800_000
    world.originals = up
    assert fetch(world, image).outcome == "accepted"


def test_a_bug_after_the_claim_is_raised_although_the_row_cannot_be_put_back() -> None:
    silent = Retryable("the table does not answer")
    images = failing(FakeImages(), "change", silent, when=lambda before, after, **_: after.claimed_by is None)
    world = serving(PHOTO, images=images)
    image = asked(world)
    world.remote_images.fetch = lambda *_, **__: 1 / 0
    with pytest.raises(ZeroDivisionError):
        fetch(world, image)
    row = world.row(image.image_id)
    assert row.due_at is not None and row.due_at > world.now


@pytest.mark.guards("sweeper-fetch-backlog-wait")
def test_a_backlog_of_the_fetch_queue_explains_a_wait_and_brings_no_copies(world: World, image: Image) -> None:
    world.fetch_queue.asked.clear()
    world.fetch_queue.waiting, world.fetch_queue.taken = 60, 10  # six minutes, if no source answers in time
    world.advance(121)
    assert world.sweep().outcomes == {"waiting": 1}
    row = world.row(image.image_id)
    assert row.due_at == world.now + (360 - 121) * 1000
    assert world.fetch_queue.asked == []
    world.now = row.due_at
    assert world.sweep().outcomes == {"rescued": 1}, "it should have been its turn"
    assert world.row(image.image_id).enqueued_at == world.now
    world.advance(61)
    assert world.sweep().outcomes == {"waiting": 1}, "the copy waits as well"


@pytest.mark.guards("sweeper-dead-worker-refetch")
def test_no_backlog_explains_the_wait_of_one_whose_worker_died_or_whose_pause_is_over() -> None:
    world = serving(BUSY)
    image = asked(world)
    world.fetch_queue.waiting = 10_000
    assert fetch(world, image).outcome == "put_back"
    world.advance(40)
    assert world.sweep().outcomes == {"rescued": 1}
    world.remote_images.fetch = raising(ProcessDied)
    with pytest.raises(ProcessDied):
        fetch(world, image)
    world.advance(121)
    assert world.sweep().outcomes == {"rescued": 1}


@pytest.mark.guards("measures-slow-source-no-alarm")
def test_messages_that_no_worker_takes_are_counted() -> None:
    world = World()
    for waiting, taken, counted in ((0, 0, 0), (3, 0, 3), (3, 1, 0), (0, 2, 0)):
        world.fetch_queue.waiting, world.fetch_queue.taken = waiting, taken
        assert world.measure().untaken_fetches == counted


@pytest.mark.guards("fetch-earlier-original-counts")
def test_an_earlier_workers_original_counts_although_its_source_sends_another_picture_now() -> None:
    world = serving(PHOTO, jpeg(10, 10))
    world.images = failing(
        FakeImages(),
        "change",
        Retryable("the table does not answer"),
        when=lambda before, after, **_: after.has_original and len(world.remote_images.asked) == 1,
    )
    image = asked(world)
    with pytest.raises(Retryable):
        fetch(world, image)
    world.advance(130)
    assert fetch(world, image).outcome == "accepted"
    row = world.row(image.image_id)
    assert (row.source.size_bytes, world.originals.objects[image.image_id]) == (len(PHOTO), PHOTO)
    assert row.fetched == Provenance(), "what was said of the other picture is not told of this one"


@pytest.mark.guards("fetch-registered-still")
@pytest.mark.parametrize("places", [None, (), ("s3://photos/others/",)])
def test_a_file_in_a_bucket_is_not_read_once_its_place_is_not_registered_any_more(
    places: tuple[str, ...] | None,
) -> None:
    world, url = World(), "s3://photos/acme/1.jpg"
    world.bucket_images.serve(url, PHOTO)
    world.check_url = lambda _: None
    row = world.ask(url).image
    if places is not None:
        world.tenants.add_tenant(Tenant(tenant_id="default", tier=Tier.FREE, created_at=1, import_from=places))
    assert fetch(world, row).outcome == "failed"
    failed = world.row(row.image_id)
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("fetch_refused", NOT_REGISTERED)
    assert world.bucket_images.asked == []


@pytest.mark.guards("fetch-other-photo-refused")
def test_another_photo_that_was_sent_with_the_key_is_never_developed_for_it() -> None:
    world = serving(PHOTO, images=failing(FakeImages(), "create", Retryable("the process died")))
    with pytest.raises(Retryable):
        world.submit(jpeg(10, 10), idempotency_key="k")
    world.images = FakeImages()
    image = asked(world, idempotency_key="k")
    assert fetch(world, image).outcome == "put_back"
    assert fetched_again(world, image).outcome == "failed"
    error = world.row(image.image_id).error
    assert error is not None and error.code == "idempotency_key_reused"


def test_the_same_key_url_and_order_are_one_image_whatever_became_of_it(world: World) -> None:
    first = world.ask(URL, idempotency_key="k")
    assert world.ask(URL, idempotency_key="k").image.image_id == first.image.image_id
    fetch(world, first.image)
    again = world.ask(URL, idempotency_key="k")
    assert (again.replayed, again.image.status) == (True, Status.PENDING)
    assert len(world.images.rows) == 1


@pytest.mark.parametrize(
    "other", [{"preset": "avatar"}, {"delay": "PT1H"}, {"url": "https://photos.example/other.jpg"}]
)
def test_the_same_key_with_another_url_or_order_is_refused(world: World, other: dict[str, Any]) -> None:
    image = asked(world, idempotency_key="k")
    fetch(world, image)
    with pytest.raises(Rejected) as refusal:
        world.ask(**{"url": URL, "idempotency_key": "k", **other})
    assert refusal.value.code == "idempotency_key_reused"
    with pytest.raises(Rejected):
        world.submit(PHOTO, idempotency_key="k")


def test_a_repeated_request_sends_the_message_that_the_first_could_not() -> None:
    world = serving(PHOTO, fetch_queue=failing(FakeFetchQueue(), "put", Retryable("the queue does not answer")))
    image = asked(world, idempotency_key="k")
    assert world.row(image.image_id).due_at == world.now, "the sweeper would send it at once"
    world.fetch_queue = FakeFetchQueue()
    world.ask(URL, idempotency_key="k")
    assert len(world.fetch_queue.asked) == 1


def test_a_message_to_the_lane_that_was_lost_is_sent_by_the_next_delivery(world: World, image: Image) -> None:
    send, world.lanes.send = world.lanes.send, raising(ProcessDied)
    with pytest.raises(ProcessDied):
        fetch(world, image)
    world.lanes.send = send
    assert fetch(world, image).outcome == "arrived"
    assert len(world.lanes.sent) == 1


def withdraw(world: World, image: Image) -> None:
    world.delete(image.image_id)
    world.sweep()


@pytest.mark.guards("fetch-withdrawn-not-stored")
def test_an_image_that_is_deleted_while_it_is_fetched_leaves_nothing(world: World, image: Image) -> None:
    meanwhile(world.remote_images, "fetch", lambda *_, **__: withdraw(world, image))
    assert fetch(world, image).outcome == "fenced"
    assert (world.lanes.sent, world.originals.objects) == ([], {}), "nobody has to clear it away"
    row = world.row(image.image_id)
    assert (row.status, row.url) == (Status.CANCELLED, None)


def test_what_is_stored_in_the_moment_of_its_deletion_is_removed_later(world: World, image: Image) -> None:
    meanwhile(world.originals, "put_if_absent", lambda *_, **__: withdraw(world, image))
    assert fetch(world, image).outcome == "fenced"
    world.advance(1801)
    world.sweep()
    assert world.originals.objects == {}


@pytest.mark.guards("fetch-expired-not-stored")
def test_an_image_that_expires_while_it_is_fetched_is_not_stored(world: World) -> None:
    image = asked(world, expires_at="2026-11-21T09:01:00Z")
    meanwhile(world.remote_images, "fetch", lambda *_, **__: world.advance(90))
    assert fetch(world, image).outcome == "expired"
    assert world.row(image.image_id).status is Status.EXPIRED
    assert world.originals.objects == {}


def test_a_redo_needs_no_fetch(world: World, image: Image) -> None:
    fetch(world, image)
    world.deliver(world.lanes.sent[-1])
    redo_image(world.ports(RedoImagePorts), image.image_id)
    world.deliver(world.lanes.sent[-1])
    row = world.row(image.image_id)
    assert (row.status, row.run, len(world.remote_images.asked)) == (Status.DONE, 2, 1)


def test_it_is_told_as_accepted_when_it_is_here_and_as_failed_if_it_never_came(world: World, image: Image) -> None:
    before = world.row(image.image_id)
    fetch(world, image)
    after = world.row(image.image_id)
    published = event_of(before, after)
    assert event_of(None, before) is None
    assert published is not None and (published.type, published.data["bytes"]) == (EventType.ACCEPTED, len(PHOTO))
    assert [event.type for event in events_of(after)] == [EventType.ACCEPTED]


def test_an_overloaded_lane_turns_a_url_away_like_a_photo(world: World) -> None:
    world.depths.depths["slow"] = 10**9
    with pytest.raises(TurnedAway):
        asked(world)


def test_a_url_that_may_not_be_fetched_makes_no_row() -> None:
    world = World(check_url=raising(Rejected("invalid_url", "The URL must begin with https://.")))
    with pytest.raises(Rejected):
        world.ask("http://photos.example/")
    assert world.images.rows == {}


def test_no_more_is_fetched_than_may_be_uploaded() -> None:
    world = serving(PHOTO, limits=Limits(max_bytes=len(PHOTO) - 1))
    image = asked(world)
    fetch(world, image)
    error = world.row(image.image_id).error
    assert error is not None and error.code == "fetch_too_large"


@pytest.mark.parametrize("forged", [{"tenant_id": "another"}, {"lane": "fast"}, {"run": 2}])
def test_a_message_that_does_not_match_its_row_fetches_nothing(forged: dict[str, Any]) -> None:
    world = serving(PHOTO)
    image = asked(world)
    assert world.fetch(message_for(image).model_copy(update=forged)).outcome == "stale"
    assert world.remote_images.asked == []


def test_a_lanes_worker_leaves_alone_what_is_being_fetched(world: World, image: Image) -> None:
    world.deliver(message_for(image))
    assert world.row(image.image_id) == image


def test_a_withdrawn_row_is_no_ones_business(world: World, image: Image) -> None:
    world.images = failing(world.images, "change", Fenced(None))
    assert fetch(world, image).outcome == "fenced"
    assert world.remote_images.asked == []


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b'\xef\xbb\xbf{"url": "https://photos.example/"}', "body: begins with a byte order mark"),
        (b"{}", "url: is missing"),
        (b'{"url": 7}', "url"),
        (b'{"url": "https://photos.example/", "width": 7}', "width: is not a known field. Known fields: url, preset"),
        (b" " * (MAX_ORDER_BYTES + 1), "body: has 32,769 bytes; at most 32 KiB"),
    ],
)
def test_a_request_that_is_none_is_refused_by_field(body: bytes, refused: str) -> None:
    with pytest.raises(InvalidFields, match=refused) as refusal:
        read_fetch(body)
    assert refusal.value.code == "invalid_fetch"
