"""After a deletion and a sweep, no store has anything that describes the picture."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from random import randbytes
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.bulk.batches import batch_id_for_key, open_batch
from darkroom.domain.bulk.members import Change, Member, MemberState
from darkroom.domain.dead_letters.dead_letter import ARCHIVED_FROM_SECONDS
from darkroom.domain.images.image import (
    Attempt,
    Cause,
    DeadLetterState,
    Image,
    Status,
    list_shard_of,
    message_for,
    run_key,
)
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom.domain.tenants.rate_limits import Policy, bucket_of
from darkroom.domain.usage.usage import Count, Usage
from darkroom.domain.webhooks.delivery import Delivery, DeliveryAttempt, DeliveryStatus
from darkroom.domain.webhooks.endpoint import CustomHeader
from darkroom_cli.operator.domain.next_run import redo
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.tenants import erase as erasing
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, document, http_event, load, received, written
from tests.contract.operated import operated_stack
from tests.erasure import Marks, marks_of, traces, unlike_any_other
from tests.support.fakes.audit import trail_of
from tests.support.fakes.rows import told_by
from tests.support.webhooks import delivery, endpoint

CLIENT: Any = boto3.client
PHOTO = unlike_any_other(1)
RECIPE = json.dumps({"variants": [{"name": "marked-7f3a9", "width": 64}, {"name": "marked-c21d0", "height": 32}]})
ERROR = "the seventh seal of a1b2c3"


WORDS: dict[str, Any] = {
    "reference": "order-of-marked-18d02",
    "tags": ["marked-5e11f", "marked-9b3c7"],
    "metadata": {"shot_by": "marked-40aa8"},
}
IN_A_QUERY = {
    "reference": WORDS["reference"],
    "tags": ",".join(WORDS["tags"]),
    "metadata": json.dumps(WORDS["metadata"]),
}
"""What the client writes on an image."""


def done_twice(
    functions: Functions, photo: bytes = PHOTO, recipe: str = RECIPE, words: dict[str, str] = IN_A_QUERY
) -> str:
    """Developed, by a worker that did not hear of its row's end and kept its work, and developed again by an
    operator."""
    image_id = str(document(functions.post(photo, {"recipe": recipe, **words}))["id"])
    functions.work()
    made = asdict(functions.row(image_id))
    worker: Any = functions.transcode_image
    kept = {name: made[name] for name in ("variants", "notices", "placeholder", "attention")}
    worker.ports.once.keep(run_key(image_id, 1), kept)
    _change(functions, image_id, lambda row: redo(row, now=row.created_at))
    _send(functions, image_id)
    functions.work()
    row = functions.row(image_id)
    assert (row.status, row.run) == (Status.DONE, 2)
    return image_id


def given_up(functions: Functions) -> str:
    """Failed five times: it has a dead letter, with a copy in the archive."""
    image_id = str(document(functions.post(PHOTO, {"recipe": RECIPE, **IN_A_QUERY}))["id"])
    cause = Cause(error_type="KeyError", message=ERROR, stack=f"at line 7\nKeyError: {ERROR}")
    attempt = Attempt(run=1, number=5, request_id="r", started_at=1, ended_at=2, cause=cause)
    _change(functions, image_id, lambda row: replace(row, attempt=5, attempts=(attempt,)))
    functions.work()
    call(functions.sweep_due_images, {})
    assert functions.row(image_id).dead_letter is DeadLetterState.PLACED
    archiver: Any = functions.archive_dead_letters
    later = archiver.ports.clock() + ARCHIVED_FROM_SECONDS * 1000 + 10_000
    archiver.ports = replace(archiver.ports, clock=lambda: later)
    assert call(archiver, {})["outcomes"]["archived"] == 1
    return image_id


def refused(functions: Functions) -> str:
    """Its bytes are no whole photo."""
    image_id = str(document(functions.post(PHOTO[:-900], {"recipe": RECIPE, **IN_A_QUERY}))["id"])
    functions.work()
    assert functions.row(image_id).status is Status.FAILED
    return image_id


def announced(functions: Functions) -> str:
    """Its bytes have come, and no notification of it."""
    order = {"bytes": len(PHOTO), "sha256": hashlib.sha256(PHOTO).hexdigest(), "recipe": json.loads(RECIPE), **WORDS}
    event = http_event("POST", "/uploads", body=json.dumps(order).encode())
    image_id = str(document(call(functions.begin_upload, event))["id"])
    boto3.client("s3").put_object(Bucket=functions.aws.uploads_bucket, Key=f"uploads/{image_id}", Body=PHOTO)
    return image_id


def held(functions: Functions) -> str:
    """Scheduled for a time that is days away, in a batch."""
    image_id = str(document(functions.post(PHOTO, {"recipe": RECIPE, "delay": "P2D", **IN_A_QUERY}))["id"])
    call(functions.hold_images, received(functions.aws.hold_queue_url))
    return image_id


def fetching(functions: Functions) -> str:
    """Its URL was given, and its source has not answered yet."""
    order = {"url": "https://photos.example/harbour.jpg?token=marked-91be0", "recipe": json.loads(RECIPE), **WORDS}
    event = http_event("POST", "/images", body=json.dumps(order).encode(), headers={"content-type": "application/json"})
    return str(document(call(functions.submit_image, event))["id"])


def told_to_webhooks(functions: Functions) -> str:
    """Developed, and told to three webhooks: one takes it, one never does, and one, which is gone, waits for another
    attempt. Each has answered with words about it."""
    stack = operated_stack(functions.aws)
    webhooks = [endpoint(place, tenant_id="default", url=f"https://{place}.example.com/") for place in range(3)]
    for webhook in webhooks:
        stack.endpoints.create(webhook)
    image_id = str(document(functions.post(PHOTO, {"recipe": RECIPE, **IN_A_QUERY}))["id"])
    functions.work()
    tell(functions)
    ways = (DeliveryStatus.WAITING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)
    for webhook, status in zip(webhooks, ways, strict=True):
        for row in stack.deliveries.page(webhook.endpoint_id, limit=9).deliveries:
            assert isinstance(row, Delivery)
            attempt = DeliveryAttempt(number=1, started_at=1, status=500, response="marked-7f3a9 is not welcome")
            due_at = row.due_at if status is DeliveryStatus.WAITING else None
            stack.deliveries.change(row, replace(row, status=status, attempt=1, attempts=(attempt,), due_at=due_at))
    stack.endpoints.remove(webhooks[0].tenant_id, webhooks[0].endpoint_id)
    return image_id


def tell(functions: Functions) -> None:
    """What the rows' stream tells reaches both consumers, whose messages are then gone."""
    aws = functions.aws
    call(functions.publish_events, {"Records": written(aws.images_table)})
    for consumer, url in (
        (functions.create_deliveries, aws.webhooks_queue_url),
        (functions.count_usage, aws.usage_queue_url),
    ):
        while (batch := received(url))["Records"]:
            assert call(consumer, batch) == {"batchItemFailures": []}


STORIES: dict[str, Callable[[Functions], str]] = {
    story.__name__: story for story in (done_twice, given_up, refused, announced, fetching, held, told_to_webhooks)
}


@pytest.mark.guards("upload-removed-with-tombstone", case="announced")
@pytest.mark.guards(
    "erasure-sweeper-forgets-work",
    "erasure-work-of-every-run",
    "sweeper-original-removed",
    "sweeper-outputs-removed",
    case="done_twice",
)
@pytest.mark.guards("erasure-archive-no-texts", "erasure-dead-letter-no-texts", case="given_up")
@pytest.mark.guards("erasure-late-event-no-details", "erasure-sweeper-blanks-deliveries", case="told_to_webhooks")
@pytest.mark.parametrize("story", STORIES)
def test_nothing_that_describes_a_deleted_image_is_left_in_any_store(
    story: str, functions: Functions, log: io.StringIO
) -> None:
    image_id = STORIES[story](functions)
    marks = _marks(functions, image_id)
    before = traces(marks, CLIENT)
    assert before, "before the deletion the marks are found"
    assert call(functions.delete_image, http_event("DELETE", f"/images/{image_id}"))["statusCode"] == 204
    assert call(functions.sweep_due_images, {})["outcomes"] == {"removed": 1}
    assert traces(marks, CLIENT) == []
    new = endpoint(7, tenant_id="default", url="https://new.example.com/")
    operated_stack(functions.aws).endpoints.create(new)
    tell(functions)  # of the deletion, and of everything before once more
    assert traces(marks, CLIENT) == []
    never_logged = {name: mark for name, mark in marks.items() if not name.startswith("what ")}
    logged = log.getvalue().encode()
    assert image_id.encode() in logged
    assert [name for name, mark in never_logged.items() if mark and mark in logged] == []


@pytest.mark.parametrize("is_core", [False, True], ids=["with all parts", "after the parts went"])
def test_an_erased_tenant_leaves_tombstones_and_nothing_else(
    aws: Aws, functions: Functions, monkeypatch: pytest.MonkeyPatch, is_core: bool
) -> None:
    stack = operated_stack(aws, seconds_behind=60)
    for tenant in ("acme-73f1", "other"):
        stack.tenants.add_tenant(Tenant(tenant_id=tenant, tier=Tier.FREE, created_at=1))
        create_key(
            CreateKeyPorts(audit=trail_of(), tenants=stack.tenants, clock=lambda: 1, randomness=randbytes),
            tenant,
            label=f"of {tenant}",
        )
    other = json.dumps({"variants": [{"name": "other", "width": 64}]})
    theirs = done_twice(functions, unlike_any_other(2), other, words={})
    ours = done_twice(functions)
    for image_id, tenant in ((ours, "acme-73f1"), (theirs, "other")):
        boto3.client("dynamodb").update_item(
            TableName=aws.images_table,
            Key={"image_id": {"S": image_id}},
            UpdateExpression="SET tenant_id = :tenant, list_shard = :shard",
            ExpressionAttributeValues={":tenant": {"S": tenant}, ":shard": {"S": list_shard_of(tenant, image_id)}},
        )
    webhooks = [
        endpoint(
            place,
            tenant_id=tenant,
            number=number,
            url=f"https://{tenant}.example.com/{place}",
            headers=(CustomHeader(name="X-Shop", value=f"the shop of {tenant}"),),
        )
        for number, tenant in enumerate(("acme-73f1", "other"))
        for place in (0, 1)
    ]
    for webhook in webhooks:
        stack.endpoints.create(webhook)
        stack.deliveries.create(delivery(to=webhook, body=f"an event of {webhook.tenant_id}"))
    stack.endpoints.remove(webhooks[1].tenant_id, webhooks[1].endpoint_id)
    boto3.client("dynamodb").update_item(  # what a newer version wrote is erased too
        TableName=aws.endpoints_table,
        Key={"tenant_id": {"S": "acme-73f1"}, "place": {"N": "0"}},
        UpdateExpression="SET failures = :strange",
        ExpressionAttributeValues={":strange": {"S": "a few"}},
    )
    for tenant in ("acme-73f1", "other"):
        counts = [
            Count(event_id=f"{tenant}-{day}", tenant_id=tenant, day=day, usage=Usage(images=1), forget_at=2**40)
            for day in ("2026-11-21", "stored")
        ]
        stack.usage.add(counts)
        for policy in Policy:
            stack.token_buckets.take(bucket_of(policy, tenant), Tier.FREE.allowance, 1)
        stack.pauses.pause(Pause(kind="tenant", name=tenant, since=1))
        batches = BatchesTable(boto3.client("dynamodb"), aws.batches_table)
        begun = open_batch(batch_id_for_key(tenant, "1"), tenant_id=tenant, now=1, name=f"of {tenant}", of_import="csv")
        batch = batches.create(begun)
        manifests = ManifestsBucket(boto3.client("s3"), aws.uploads_bucket)
        manifests.put_report(batch.batch_id, "part", f"row 3 of {tenant}".encode())
        form = manifests.form_for(batch.batch_id, size_bytes=1, media_type="text/csv", seconds=60, now=1)
        boto3.client("s3").put_object(
            Bucket=aws.uploads_bucket, Key=form.fields["key"], Body=f"url\nhttps://photos.{tenant}.example/".encode()
        )
        member = Member(batch_id=batch.batch_id, image_id=ours if tenant != "other" else theirs, joined_at=1)
        batches.count(batch, [Change(None, replace(member, state=MemberState.DONE))], now=1)
    marks = _marks(functions, ours) | {
        "its key's label": b"of acme-73f1",
        "a webhook's URL": b"https://acme-73f1.example.com",
        "a webhook's header": b"the shop of acme-73f1",
        "a delivery": b"an event of acme-73f1",
        "its name, as a key or in it": b'"tenant_id": {"S": "acme-73f1',
        "its pause": b"tenant#acme-73f1",
        "a batch": batch_id_for_key("acme-73f1", "1").encode(),
        "a manifest": b"https://photos.acme-73f1.example/",
        "a report on its rows": b"row 3 of acme-73f1",
    }
    for name in ("AUTHORIZER_CACHE_SECONDS", "_LAG_SECONDS"):
        monkeypatch.setattr(erasing, name, 0)
    erasing.erase(stack, ["acme-73f1"], as_json=False)
    sweep = functions.sweep_due_images
    if is_core:  # its functions know no table of a part but that of deliveries
        left = {name: it for name, it in aws.environment.items() if name not in ("ENDPOINTS_TABLE", "USAGE_TABLE")}
        monkeypatch.setattr(type(aws), "environment", property(lambda _: left | {"IMPORTS": "false"}))
        sweep = load("sweep_due_images", aws, monkeypatch)
    assert call(sweep, {})["outcomes"] == {"removed": 1}
    assert traces(marks, CLIENT) == [f"the table {aws.images_table} has its name, as a key or in it"]
    tombstone = functions.row(ours)
    assert (tombstone.tenant_id, told_by(tombstone)) == ("acme-73f1", set())
    assert functions.row(theirs).status is Status.DONE
    assert len(stack.endpoints.of_tenant("other")) == 2
    assert len(list(stack.deliveries.endpoints_of(["other"]))) == 2
    assert len(list(stack.usage.days_of("other", since="2026", until="~"))) == 2
    assert boto3.client("dynamodb").scan(TableName=aws.token_buckets_table)["Count"] == len(Policy)
    assert [pause.subject for pause in stack.pauses.all() if isinstance(pause, Pause)] == ["tenant#other"]
    assert boto3.client("dynamodb").scan(TableName=aws.batches_table)["Count"] == 3, "of the other: itself, sum, image"
    assert [key.tenant_id for key in stack.tenants.all_keys() if isinstance(key, ApiKey)] == ["other"]


def test_the_scan_finds_every_kind_of_mark(functions: Functions) -> None:
    """What it would miss before the deletion, it would miss after it."""
    stories = {"done": done_twice, "failed": given_up, "told": told_to_webhooks}
    places = {name: _places(functions, name, story(functions)) for name, story in stories.items()}
    assert {"ImagesTable", "IdempotencyTable", "originals", "outputs"} <= places["done"]
    assert {"ImagesTable", "originals"} <= places["failed"]
    assert "DeliveriesTable" in places["told"]


def _places(functions: Functions, name: str, image_id: str) -> set[str]:
    places = "\n".join(traces(_marks(functions, image_id), CLIENT))
    aws = functions.aws
    tables = {
        "ImagesTable": aws.images_table,
        "IdempotencyTable": aws.idempotency_table,
        "DeliveriesTable": aws.deliveries_table,
    }
    buckets = {"originals": f"originals/{image_id}", "outputs": f"outputs/{image_id}"}
    return {place for place, text in (tables | buckets).items() if text in places}


def _marks(functions: Functions, image_id: str) -> Marks:
    s3, bucket = boto3.client("s3"), functions.aws.outputs_bucket
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"outputs/{image_id}/").get("Contents", [])
    outputs = {each["Key"]: s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in listed}
    return marks_of(PHOTO, functions.row(image_id), outputs)


def _change(functions: Functions, image_id: str, change: Callable[[Image], Image]) -> None:
    row = functions.row(image_id)
    ImagesTable(boto3.client("dynamodb"), functions.aws.images_table).change(row, change(row))


def _send(functions: Functions, image_id: str) -> None:
    row = functions.row(image_id)
    message: Any = {"MessageBody": message_for(row).model_dump_json(), "MessageGroupId": row.tenant_id}
    boto3.client("sqs").send_message(QueueUrl=functions.aws.slow_queue_url, **message)
