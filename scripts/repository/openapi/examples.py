"""Examples for openapi.json: images made by the domain's functions, in the documents that the handlers answer with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from darkroom.domain.bulk import imports
from darkroom.domain.bulk.batches import Batch, BatchState, Counts, OnFailure, Sums, close, end, open_batch
from darkroom.domain.bulk.imports import End, ImportState, WaitsFor, new_import
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.bulk.schedules import Plan, RunOutcome, Schedule, add, begin
from darkroom.domain.bulk.schedules import end as end_run
from darkroom.domain.events.event import EventType, PublishedEvent, body_of, without_stored, written_event
from darkroom.domain.images.image import Image, Source, Status, Variant, WorkKind
from darkroom.domain.images.listing import Cursor
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.images.transitions import (
    UPLOAD_SECONDS,
    accept,
    await_upload,
    begin_work,
    complete,
    delete,
    end_change,
    expire,
    redevelop,
    reject,
)
from darkroom.domain.images.works import moved
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import BULK, SLOW
from darkroom.domain.kernel.tenants import NOBODY_IN_PARTICULAR
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.presets import DEFAULT_PRESET, PRESETS
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.domain.tenants.upload_tokens import UploadToken, signed_token
from darkroom.domain.webhooks.delivery import (
    PING,
    Answer,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    new_delivery,
    record,
)
from darkroom.domain.webhooks.endpoint import (
    ROTATION_SECONDS,
    CustomHeader,
    DisabledBy,
    Endpoint,
    SigningSecret,
    disable,
    fail,
)
from darkroom.domain.webhooks.row_events import Row, events_of
from darkroom.domain.webhooks.webhook_signature import secret_text
from darkroom.http.bulk.batches import BatchDocument, BatchesDocument, batch_document, listed_batch_document
from darkroom.http.bulk.batches import cursor_text as batch_cursor
from darkroom.http.bulk.imports import ImportDocument, NewImportDocument, import_document, new_import_document
from darkroom.http.images.documents import (
    FormDocument,
    ImageDocument,
    PageDocument,
    StatusDocument,
    UploadDocument,
    image_document,
    listed_document,
    status_document,
)
from darkroom.http.images.list_queries import cursor_text
from darkroom.http.kernel.headers import EXAMPLE_BATCH_ID, EXAMPLE_ID, EXAMPLE_WEBHOOK_ID
from darkroom.http.uploads.upload_tokens import UploadTokenDocument, upload_token_document
from darkroom.http.usage.usage import DayDocument, UsageDocument
from darkroom.http.webhooks.routes import EXAMPLE_URL
from darkroom.http.webhooks.webhooks import (
    DeliveriesDocument,
    DeliveryDocument,
    NewWebhookDocument,
    WebhookDocument,
    WebhooksDocument,
    delivery_document,
    new_webhook_document,
    webhook_document,
)
from darkroom.operations.bulk.manage_batches import ReadBatch
from darkroom.ports.bulk import BatchCursor
from darkroom.ports.uploads import UploadForm

ACCEPTED_AT: Milliseconds = 1_795_251_600_000
"""2026-11-21T09:00:00Z."""

_SOURCE = "/darkroom/darkroom-prod"

_EDGE = EdgeUrls(base="https://d111111abcdef8.cloudfront.net")

_NEWEST = secret_text(bytes(range(32)))

_SHA256 = "9f2c6b7e41d05a83c7be19f4402d6a58e3b0c1f7a94d2e6b85037cfa61d9e824"


def accepted() -> Image:
    """An image that was accepted just now."""
    return accept(
        image_id=EXAMPLE_ID,
        tenant_id="default",
        lane=SLOW.name,
        preset=DEFAULT_PRESET,
        recipe=PRESETS[DEFAULT_PRESET],
        fingerprint="",
        correlation_id="T3stRequ3stId=",
        source=Source(version_id="1", sha256=_SHA256, size_bytes=3_481_912, media_type="image/jpeg"),
        now=ACCEPTED_AT,
    )


def _upload_token() -> UploadTokenDocument:
    token = UploadToken(
        token_id="1kyvb60cwewgmgxx",  # noqa: S106 -- it names the token and opens nothing
        key_id="7g3jx0k2",
        expires_at=ACCEPTED_AT + 900_000,
        count=1,
        max_bytes=10_000_000,
        order={"preset": "avatar"},
    )
    return upload_token_document(token, signed_token(token, key_id="example", secret=""))


def announced() -> Image:
    """The same image before its bytes arrive."""
    return await_upload(accepted(), now=ACCEPTED_AT)


def _claimed() -> Image:
    return replace(accepted(), status=Status.PROCESSING, attempt=1, version=2)


def done() -> Image:
    """The same image, developed."""
    variants = (
        ("thumb", 256, 144, "jpeg", 7_726),
        ("medium", 800, 450, "jpeg", 52_310),
        ("large", 1920, 1080, "jpeg", 240_118),
        ("webp", 1920, 1080, "webp", 187_402),
    )
    return complete(
        _claimed(),
        tuple(
            Variant(
                name=name,
                width=width,
                height=height,
                format=form,
                size_bytes=size_bytes,
                sha256=_SHA256,
                key=f"outputs/{EXAMPLE_ID}/1/{name}",
            )
            for name, width, height, form, size_bytes in variants
        ),
        notices=(),
        now=ACCEPTED_AT + 1_300,
        placeholder={"thumbhash": "1QcSHQRnh493V4dIh4eXh1h4kJUI", "color": "#7a8b5c"},
    )


def failed() -> Image:
    """The same image if its file had been cut off."""
    return reject(_claimed(), code="truncated", message="The file ends before the picture does.", now=ACCEPTED_AT + 500)


def adding() -> Image:
    """The developed image when one more variant was asked for."""
    hero = Recipe(variants=(VariantSpec(name="hero", width=2400, height=2400),))
    row = replace(done(), version=3)
    return begin_work(row, WorkKind.VARIANTS, now=ACCEPTED_AT + 5_000, recipe=hero)


def added() -> Image:
    """The same image with that variant."""
    key = f"outputs/{EXAMPLE_ID}/2/hero"
    hero = Variant(name="hero", width=2400, height=1350, format="jpeg", size_bytes=351_904, sha256=_SHA256, key=key)
    row = replace(adding(), status=Status.PROCESSING, attempt=1, version=5)
    return complete(row, (hero,), notices=(), now=ACCEPTED_AT + 6_100)


def work_failed() -> Image:
    """The same image if that variant could not be made."""
    row = replace(adding(), status=Status.PROCESSING, attempt=1, version=5)
    message = "The image 0b6jkzmw1xb0eztzq1xk8m2v5r, an overlay of this one, was deleted before this one was developed."
    return reject(row, code="overlay_missing", message=message, now=ACCEPTED_AT + 6_100)


def redeveloped() -> Image:
    """The developed image as a second version of its preset makes it."""
    (thumb,) = done().variants[:1]
    row = redevelop(
        replace(done(), version=3),
        PRESETS[DEFAULT_PRESET],
        version=2,
        backfill=f"bf_{EXAMPLE_ID}",
        lane=BULK.name,
        now=ACCEPTED_AT + 5_000,
    )
    made = replace(thumb, key=thumb.key.replace("/1/", "/2/"))
    return complete(
        replace(row, status=Status.PROCESSING, attempt=1, version=5), (made,), notices=(), now=ACCEPTED_AT + 6_100
    )


def published() -> Image:
    """The developed image after it was made public."""
    row = begin_work(
        replace(done(), version=3), WorkKind.VISIBILITY, now=ACCEPTED_AT + 5_000, visibility=Visibility.PUBLIC
    )
    claimed = moved(replace(row, status=Status.PROCESSING, attempt=1, version=5), Visibility.PUBLIC)
    return end_change(claimed, now=ACCEPTED_AT + 5_400)


def webhook() -> Endpoint:
    """A webhook that was made just now."""
    return Endpoint(
        tenant_id="default",
        endpoint_id=EXAMPLE_WEBHOOK_ID,
        url=EXAMPLE_URL,
        events=(EventType.DONE, EventType.FAILED),
        description="the shop",
        headers=(CustomHeader(name="Authorization", sealed=""), CustomHeader(name="X-Shop", value="42")),
        created_at=ACCEPTED_AT,
    )


def failing_webhook() -> Endpoint:
    """The same webhook when it does not answer."""
    later = ACCEPTED_AT + 3_600_000
    return replace(
        webhook(), failures=3, failing_since=ACCEPTED_AT + 6_300, last_failure_at=later, rests_until=later + 1_800_000
    )


def _rotated() -> Endpoint:
    replaced = SigningSecret(generation=1, until=ACCEPTED_AT + ROTATION_SECONDS * 1000)
    return replace(webhook(), secrets=(SigningSecret(generation=2), replaced))


@cache
def event_body(kind: str) -> str:
    """What is sent to webhooks when an event of that type happens to the image."""
    if kind == PING:
        return written_event(
            event_id="ping-5d0c1e7a99b3f248",
            event_type=PING,
            source=_SOURCE,
            subject=EXAMPLE_WEBHOOK_ID,
            time=ACCEPTED_AT,
            data={"tenant_id": "default", "webhook_id": EXAMPLE_WEBHOOK_ID},
        )
    (completed,) = (batch for batch in _batches() if batch.state is BatchState.COMPLETED)
    rows: dict[EventType, Row] = {
        EventType.ACCEPTED: accepted(),
        EventType.DONE: done(),
        EventType.FAILED: failed(),
        EventType.CANCELLED: delete(accepted(), now=ACCEPTED_AT + 900),
        EventType.EXPIRED: expire(accepted(), now=ACCEPTED_AT + 900),
        EventType.DELETED: delete(replace(done(), version=3), now=ACCEPTED_AT + 9_000),
        EventType.VARIANTS_ADDED: added(),
        EventType.VISIBILITY_CHANGED: published(),
        EventType.REDEVELOPED: redeveloped(),
        EventType.WORK_FAILED: work_failed(),
        EventType.WEBHOOK_FAILING: _warned_webhook(),
        EventType.WEBHOOK_DISABLED: disable(_warned_webhook(), DisabledBy.GONE, now=ACCEPTED_AT + 2 * 86_400_000),
        EventType.BATCH_COMPLETED: completed,
        EventType.BATCH_FAILED: replace(completed, state=BatchState.FAILED),
        EventType.BATCH_CANCELLED: replace(completed, state=BatchState.CANCELLED),
        EventType.SCHEDULE_DUE: _due(),
    }
    return without_stored(body_of(_latest_event(rows[EventType(kind)]), source=_SOURCE))


def _due() -> Schedule:
    plan = Plan(name="nightly", cron="0 9 * * *", job="announce", target="default")
    begun = begin(add(plan, now=ACCEPTED_AT - 60_000), now=ACCEPTED_AT)
    return end_run(begun, RunOutcome.DONE, now=(begun.running_for or 0) + 12_000)


def _warned_webhook() -> Endpoint:
    failed_at = ACCEPTED_AT + 90_000_000
    return fail(replace(failing_webhook(), version=22), "d", is_first=True, retry_at=None, is_gone=False, now=failed_at)


def _latest_event(row: Row) -> PublishedEvent:
    *_, event = events_of(row, _EDGE)
    return event


def _waiting() -> Delivery:
    event = _latest_event(done())
    return new_delivery(
        endpoint_id=EXAMPLE_WEBHOOK_ID,
        tenant_id="default",
        event_id=event.event_id,
        event_type=event.type,
        time=event.time,
        body=event_body(event.type),
        now=event.time + 400,
    )


def _attempted(answer: Answer) -> Delivery:
    waiting = _waiting()
    first = DeliveryAttempt(number=1, started_at=waiting.created_at)
    sending = replace(waiting, status=DeliveryStatus.SENDING, attempt=1, attempts=(first,))
    return record(sending, answer, unit_random=0.5, now=waiting.created_at + answer.milliseconds)


def _batches() -> tuple[Batch, Batch]:
    asked: Any = {"name": "catalogue", "parallelism": 20, "on_failure": OnFailure.STOP}
    begun = open_batch(EXAMPLE_BATCH_ID, tenant_id="default", now=ACCEPTED_AT, **asked)
    return begun, end(close(begun, now=ACCEPTED_AT + 60_000), Counts(done=1000), now=ACCEPTED_AT + 300_000)


def _read(batch: Batch) -> ReadBatch:
    sums = Sums(counts=Counts(waiting=870, working=20, done=110), counted_at=ACCEPTED_AT, first_ended_at=ACCEPTED_AT)
    return ReadBatch(batch=batch, sums=sums)


def _url_of(variant: Variant) -> str:
    return f"https://darkroom-outputs.s3.us-east-1.amazonaws.com/{variant.key}?X-Amz-Expires=900&X-Amz-Signature=0a1b2c"


@cache
def examples_of(kind: Any) -> dict[str, Any]:
    """Returns the named examples of that document type; none if it has no example here."""
    if kind is StatusDocument:
        images = {image.status.value: image for image in (accepted(), done(), failed())} | {"adding": adding()}
        documents = {name: status_document(image, _url_of) for name, image in images.items()}
        return documents | {"public": status_document(published(), _url_of, edge=_EDGE)}
    if kind is UploadTokenDocument:
        return {"avatar": _upload_token()}
    if kind is UploadDocument:
        url = "https://darkroom-uploads.s3.us-east-1.amazonaws.com/"
        fields = {"key": f"uploads/{EXAMPLE_ID}", "Content-Type": "image/jpeg", "x-amz-signature": "0a1b2c"}
        expires_at = rfc3339(ACCEPTED_AT + UPLOAD_SECONDS * 1000)
        form: FormDocument = {"url": url, "fields": fields, "expires_at": expires_at}
        return {
            "awaited": {**status_document(announced(), _url_of), "upload": form},
            "uploaded": {**status_document(accepted(), _url_of), "upload": None},
        }
    if kind is ImageDocument:
        return {image.status.value: image_document(image, _url_of) for image in (accepted(), done())}
    if kind is PageDocument:
        cursor = Cursor(created_at=ACCEPTED_AT, image_id=EXAMPLE_ID)
        return {"page": {"images": [listed_document(done())], "next": cursor_text(cursor)}}
    if kind is UsageDocument:
        day = DayDocument(
            day="2026-11-21", images=1, image_bytes=3_481_912, runs=1, variant_bytes=487_556, variant_pixels=4_544_064
        )
        usage = UsageDocument(
            stored={"bytes": 3_969_468, "images": 1},
            quota={"bytes": 10_000_000_000, "images": 20_000},
            since="2026-11-01",
            until="2026-11-30",
            days=[day],
        )
        return {"one": usage}
    if kind is WebhookDocument:
        named = {"new": webhook(), "failing": failing_webhook(), "rotated": _rotated()}
        return {name: webhook_document(endpoint, now=ACCEPTED_AT) for name, endpoint in named.items()}
    if kind is NewWebhookDocument:
        return {"new": new_webhook_document(webhook(), _NEWEST, now=ACCEPTED_AT)}
    if kind is WebhooksDocument:
        return {"one": {"webhooks": [webhook_document(webhook(), now=ACCEPTED_AT)]}, "none": {"webhooks": []}}
    if kind is DeliveryDocument:
        return {"waiting": delivery_document(_waiting())}
    if kind is DeliveriesDocument:
        answers = (Answer(milliseconds=84, status=204), Answer(milliseconds=31, status=500, body="Bad day."))
        deliveries = [_attempted(answer) for answer in answers]
        return {"page": {"deliveries": [*map(delivery_document, deliveries)], "next": deliveries[-1].delivery_id}}
    return _examples_of_batches(kind)


def _examples_of_batches(kind: Any) -> dict[str, Any]:
    if kind is BatchDocument:
        return {batch.state.value: batch_document(_read(batch), now=ACCEPTED_AT + 60_000) for batch in _batches()}
    if kind is BatchesDocument:
        listed = [listed_batch_document(batch) for batch in _batches()]
        return {"page": {"batches": listed, "next": batch_cursor(BatchCursor(ACCEPTED_AT, EXAMPLE_BATCH_ID))}}
    return _examples_of_imports(kind)


def _examples_of_imports(kind: Any) -> dict[str, Any]:
    begun, _ = _batches()
    bucket = "https://darkroom-uploads.s3.us-east-1.amazonaws.com/"
    row = new_import(
        begun,
        NOBODY_IN_PARTICULAR,
        kind=ManifestFormat.CSV,
        size_bytes=48_211_907,
        preset=DEFAULT_PRESET,
        now=ACCEPTED_AT,
    )
    if kind is ImportDocument:
        figures: Any = {"rows": 500_000, "valid": 499_998, "rejected": 2, "created": 120_000, "offset": 11_570_857}
        creating = replace(row, state=ImportState.CREATING, waits_for=WaitsFor.FETCHES, **figures)
        report = [f"{bucket}imports/{EXAMPLE_BATCH_ID}/rejected-0a1b2c.jsonl?X-Amz-Signature=0a1b2c"]
        failed_import = imports.end(
            row,
            End(ImportState.FAILED, "invalid_manifest", "It has no column url."),
            now=ACCEPTED_AT + 60_000,
        )
        return {
            "creating": import_document(creating, begun, report),
            "failed": import_document(failed_import, begun, []),
        }
    if kind is NewImportDocument:
        form = UploadForm(
            url=bucket,
            fields={"key": f"imports/{EXAMPLE_BATCH_ID}/manifest", "Content-Type": "text/csv"},
            expires_at=row.awaited_until,
        )
        return {"awaited": new_import_document(row, begun, [], form)}
    return {}
