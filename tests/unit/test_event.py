"""What the writes of a row tell, and in which form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.aws.images.images_table import to_item
from darkroom.domain.bulk.batches import batch_id_from_bits
from darkroom.domain.events.event import (
    MEANINGS,
    EventType,
    PublishedEvent,
    ReceivedEvent,
    UnreadableEvent,
    body_of,
    without_details,
)
from darkroom.domain.events.event import read_event as read
from darkroom.domain.images.image import Image, Status, WorkKind
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.images.transitions import (
    TransitionRefused,
    arrive,
    await_upload,
    begin_work,
    cancel_work,
    complete,
    delete,
    due_now,
    expire,
    give_up,
    put_back,
    reject,
    reschedule,
)
from darkroom.domain.images.works import MAX_IMAGE_RECIPES, MAX_IMAGE_VARIANTS, REMEMBERED_ENDS
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.webhooks.delivery import delivery_id_of, is_delivery_id
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom_cli.operator.domain.next_run import redo, replay
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.support.fakes import FakeImages
from tests.support.fakes.batches import is_counted
from tests.support.image_changes import NOW, SOURCE, VARIANT, accepted, claimed, done
from tests.support.images import CAUSE

MAPPING = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionImagesTable"]
COUNTING = resources("AWS::Lambda::EventSourceMapping")["CountBatchesFunctionImagesTable"]


BATCH = "ba_1p7t6r04aaqprxvrggww5m0fzk"

ADDED = Recipe(variants=(VariantSpec(name="hero", width=2000),))


def published(before: Image | None, after: Image | None) -> PublishedEvent:
    event = event_of(before, after)
    assert event is not None
    return event


def test_an_accepted_image_is_told_with_its_file() -> None:
    event = published(None, accepted())
    assert (event.type, event.event_id, event.sequence, event.time) == (EventType.ACCEPTED, f"{'0' * 26}-1", 1, NOW)
    assert event.data == {
        "id": "0" * 26,
        "tenant_id": "default",
        "lane": "slow",
        "preset": "standard",
        "run": 1,
        "bytes": 1_234,
        "media_type": "image/png",
        "process_at": None,
        "stored": {"bytes": 1_234, "images": 1, "unfinished": 1},
        "links": {"self": f"/images/{'0' * 26}", "status": f"/images/{'0' * 26}/status"},
    }


def test_an_announced_image_is_told_when_its_bytes_have_come() -> None:
    awaited = await_upload(accepted(), now=NOW)
    assert event_of(None, awaited) is None
    event = published(awaited, replace(arrive(awaited, SOURCE, now=NOW + 5_000), version=4))
    assert (event.type, event.sequence, event.time) == (EventType.ACCEPTED, 4, NOW + 5_000)


def test_a_done_image_is_told_with_its_variants_and_without_addresses_that_expire() -> None:
    image = claimed(accepted())
    event = published(image, replace(done(image), version=3))
    assert (event.type, event.event_id, event.time) == (EventType.DONE, f"{'0' * 26}-3", NOW + 2_000)
    assert event.data["variants"] == [
        {
            "name": "thumb",
            "width": 256,
            "height": 192,
            "format": "jpeg",
            "bytes": 9_000,
            "url": f"/images/{'0' * 26}/variants/thumb",
        }
    ]


def test_a_failed_image_is_told_with_the_reason() -> None:
    image = claimed(accepted())
    event = published(image, replace(reject(image, code="corrupt", message="It ends early.", now=NOW + 9), version=3))
    assert (event.type, event.data["error"]) == (
        EventType.FAILED,
        {"code": "corrupt", "message": "It ends early."},
    )


def test_a_withdrawn_image_was_cancelled_if_it_had_not_ended_and_else_deleted() -> None:
    cancelled = published(accepted(), replace(delete(accepted(), now=NOW + 7), version=2))
    assert (cancelled.type, cancelled.time, "variants" in cancelled.data) == (EventType.CANCELLED, NOW + 7, False)
    ended = done(claimed(accepted()))
    deleted = published(ended, replace(delete(ended, now=NOW + 8_000), version=4))
    assert (deleted.type, deleted.time) == (EventType.DELETED, NOW + 8_000)


def test_what_happens_in_between_tells_nothing() -> None:
    image = accepted()
    at_work = claimed(image)
    back = put_back(at_work, now=NOW + 9, delay_seconds=60, cause=CAUSE)
    ended = done(at_work)
    assert [event_of(*pair) for pair in ((image, at_work), (at_work, back), (image, due_now(image, now=NOW)))] == [
        None
    ] * 3
    assert event_of(ended, replace(ended, due_at=None, version=9)) is None
    assert event_of(ended, redo(ended, now=NOW)) is None
    withdrawn = delete(ended, now=NOW)
    assert event_of(withdrawn, replace(withdrawn, forget_at=1)) is None
    assert event_of(withdrawn, None) is None


def test_a_row_that_ended_before_there_were_events_is_told_by_its_new_state() -> None:
    image = replace(claimed(accepted()), accepted_at=None, accepted_version=None)
    assert published(image, replace(done(image), version=3, completed_version=None)).sequence == 3


def test_the_body_is_a_cloud_event_and_a_payload_of_standard_webhooks() -> None:
    event = published(None, accepted())
    body = json.loads(body_of(event, source="/darkroom/prod"))
    assert body.pop("data") == event.data
    assert body == {
        "specversion": "1.0",
        "id": f"{'0' * 26}-1",
        "source": "/darkroom/prod",
        "type": "image.accepted",
        "subject": "0" * 26,
        "time": "2026-11-21T09:00:00.000Z",
        "timestamp": "2026-11-21T09:00:00.000Z",
        "sequence": "1",
        "sequencetype": "Integer",
        "datacontenttype": "application/json",
    }
    # CloudEvents 1.0.2, 3.1.1: names of attributes; Standard Webhooks: no full stop in an id, names of types.
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) for name in body)
    assert "." not in body["id"]
    assert all(re.fullmatch(r"[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)+", kind.value) for kind in EventType)


def test_the_largest_event_is_small_enough_for_its_receivers() -> None:
    """That of a public image with the most variants, by the longest names, at an edge with the longest domain."""
    folder = f"public/{'0' * 26}/99{'-0a1b2c3d' * MAX_IMAGE_RECIPES}"
    variants = tuple(
        replace(VARIANT, name=f"{n:032d}", width=8192 - n, height=8192 - n, key=f"{folder}/{n:032d}.jpeg")
        for n in range(MAX_IMAGE_VARIANTS)
    )
    image = replace(claimed(accepted(tenant_id="t" * 128)), reference="\U0001f5bc" * 128)
    after = replace(complete(image, variants, notices=(), now=NOW), version=10**9)
    event = event_of(image, after, EdgeUrls(base=f"https://{'e' * 253}"))
    assert event is not None and event.data["picture"]["srcset"].count("w,") == MAX_IMAGE_VARIANTS - 1
    assert 40_000 < len(body_of(event, source="/darkroom/" + "s" * 128)) < 50_000


@pytest.mark.parametrize("end", ["done", "failed", "expired", "accepted"])
def test_an_event_without_its_details_is_what_the_tombstone_tells_again(end: str) -> None:
    row = replace(accepted(expires_at=NOW + 5_000), accepted_version=1)
    ended = {
        "done": lambda: done(claimed(accepted())),
        "failed": lambda: reject(claimed(accepted()), code="too_large", message="Too large: hero.", now=NOW),
        "expired": lambda: expire(row, now=NOW + 6_000),
        "accepted": lambda: row,
    }[end]()
    ended = replace(ended, completed_version=7 if ended.status.is_terminal else None)
    (*_, complete) = events_of(ended)
    again = next(
        repeated for repeated in events_of(delete(ended, now=NOW + 9_000)) if repeated.event_id == complete.event_id
    )
    body, thin = (body_of(event, source="/darkroom/test") for event in (complete, again))
    assert without_details(body) == thin != body
    assert without_details(thin) == thin


def test_an_event_is_read_as_it_was_published() -> None:
    event = published(None, accepted())
    assert read(body_of(event, source="/darkroom/prod")) == ReceivedEvent(
        event_id=event.event_id,
        type="image.accepted",
        tenant_id="default",
        subject=event.subject,
        sequence=1,
        time=NOW,
        data=json.loads(json.dumps(event.data)),
    )
    assert read(spoiled(type="of.a_later_version")).type == "of.a_later_version"


def spoiled(**changes: Any) -> str:
    body = json.loads(body_of(published(None, accepted()), source="/"))
    return json.dumps(body | changes)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "7",
        "{}",
        spoiled(id=7),
        spoiled(time="yesterday"),
        spoiled(time="2026-11-21T09:00:00"),
        spoiled(sequence="x"),
        spoiled(sequence=4),
        spoiled(data=None),
        spoiled(data={"id": "x"}),
        spoiled(type=None),
    ],
)
def test_what_is_no_event_is_refused(body: str) -> None:
    with pytest.raises(UnreadableEvent, match="not an event"):
        read(body)


# ── Whatever is written ──────────────────────────────────────────────────────────────────────────────────────────────

type Write = Callable[[Image], Image]

WRITES: dict[str, Write] = {
    "arrive": lambda image: arrive(image, SOURCE, now=NOW + 1),
    "claim": claimed,
    "done": done,
    "reject": lambda image: reject(image, code="c", message="m", now=NOW + 3),
    "give up": lambda image: give_up(image, now=NOW + 4),
    "put back": lambda image: put_back(image, now=NOW, delay_seconds=1, cause=CAUSE),
    "reschedule": lambda image: reschedule(image, process_at=NOW + 9, expires_at=None, now=NOW),
    "expire": lambda image: expire(image, now=NOW + 5),
    "replay": lambda image: replay(image, now=NOW),
    "redo": lambda image: redo(image, now=NOW),
    "add variants": lambda image: begin_work(image, WorkKind.VARIANTS, now=NOW, recipe=ADDED),
    "add in batch": lambda image: begin_work(
        image, WorkKind.VARIANTS, now=NOW, recipe=ADDED, batch=BATCH, awaits_turn=True
    ),
    "take back": lambda image: cancel_work(image, now=NOW + 7) if image.work and image.attempt == 0 else image,
    "delete": lambda image: delete(image, now=NOW + 6),
    "postpone": lambda image: replace(image, due_at=NOW + 77),
}


def is_written(name: str, row: Image) -> bool:
    """Whether an operation would decide to write that, as far as the table of transitions does not say so."""
    if row.is_deleted:
        return name == "postpone"
    only = {"arrive": Status.AWAITING_UPLOAD, "put back": Status.PROCESSING, "reschedule": Status.SCHEDULED}
    return only.get(name, row.status) is row.status


def record(before: Image | None, after: Image | None) -> dict[str, Any]:
    """The write as the stream has it."""
    images = {"OldImage": before, "NewImage": after}
    written = {name: to_item(image) for name, image in images.items() if image is not None}
    kind = "INSERT" if before is None else "REMOVE" if after is None else "MODIFY"
    return {"eventName": kind, "dynamodb": written}


@given(
    first=st.sampled_from(["accepted", "scheduled", "announced"]),
    in_batch=st.booleans(),
    writes=st.lists(st.sampled_from(sorted(WRITES)), max_size=40),
)
def test_whatever_is_written_the_row_can_tell_it_again_and_the_filters_let_it_through(
    first: str, in_batch: bool, writes: list[str]
) -> None:
    images = FakeImages()
    row = accepted(process_at=NOW + 1_000) if first == "scheduled" else accepted()
    row = replace(row, batch=BATCH if in_batch else None)
    row = images.create(await_upload(row, now=NOW) if first == "announced" else row)
    history: list[tuple[Image | None, Image | None]] = [(None, row)]
    for name in writes:
        if not is_written(name, row):
            continue
        try:
            after = WRITES[name](row)
        except (TransitionRefused, AttributeError):  # this state does not allow it
            continue
        # Somebody else may have written meanwhile what nobody is told of.
        images.change(row, replace(row, rescues=row.rescues + 1))
        written = images.change(row, after)
        history.append((row, written))
        row = written
    history.append((row, None))

    events = []
    for before, after_write in history:
        event = event_of(before, after_write)
        written_to_stream = record(before, after_write)
        assert passes(MAPPING["FilterCriteria"]["Filters"], written_to_stream) == (event is not None)
        assert passes(COUNTING["FilterCriteria"]["Filters"], written_to_stream) == is_counted(before, after_write)
        events += [event] if event else []
    assert len({event.event_id for event in events}) == len(events), "an id names one event"
    again = {event.event_id: event for event in events_of(row)}
    ended = [event for event in events if event.type is not EventType.ACCEPTED]
    for event in [possible for possible in events if possible.type is EventType.ACCEPTED] + ended[-REMEMBERED_ENDS:]:
        told_again = again.pop(event.event_id)
        assert (told_again.type, told_again.time, told_again.data["run"]) == (
            event.type,
            event.time,
            event.data["run"],
        )
    assert not again, "nothing else is told"
    if first == "accepted" and not row.is_deleted:
        assert next(events_of(row)).data == events[0].data, "it was not rescheduled"


def test_every_state_is_one_that_the_filter_knows_and_every_type_has_a_meaning() -> None:
    patterns = "".join(written["Pattern"] for written in MAPPING["FilterCriteria"]["Filters"])
    told_by_filter = set(re.findall(r'"([a-z_]+)"', patterns))
    assert {status.value for status in Status} <= told_by_filter
    assert rfc3339(NOW) == "2026-11-21T09:00:00.000Z"
    assert MEANINGS.keys() == set(EventType)


@pytest.mark.parametrize(
    "subject", [accepted().image_id, endpoint_id_from(3, bytes(10)), batch_id_from_bits(bytes(range(16)))]
)
def test_the_delivery_of_each_kind_of_event_has_an_id_that_its_owner_may_ask_for(subject: str) -> None:
    event = replace(published(None, accepted()), subject=subject)
    assert is_delivery_id(delivery_id_of(event.event_id, event.time))
