"""The events: what the world is told about an image, derived from two versions of its row and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from darkroom.domain.images.image import Image, RunEnd, Status, Variant, Work, WorkKind
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls, picture_of, urls_of
from darkroom.domain.images.stored_by import stored_by, variant_bytes
from darkroom.domain.images.works import run_of_key
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import Milliseconds, from_rfc3339, rfc3339
from darkroom.domain.kernel.paths import image_path, status_path, variant_path
from darkroom.domain.kernel.stored import NOTHING, Stored


class EventType(StrEnum):
    """What happened. This is the catalogue: consumers must ignore types that they do not know."""

    ACCEPTED = "image.accepted"
    DONE = "image.done"
    FAILED = "image.failed"
    CANCELLED = "image.cancelled"
    EXPIRED = "image.expired"
    DELETED = "image.deleted"
    VARIANTS_ADDED = "image.variants_added"
    VISIBILITY_CHANGED = "image.visibility_changed"
    WORK_FAILED = "image.work_failed"
    REDEVELOPED = "image.redeveloped"
    WEBHOOK_FAILING = "webhook.failing"
    WEBHOOK_DISABLED = "webhook.disabled"
    BATCH_COMPLETED = "batch.completed"
    BATCH_FAILED = "batch.failed"
    BATCH_CANCELLED = "batch.cancelled"
    SCHEDULE_DUE = "schedule.due"


MEANINGS: Mapping[EventType, str] = {
    EventType.ACCEPTED: "An image was accepted with its bytes: by POST /images, or when they came later.",
    EventType.DONE: "A run of it has ended with all variants made. After a redo it happens again, for the next run.",
    EventType.FAILED: "A run of it has ended without variants, or its bytes were refused; `error` says why.",
    EventType.CANCELLED: "Its client deleted it before it had ended: nothing is left of it.",
    EventType.EXPIRED: "Its `expires_at` came before a worker did, or its upload never came.",
    EventType.DELETED: "Its client deleted it after it had ended: its picture and variants are gone.",
    EventType.VARIANTS_ADDED: "Variants that were asked for later are there, beside the others or in their place; "
    "after an edit, in the place of all.",
    EventType.VISIBILITY_CHANGED: "Others may see its variants now, at other URLs: `variants` has all of them.",
    EventType.REDEVELOPED: "The variants of its preset's present version are there, in the place of an earlier one's. "
    "Only webhooks that name this type hear of it: an operator may do so to millions of images.",
    EventType.WORK_FAILED: "A redo, variants that were asked for later, another visibility, a preset's present "
    "version or an edit could not be made; `error` says why. The image stays as it is.",
    EventType.WEBHOOK_FAILING: "For a day, everything that was sent to a webhook has failed.",
    EventType.WEBHOOK_DISABLED: "A webhook is sent nothing any more: by its owner, because it answered 410, or because "
    "everything had failed for five days; `disabled_by` says why. Its deliveries are kept for 30 days.",
    EventType.BATCH_COMPLETED: "All images of a batch have ended; `images` says how many in which way.",
    EventType.BATCH_FAILED: "A batch that stops with its first failure has stopped: what was not begun was deleted, "
    "and the rest has ended.",
    EventType.BATCH_CANCELLED: "Its client cancelled a batch: what was not begun was deleted, and the rest has ended.",
    EventType.SCHEDULE_DUE: "A time has come that the operator has planned for the tenant; `planned_for` is the time, "
    "and `name` the schedule's.",
}
"""What each type tells, in the words of its documentation."""

ONLY_BY_NAME = frozenset({EventType.REDEVELOPED})
"""What no pattern means but the type itself."""

PATTERNS = ("*", *dict.fromkeys(f"{kind.partition('.')[0]}.*" for kind in EventType), *EventType)
"""What an endpoint may ask for: every type, those that begin with a word, or one."""

_OF_ENDS = {
    Status.DONE: EventType.DONE,
    Status.FAILED: EventType.FAILED,
    Status.CANCELLED: EventType.CANCELLED,
    Status.EXPIRED: EventType.EXPIRED,
}

_OF_WORKS = {
    WorkKind.REDO: EventType.DONE,
    WorkKind.VARIANTS: EventType.VARIANTS_ADDED,
    WorkKind.VISIBILITY: EventType.VISIBILITY_CHANGED,
    WorkKind.REDEVELOP: EventType.REDEVELOPED,
    WorkKind.EDIT: EventType.VARIANTS_ADDED,
}

_OF_WORK_ALONE = frozenset({*_OF_WORKS.values(), EventType.WORK_FAILED}) - {EventType.DONE}
"""What tells of work beside an image, and not of the image's own run."""

_OF_VARIANTS = (EventType.DONE, EventType.VARIANTS_ADDED, EventType.REDEVELOPED)


@dataclass(frozen=True, kw_only=True)
class PublishedEvent:
    """One thing that happened, at `time`, to the image, endpoint, batch or schedule whose id is `subject`. `sequence`
    is the version of the row that says so, or the time in seconds that a schedule's run was planned for: of two events
    of a subject, the one with the higher sequence is newer, whichever arrives first. Only images have a lane and a
    preset. `notify` is the only endpoint that an image's or a batch's
    client wants to hear of it; None if all may."""

    type: EventType
    subject: str
    tenant_id: str
    sequence: int
    time: Milliseconds
    data: Mapping[str, Any]
    lane: str | None = None
    preset: str | None = None
    notify: str | None = None

    @property
    def event_id(self) -> str:
        """Its name: the same whenever and however often it is published. It has no full stop, which Standard Webhooks
        forbids in ids."""
        return f"{self.subject}-{self.sequence}"


def event_of_image(before: Image | None, after: Image, edge: EdgeUrls = NO_EDGE) -> PublishedEvent | None:
    """What one write of an image's row has to tell: at most one event, most writes none. `before` is None for a new
    row."""
    if before is not None and before.is_deleted:
        return None
    if before is None and after.version != 1:  # guard: restore-without-event
        return None  # an operator has put a lost row back (`darkroom restore`): what it tells was told
    kind = _type_of(before, after)
    if kind is None:
        return None
    times = {EventType.ACCEPTED: after.accepted_at, EventType.DELETED: after.deleted_at}
    # A version that did not know events wrote no `accepted_at`.
    time = times.get(kind, after.ended_at) or after.created_at
    # guard: quotas-redo-difference
    stored = stored_by(after) - stored_by(before)
    return _event(after, kind, version=after.version, time=time, stored=stored, edge=edge)


def _type_of(before: Image | None, after: Image) -> EventType | None:
    was = None if before is None else before.status
    if after.is_deleted:
        return EventType.DELETED if before is not None and before.outcome.is_terminal else EventType.CANCELLED
    if after.status.is_terminal:
        is_new = before is None or (was, before.run) != (after.status, after.run)
        if is_new and before is not None and before.work is not None and after.works[-1].ended_at is not None:
            return _of_work(after.works[-1])  # guard: works-events-of-their-own
        return _OF_ENDS[after.status] if is_new else None
    is_accepted = after.status in (Status.SCHEDULED, Status.PENDING)
    return EventType.ACCEPTED if is_accepted and was in (None, Status.AWAITING_UPLOAD, Status.FETCHING) else None


def _of_work(work: Work) -> EventType:
    return EventType.WORK_FAILED if work.failed else _OF_WORKS[work.kind]


def events_of_image(image: Image, edge: EdgeUrls = NO_EDGE) -> Iterator[PublishedEvent]:
    """All events that the row still tells, oldest first, with the ids that they were first published with.

    Those of earlier runs come without their details, and so do those of a tombstone: the row has no others. A row that
    was written by a version without events tells none of that time.
    """
    if image.accepted_version is not None and image.accepted_at is not None:
        here = int(image.has_original)
        stored = Stored(size_bytes=image.source.size_bytes, images=here, unfinished=here)
        yield _event(image, EventType.ACCEPTED, version=image.accepted_version, time=image.accepted_at, stored=stored)
    for end in image.earlier_ends:
        yield _event(image, _OF_ENDS[end.status], version=end.version, time=end.ended_at, end=end)
    if image.outcome.is_terminal and image.completed_version is not None and image.completed_at is not None:
        kind = _OF_ENDS[image.outcome]
        yield _event(
            image,
            kind,
            version=image.completed_version,
            time=image.completed_at,
            stored=_stored_by_its_end(image),
            edge=edge,
        )
    yield from _events_of_works(image, edge)
    # guard: events-withdrawal-told-once
    if image.deleted_version is not None and image.deleted_version != image.completed_version and image.deleted_at:
        yield _event(image, EventType.DELETED, version=image.deleted_version, time=image.deleted_at)


def _events_of_works(image: Image, edge: EdgeUrls) -> Iterator[PublishedEvent]:
    for work in image.works:
        version = work.version or image.work_version
        kind = _of_work(work)
        # A redo's end is the image's own.
        if work.ended_at is not None and version is not None and kind is not EventType.DONE:
            yield _event(image, kind, version=version, time=work.ended_at, work=work, edge=edge)


def _stored_by_its_end(image: Image) -> Stored:
    """What the current run has added; none if it is not known what its variants have replaced."""
    is_first = len(image.earlier_ends) == image.run - 1 and all(
        end.status is not Status.DONE for end in image.earlier_ends
    )
    # guard: quotas-repeated-event-bound
    size_bytes = variant_bytes(image) if image.status is Status.DONE and is_first else 0
    # guard: unfinished-end-told-again
    ends_first = image.run == 1 and image.has_original and image.accepted_version is not None
    return Stored(size_bytes=size_bytes, unfinished=-int(ends_first))


def _event(
    image: Image,
    kind: EventType,
    *,
    version: int,
    time: Milliseconds,
    end: RunEnd | None = None,
    work: Work | None = None,
    stored: Stored = NOTHING,
    edge: EdgeUrls = NO_EDGE,
) -> PublishedEvent:
    run, batch = image.outcome_run, image.batch
    if kind in _OF_WORK_ALONE:
        work = work or image.works[-1]
        run, batch = work.run, work.batch or batch
    details: dict[str, Any] = {}
    if kind is EventType.ACCEPTED and not image.is_deleted:
        details = {
            "bytes": image.source.size_bytes,
            "media_type": image.source.media_type,
            "process_at": rfc3339(image.process_at),
        }
    elif kind in _OF_VARIANTS and end is None and not image.is_deleted:
        # guard: works-event-names-own-variants
        made = [variant for variant in image.variants if not image.works or run_of_key(variant.key) == run]
        details = {"variants": _variants(image, made, edge), **_picture(image, edge)}
    elif work is not None and kind is EventType.VISIBILITY_CHANGED and not image.is_deleted:
        details = {
            "visibility": work.visibility,
            "variants": _variants(image, image.variants, edge),
            **_picture(image, edge),
        }
    elif kind in (EventType.FAILED, EventType.EXPIRED) and end is None and image.error is not None:
        details = {"error": {"code": image.error.code, "message": image.error.message}}
    elif work is not None and work.error is not None:
        details = {"work": work.kind.value, "error": {"code": work.error.code, "message": work.error.message}}
    return PublishedEvent(
        type=kind,
        subject=image.image_id,
        tenant_id=image.tenant_id,
        lane=image.lane,
        preset=image.preset,
        sequence=version,
        time=time,
        notify=image.notify,
        data={
            "id": image.image_id,
            "tenant_id": image.tenant_id,
            "lane": image.lane,
            "preset": image.preset,
            "run": 1 if kind is EventType.ACCEPTED else run if end is None else end.run,
            **({} if batch is None else {"batch": batch}),
            **({} if image.reference is None else {"reference": image.reference}),
            **details,
            **({} if stored == NOTHING else {"stored": stored.written}),
            "links": {"self": image_path(image.image_id), "status": status_path(image.image_id)},
        },
    )


def _picture(image: Image, edge: EdgeUrls) -> dict[str, Any]:
    """What a website shows of a public image; nothing of others."""
    picture = picture_of(image, edge)
    if picture is None:
        return {}
    names = ("url", "width", "height", "srcset")
    shown = {name: getattr(picture, name) for name in names}
    return {"picture": shown, "placeholder": image.placeholder}


def _variants(image: Image, variants: Iterable[Variant], edge: EdgeUrls) -> list[dict[str, Any]]:
    urls = urls_of(image, edge)
    return [
        {
            "name": variant.name,
            "width": variant.width,
            "height": variant.height,
            "format": variant.format,
            "bytes": variant.size_bytes,
            "url": urls.get(variant.name) or variant_path(image.image_id, variant.name),
        }
        for variant in variants
    ]


def body_of(event: PublishedEvent, *, source: str) -> str:
    """The event as JSON: a CloudEvents 1.0 event (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md)
    that is also a payload of Standard Webhooks (`type`, `timestamp`, `data`), under 50 KB.

    `source` names the stack. It links to the API and has no URL of an object: that would be dead when a retry arrives.
    """
    return written_event(
        event_id=event.event_id,
        event_type=event.type,
        source=source,
        subject=event.subject,
        time=event.time,
        # CloudEvents' extension of this name is a text.
        extensions={"sequence": str(event.sequence), "sequencetype": "Integer"}
        | ({} if event.notify is None else {"notify": event.notify}),
        data=event.data,
    )


def written_event(
    *,
    event_id: str,
    event_type: str,
    source: str,
    subject: str,
    time: Milliseconds,
    data: Mapping[str, Any],
    extensions: Mapping[str, str] | None = None,
) -> str:
    """Any event in the form of `body_of`."""
    written = rfc3339(time)
    return json.dumps(
        {
            "specversion": "1.0",
            "id": event_id,
            "source": source,
            "type": str(event_type),
            "subject": subject,
            "time": written,
            "timestamp": written,
            **(extensions or {}),
            "datacontenttype": "application/json",
            "data": data,
        },
        separators=(",", ":"),
    )


_OF_A_TOMBSTONE = frozenset({"id", "tenant_id", "lane", "preset", "run", "batch", "links"})
"""What `data` has of an image that was deleted."""


def without_details(body: str) -> str:
    """The event of an image as it is published again after the image was deleted."""
    written = json.loads(body)
    data = {name: value for name, value in written["data"].items() if name in _OF_A_TOMBSTONE}
    return json.dumps({**written, "data": data}, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class ReceivedEvent:
    """An event as a consumer receives it. `type` may be one that this version does not know."""

    event_id: str
    type: str
    tenant_id: str
    subject: str
    sequence: int
    time: Milliseconds
    data: Mapping[str, Any]
    notify: str | None = None


def image_id_of_event(event_id: str) -> str | None:
    """The image that the event of this id is about; None if it is about something else."""
    subject = event_id.rpartition("-")[0]
    return subject if is_image_id(subject) else None


def without_stored(body: str) -> str:
    """The body as a webhook gets it. What a tenant stores is for this stack to count; a delivery waits for days, and
    would tell the size of an image that was deleted."""
    written = json.loads(body)
    if written["data"].pop("stored", None) is None:
        return body
    return json.dumps(written, separators=(",", ":"))


class UnreadableEvent(ValueError):
    """A message that is no event; it stays in its queue until it becomes a dead letter."""


def read_event(body: str) -> ReceivedEvent:
    """The event in a queue record's body. Raises UnreadableEvent, saying what is wrong."""
    try:
        written = json.loads(body)
        data = written["data"]
        return ReceivedEvent(
            event_id=_text(written["id"]),
            type=_text(written["type"]),
            tenant_id=_text(data["tenant_id"]),
            subject=_text(data["id"]),
            sequence=int(_text(written["sequence"])),
            time=from_rfc3339(_text(written["time"])),
            data=data,
            notify=None if "notify" not in written else _text(written["notify"]),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableEvent(f"not an event: {type(error).__name__}: {error}") from error


def image_id_in(body: str) -> str | None:
    """The image that the event in a queue record's body is about; None if it is about none, or no event."""
    try:
        return image_id_of_event(read_event(body).event_id)
    except UnreadableEvent:
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
