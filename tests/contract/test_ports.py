"""What every implementation of a port must do: the fakes that the other tests use, and the adapters to AWS."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import boto3
import pytest
import time_machine
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError

from darkroom.aws.images import images_table
from darkroom.aws.images.images_table import ImagesTable, from_item, to_item
from darkroom.aws.images.memory_table import PREFIX, MemoryTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.once import PowertoolsOnce
from darkroom.aws.images.queues import LaneQueues
from darkroom.aws.kernel.clients import s3_client
from darkroom.aws.schedules.holds import HoldsBucket
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.domain.images.image import (
    LIST_SHARDS,
    Attempt,
    DeadLetterState,
    Failure,
    Source,
    Status,
    Variant,
    due_shard_of,
    message_for,
    waiting_shards_of,
)
from darkroom.domain.images.listing import Cursor
from darkroom.domain.images.transitions import complete, delete
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.kernel.message import read_message
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.recipes import Recipe
from darkroom.ports.images import (
    Due,
    IdempotencyRecords,
    IdempotencyStore,
    IdempotencyUnavailable,
    Images,
    Lanes,
    Listed,
    OriginalMissing,
    Originals,
    Outputs,
    Waiting,
)
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.ports import ImageRegistry
from tests.contract.conftest import Aws
from tests.contract.stores import images_of, spy
from tests.support.fakes import FakeOnce, FakeOriginals, FakeOutputs
from tests.support.fakes.messages import SIGNER
from tests.support.faults import refuse
from tests.support.images import CAUSE, NOW, pending, processing


@pytest.fixture
def images(kind: str, aws: Aws) -> ImageRegistry:
    return images_of(kind, aws)


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def originals(kind: str, aws: Aws) -> Originals:
    return FakeOriginals() if kind == "fake" else OriginalsBucket(boto3.client("s3"), aws.originals_bucket)


@pytest.fixture
def outputs(kind: str, aws: Aws) -> Outputs:
    return FakeOutputs() if kind == "fake" else OutputsBucket(boto3.client("s3"), aws.outputs_bucket)


# ── Images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_is_read_as_it_was_written(images: ImageRegistry) -> None:
    image = replace(
        processing(),
        process_at=NOW,
        expires_at=NOW + 1,
        rescues=3,
        variants=(Variant(name="a", width=1, height=2, format="jpeg", size_bytes=3, sha256="s", key="k"),),
        notices=("Animated.",),
        placeholder={"thumbhash": "k0oGLQaSVsNg", "color": "#7a8b5c"},
        attention={"x": 6250, "y": 0},
        reference="order-17/frönt",
        tags=("shoes", "summer 2027"),
        metadata='{"b":"ä","a":[1.5,{}]}',
        visibilities=(Visibility.SIGNED, Visibility.PRIVATE),
        viewer_seconds=60,
        overlays={"0" * 26: Source(version_id="v", sha256="s", size_bytes=1, media_type="image/png")},
        error=Failure(code="c", message="m", retryable=True),
        attempts=(
            Attempt(run=1, number=1, request_id="r1", started_at=NOW, ended_at=NOW + 9, cause=CAUSE),
            Attempt(run=1, number=2, request_id="r2", started_at=NOW + 10),
        ),
        dead_letter=DeadLetterState.OWED,
        deleted_at=NOW + 2,
        forget_at=NOW // 1000,
    )
    assert images.create(image) == image
    assert images.get(image.image_id) == image


def test_a_row_with_a_recipe_of_the_clients_own_has_no_preset(images: ImageRegistry) -> None:
    every_field = {
        "name": "card", "width": 600, "height": 400, "fit": "cover", "gravity": {"x": 0.25, "y": 1}, "enlarge": True,
        "background": "#0a0b0c80", "format": "avif", "quality": 50, "effort": "small", "max_bytes": 20_000,
    }  # fmt: skip
    by_attention = {"name": "face", "width": 9, "height": 9, "fit": "cover", "gravity": "attention"}
    recipe = Recipe.model_validate({"variants": [every_field, {"name": "tall", "height": 100}, by_attention]})
    image = pending(preset=None, recipe=recipe)
    assert images.create(image) == image
    assert images.get(image.image_id) == image


def test_the_first_row_of_an_id_stays(images: ImageRegistry) -> None:
    assert images.get("0" * 26) is None
    first = images.create(pending())
    assert images.create(pending(correlation_id="second")) == first
    assert images.get(first.image_id) == first


def test_a_change_is_written_and_counted(images: ImageRegistry) -> None:
    before = images.create(pending())
    after = images.change(before, replace(before, status=Status.PROCESSING, attempt=1, claimed_by="me"))
    assert (after.status, after.attempt, after.version) == (Status.PROCESSING, 1, 2)
    assert images.get(before.image_id) == after


def test_what_a_change_leaves_out_goes(images: ImageRegistry) -> None:
    before = images.create(processing())
    done = images.change(before, complete(before, (), notices=(), now=NOW))
    assert (done.lease_until, done.claimed_by, done.due_at) == (None, None, None)


@pytest.mark.guards("fence-in-table-condition")
@pytest.mark.parametrize(
    "overtaken", [{"status": Status.DONE}, {"run": 2}, {"attempt": 2}], ids=lambda c: next(iter(c))
)
def test_a_change_of_a_row_that_moved_on_is_fenced(images: ImageRegistry, overtaken: dict[str, Any]) -> None:
    before = images.create(processing())
    current = images.change(before, replace(before, **overtaken))
    with pytest.raises(Fenced) as fenced:
        images.change(before, complete(before, (), notices=("mine",), now=NOW))
    assert fenced.value.current == current
    assert images.get(before.image_id) == current


@pytest.mark.parametrize("moved_on", [{"schedule": 1}, {"due_at": NOW}], ids=["changed", "absent before"])
def test_a_wider_fence_holds_further_fields(images: ImageRegistry, moved_on: dict[str, Any]) -> None:
    before = images.create(pending(due_at=None))
    images.change(before, replace(before, **moved_on))
    with pytest.raises(Fenced):
        images.change(before, replace(before, attempt=1), fence=("status", "run", "attempt", *moved_on))


def test_a_change_of_another_field_in_the_meantime_survives(images: ImageRegistry) -> None:
    before = images.create(processing())
    images.change(before, replace(before, rescues=4))
    done = images.change(before, complete(before, (), notices=(), now=NOW))
    assert (done.status, done.rescues) == (Status.DONE, 4)


def test_a_change_of_a_row_that_is_gone_is_fenced(images: ImageRegistry) -> None:
    before = pending()
    with pytest.raises(Fenced) as fenced:
        images.change(before, replace(before, attempt=1))
    assert fenced.value.current is None


def test_the_due_index_lists_what_is_due_oldest_first(images: ImageRegistry) -> None:
    shard = due_shard_of("0" * 26)
    ids = [name for name in (f"{number:026d}" for number in range(200)) if due_shard_of(name) == shard][:4]
    for offset, image_id in enumerate(ids):
        images.create(pending(image_id=image_id, due_at=NOW + 100 - offset))
    in_time = [Due(NOW + 100 - offset, image_id) for offset, image_id in reversed([*enumerate(ids)])]
    assert list(images.due(shard, NOW + 100, 10)) == in_time
    assert list(images.due(shard, NOW + 98, 10)) == in_time[:2]
    assert list(images.due(shard, NOW + 100, 2)) == in_time[:2]
    assert list(images.due("15" if shard != "15" else "14", NOW + 100, 10)) == []


def test_a_finished_image_leaves_the_due_index(images: ImageRegistry) -> None:
    before = images.create(processing(due_at=NOW))
    images.change(before, complete(before, (), notices=(), now=NOW))
    assert list(images.due(due_shard_of(before.image_id), NOW, 10)) == []


def oldest_waiting(images: Images, lane: str) -> int | None:
    """Of all shards of the lane."""
    instants = (images.oldest_waiting(lane, shard) for shard in waiting_shards_of(lane))
    return min((since for since in instants if since is not None), default=None)


def test_the_oldest_unfinished_image_of_a_lane_is_told(images: ImageRegistry) -> None:
    assert oldest_waiting(images, "slow") is None
    rows = [images.create(pending(image_id=f"{n:026d}", waiting_since=NOW - n)) for n in range(12)]
    images.create(pending(image_id="1" * 26, waiting_since=NOW - 99, lane="fast"))
    assert (oldest_waiting(images, "slow"), oldest_waiting(images, "fast")) == (NOW - 11, NOW - 99)
    images.change(rows[11], delete(rows[11], now=NOW))
    assert oldest_waiting(images, "slow") == NOW - 10
    assert len(waiting_shards_of("bulk")) < len(waiting_shards_of("slow"))
    for number in range(12):  # whatever shard the sweeper would find it in
        images.create(pending(image_id=f"{number + 100:026d}", waiting_since=NOW - 200 - number, lane="bulk"))
        assert oldest_waiting(images, "bulk") == NOW - 200 - number


def test_the_waiting_index_lists_what_waits_since_some_time_oldest_first(images: ImageRegistry) -> None:
    shard = due_shard_of("0" * 26)
    ids = [name for name in (f"{number:026d}" for number in range(300)) if due_shard_of(name) == shard][:7]
    for offset, image_id in enumerate(ids):
        images.create(pending(image_id=image_id, waiting_since=NOW + 100 - offset))
    in_time = [Waiting(NOW + 100 - offset, image_id) for offset, image_id in reversed([*enumerate(ids)])]

    def waiting(lane: str, since: int, until: int, page_size: int = 2, of_shard: str = shard) -> list[Waiting]:
        return list(images.waiting(lane, of_shard, since=since, until=until, page_size=page_size))

    assert waiting("slow", NOW, NOW + 101) == in_time, "in four pages"
    assert waiting("slow", NOW, NOW + 101, page_size=100) == in_time
    assert waiting("slow", NOW + 96, NOW + 99) == in_time[2:5], "from the one until just before the other"
    assert waiting("slow", NOW + 98, NOW + 98) == waiting("slow", NOW + 99, NOW + 98) == []
    assert waiting("fast", NOW, NOW + 101) == []
    assert waiting("slow", NOW, NOW + 101, of_shard="15" if shard != "15" else "14") == []
    ended = images.get(ids[0])
    assert ended is not None
    images.change(ended, delete(ended, now=NOW))
    assert waiting("slow", NOW, NOW + 101) == in_time[:-1]


def test_the_waiting_index_is_read_as_far_as_it_is_asked_for(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    images, asked = ImagesTable(client, aws.images_table), []
    same_shard = [name for name in (f"{n:026d}" for n in range(300)) if due_shard_of(name) == "07"]
    for image_id in same_shard[:9]:
        images.create(pending(image_id=image_id))
    client.meta.events.register("before-send.dynamodb.Query", lambda **_: asked.append("query"))
    waiting = images.waiting("slow", "07", since=NOW, until=NOW + 1, page_size=4)
    assert (len(list(islice(waiting, 4))), len(asked)) == (4, 1)
    assert (len(list(waiting)), len(asked)) == (5, 3)


def test_a_waiting_index_that_does_not_answer_is_tried_again_later(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    refuse(client, "Query", code="ThrottlingException", status=400)
    with pytest.raises(Retryable, match="reading the waiting index"):
        list(ImagesTable(client, aws.images_table).waiting("slow", "07", since=NOW, until=NOW + 1, page_size=4))


def walk(images: Images, tenant_id: str, limit: int) -> tuple[list[int], int]:
    """All images of a tenant in the order of its list, and the number of pages."""
    seen: list[int] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        listed = images.newest(tenant_id, after=after, limit=limit)
        assert len(listed.cursors) <= limit
        seen += [int(place.image_id) for place in listed.cursors]
        after, pages = listed.next, pages + 1
    return seen, pages


def test_a_tenants_images_are_listed_newest_first_page_by_page(images: ImageRegistry) -> None:
    for number in range(7):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW + number))
    images.create(pending(image_id="7" * 26, created_at=NOW + 99, tenant_id="another"))
    assert walk(images, "default", 3) == ([6, 5, 4, 3, 2, 1, 0], 3)
    assert walk(images, "default", 7) == ([6, 5, 4, 3, 2, 1, 0], 1), "and its last page says that it is"
    assert walk(images, "nobody", 7) == ([], 1)


def test_images_of_the_same_millisecond_are_each_listed_once(images: ImageRegistry) -> None:
    for number in range(5):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW))
    assert sorted(walk(images, "default", 2)[0]) == [0, 1, 2, 3, 4]


def test_the_list_goes_on_from_a_place_that_nobody_stands_at(images: ImageRegistry) -> None:
    for number in range(4):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW + 10 * number))
    listed = images.newest("default", after=Cursor(created_at=NOW + 15, image_id="7" * 26), limit=9)
    assert [int(place.image_id) for place in listed.cursors] == [1, 0]


@pytest.mark.guards("list-deleted-leaves-index", case="aws")
def test_deleted_images_are_passed_over_and_cost_no_page_of_their_own(images: ImageRegistry) -> None:
    rows = [images.create(pending(image_id=f"{number:026d}", created_at=NOW + number)) for number in range(9)]
    for row in rows[2:]:
        images.change(row, delete(row, now=NOW))
    assert walk(images, "default", 2) == ([1, 0], 1)


def test_a_tenants_images_with_a_reference_are_listed_newest_first_until_they_are_deleted(
    images: ImageRegistry,
) -> None:
    for number, reference in enumerate(["a", "b", "a", None, "a#b", "a", "A"]):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW + number // 5, reference=reference))
    images.create(pending(image_id="7" * 26, tenant_id="another", reference="a"))
    first = images.with_reference("default", "a", after=None, limit=2)
    assert [int(place.image_id) for place in first.cursors] == [5, 2] and first.next == first.cursors[-1]
    second = images.with_reference("default", "a", after=first.next, limit=2)
    assert [int(place.image_id) for place in second.cursors] == [0] and second.next is None
    gone = images.get(f"{5:026d}")
    assert gone is not None
    images.change(gone, delete(gone, now=NOW))
    assert [int(place.image_id) for place in images.with_reference("default", "a", after=None, limit=9).cursors] == [
        2,
        0,
    ]
    assert images.with_reference("default", "c", after=None, limit=9) == Listed(cursors=(), next=None)


@pytest.mark.guards("list-no-references-yet")
def test_a_stack_whose_index_of_references_is_not_built_yet_says_so_and_lists_all_the_others(aws: Aws) -> None:
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    images.create(pending(reference="a"))
    boto3.client("dynamodb").update_table(
        TableName=aws.images_table,
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": images_table.REFERENCES_INDEX}}],
    )
    with pytest.raises(Retryable, match="not built yet"):
        images.with_reference("default", "a", after=None, limit=9)
    assert len(images.newest("default", after=None, limit=9).cursors) == 1


def with_the_former_index(aws: Aws) -> ImageRegistryTable:
    """The table of a stack that is older than the index `listed`, and keeps the one it had before."""
    boto3.client("dynamodb").update_table(
        TableName=aws.images_table,
        AttributeDefinitions=[
            {"AttributeName": "tenant_id", "AttributeType": "S"},
            {"AttributeName": "created_at", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": images_table.NEWEST_INDEX,
                    "KeySchema": [
                        {"AttributeName": "tenant_id", "KeyType": "HASH"},
                        {"AttributeName": "created_at", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["deleted_at"]},
                }
            }
        ],
    )
    return ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)


def accepted_before(aws: Aws, *numbers: int) -> None:
    """Images as a version before the index `listed` has written them."""
    for number in numbers:
        item = to_item(pending(image_id=f"{number:026d}", created_at=NOW + number))
        del item["list_shard"]
        boto3.client("dynamodb").put_item(TableName=aws.images_table, Item=item)


def test_a_call_ends_also_where_more_was_deleted_than_it_may_look_at(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_table, "_NEWEST_ENTRIES", 2)
    images = with_the_former_index(aws)
    rows = [images.create(pending(image_id=f"{number:026d}", created_at=NOW + number)) for number in range(12)]
    for row in rows[1:]:
        images.change(row, delete(row, now=NOW))
    first = images.newest("default", after=None, limit=1)
    assert first == Listed(cursors=(), next=Cursor(created_at=NOW + 6, image_id=f"{6:026d}"))
    assert walk(images, "default", 1) == ([0], 2)


@pytest.mark.guards("list-former-index-fallback")
def test_images_of_before_the_index_stay_listed_while_the_former_one_is_kept_and_after_that_once_they_are_enlisted(
    aws: Aws,
) -> None:
    kept = with_the_former_index(aws)
    accepted_before(aws, 0, 2, 4)
    for number in (1, 3, 5):
        kept.create(pending(image_id=f"{number:026d}", created_at=NOW + number))
    assert walk(kept, "default", 2) == ([5, 4, 3, 2, 1, 0], 3)
    cursor = kept.newest("default", after=None, limit=2).next
    boto3.client("dynamodb").update_table(
        TableName=aws.images_table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": images_table.NEWEST_INDEX}}]
    )
    for images in (kept, ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)):
        assert walk(images, "default", 2)[0] == [5, 3, 1]
    for image_id, tenant_id in list(kept.unlisted()):
        kept.enlist(image_id, tenant_id)
    assert list(kept.unlisted()) == []
    assert walk(kept, "default", 2) == ([5, 4, 3, 2, 1, 0], 3)
    assert [int(listed.image_id) for listed in kept.newest("default", after=cursor, limit=9).cursors] == [3, 2, 1, 0]


@pytest.mark.guards("doctor-row-pages-bound", "list-enlist-not-deleted")
def test_an_image_of_before_that_is_deleted_or_changed_is_listed_no_more_and_no_less(aws: Aws) -> None:
    images = ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)
    accepted_before(aws, 1, 2, 3)
    rows = [images.get(f"{number:026d}") for number in (1, 2, 3)]
    gone, changed, _ = [row for row in rows if row is not None]
    images.change(gone, delete(gone, now=NOW))
    images.change(changed, replace(changed, rescues=1))
    assert sorted(images.unlisted()) == [(f"{2:026d}", "default"), (f"{3:026d}", "default")]
    assert (len(list(images.unlisted(pages=1))), list(images.unlisted(pages=0))) == (2, [])
    for number in (1, 2, 3, 4):
        images.enlist(f"{number:026d}", "default")
    assert walk(images, "default", 9)[0] == [3, 2]
    assert images.get(f"{4:026d}") is None
    assert images.get(f"{2:026d}") == replace(changed, rescues=1, version=changed.version + 1), "nothing else changes"


class InAnOrderOfItsOwn:
    """A client of a table whose index `listed` has an order of its own in each millisecond, as DynamoDB has."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = sorted(items, key=lambda item: (-int(item["created_at"]["N"]), zlib.crc32(str(item).encode())))

    def query(self, **asked: Any) -> dict[str, Any]:
        if asked["IndexName"] != images_table.LISTED_INDEX:
            raise ClientError({"Error": {"Code": "ValidationException"}}, "Query")
        values = asked["ExpressionAttributeValues"]
        until = int(values.get(":until", {"N": "9" * 15})["N"])
        items = [item for item in self.items if item["list_shard"] == values[":partition"]]
        if "ExclusiveStartKey" in asked:
            items = items[items.index(asked["ExclusiveStartKey"]) + 1 :]
        items = [item for item in items if int(item["created_at"]["N"]) <= until]
        page = items[: asked["Limit"]]
        return {"Items": page, **({"LastEvaluatedKey": page[-1]} if len(items) >= asked["Limit"] else {})}


@pytest.mark.guards("list-whole-millisecond", case="1")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_of_a_millisecond_with_many_images_each_is_listed_once_in_the_order_of_the_ids(limit: int) -> None:
    keys = ("list_shard", "created_at", "image_id")
    rows = [to_item(pending(image_id=f"{number:026d}", created_at=NOW + number // 15)) for number in range(40)]
    client: Any = InAnOrderOfItsOwn([{key: row[key] for key in keys} for row in rows])
    assert walk(ImagesTable(client, "images"), "default", limit)[0] == list(range(39, -1, -1))


@pytest.mark.guards("list-missing-index-remembered")
def test_a_page_of_the_list_is_one_query_of_each_partition_and_ends_with_the_first_that_fails(aws: Aws) -> None:
    client = boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
    images, asked = ImagesTable(client, aws.images_table), []
    for number in range(300):
        images.create(pending(image_id=f"{number:026d}", created_at=NOW + number))
    images.newest("default", after=None, limit=1)
    client.meta.events.register("before-send.dynamodb.Query", lambda **_: asked.append("query"))
    first = images.newest("default", after=None, limit=100)
    assert len(asked) == LIST_SHARDS
    second = images.newest("default", after=first.next, limit=100)
    assert [int(cursor.image_id) for cursor in second.cursors] == list(range(199, 99, -1))
    assert len(asked) == 2 * LIST_SHARDS
    throttled = ClientError({"Error": {"Code": "ThrottlingException"}}, "Query")

    def refuse_one(**_: object) -> None:
        if len(asked) == 2 * LIST_SHARDS + 3:
            raise throttled

    client.meta.events.register("before-send.dynamodb.Query", refuse_one)
    with pytest.raises(Retryable, match="reading the index of listed images"):
        images.newest("default", after=None, limit=100)


def test_what_the_waiting_index_has_not_heard_of_yet_is_passed_over(aws: Aws) -> None:
    images = ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)
    same_shard = [name for name in (f"{n:026d}" for n in range(99)) if due_shard_of(name) == "07"]
    first, second = (
        images.create(pending(image_id=image_id, waiting_since=NOW + n)) for n, image_id in enumerate(same_shard[:2])
    )
    get = images.get
    images.get = lambda image_id: replace(first, waiting_since=None) if image_id == first.image_id else get(image_id)  # type: ignore[method-assign]
    assert oldest_waiting(images, "slow") == second.waiting_since


def test_a_row_keeps_its_form_in_the_table() -> None:
    item = to_item(pending())
    assert from_item(item) == pending()
    assert sorted(item) == [
        "accepted_at",
        "accepted_version",
        "added",
        "attempt",
        "attempts",
        "correlation_id",
        "created_at",
        "due_at",
        "due_shard",
        "earlier_ends",
        "enqueued_at",
        "fingerprint",
        "image_id",
        "lane",
        "list_shard",
        "notices",
        "preset",
        "recipe",
        "rescues",
        "run",
        "schedule",
        "source",
        "status",
        "tenant_id",
        "variants",
        "version",
        "waiting_shard",
        "waiting_since",
        "works",
    ], "rows that older versions wrote are still there: a new name needs a default, and none may go"
    written = {"reference": "a", "tags": ("b", "c"), "metadata": "{}", "visibilities": (Visibility.PUBLIC,)}
    assert {name: part for name, part in to_item(pending(**written)).items() if name not in item} == {
        "reference": {"S": "a"},
        "reference_key": {"S": "default#a"},
        "tags": {"L": [{"S": "b"}, {"S": "c"}]},
        "metadata": {"S": "{}"},
        "visibilities": {"L": [{"S": "public"}]},
    }


@pytest.mark.guards("rows-recipe-without-defaults")
def test_a_rows_recipe_has_no_field_that_an_earlier_version_need_not_know() -> None:
    written = '{"variants":[{"name":"thumb","width":256}]}'
    recipe = Recipe.model_validate({"variants": [{"name": "thumb", "width": 256, "height": None, "format": "auto"}]})
    assert to_item(replace(pending(), recipe=recipe))["recipe"] == {"S": written}
    assert from_item(to_item(replace(pending(), recipe=recipe))).recipe == recipe


def test_a_recipe_that_an_older_version_wrote_is_read() -> None:
    written = (
        '{"variants":[{"name":"thumb","width":256,"height":256,"fit":"inside","format":"auto","quality":80},'
        '{"name":"webp","width":8192,"height":8192,"fit":"inside","format":"webp","quality":80},'
        '{"name":"big","width":8192,"height":8192,"fit":"inside","format":"png","quality":80}]}'
    )
    recipe = from_item({**to_item(pending()), "recipe": {"S": written}}).recipe
    assert recipe is not None
    assert [(spec.name, spec.box, spec.quality) for spec in recipe.variants] == [
        ("thumb", (256, 256), 80),
        ("webp", (8192, 8192), 80),
        ("big", (8192, 8192), 80),
    ], "also where it would be too much to ask for today"


def test_an_attribute_of_a_newer_version_is_passed_over() -> None:
    assert from_item({**to_item(pending()), "invented_later": {"S": "x"}}) == pending()


# ── Originals and outputs ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_original_is_read_as_it_was_put(originals: Originals) -> None:
    stored = originals.put_if_absent("0" * 26, b"photo", sha256=sha256(b"photo"), media_type="image/jpeg")
    assert (stored.sha256, stored.size_bytes) == (sha256(b"photo"), 5)
    assert originals.get("0" * 26, stored.version_id) == b"photo"


@pytest.mark.guards("objects-put-if-none-match", "objects-stored-output-counts", case="aws")
def test_the_first_original_stays(originals: Originals) -> None:
    first = originals.put_if_absent("0" * 26, b"photo", sha256=sha256(b"photo"), media_type="image/jpeg")
    second = originals.put_if_absent("0" * 26, b"other", sha256=sha256(b"other"), media_type="image/png")
    assert second == first
    assert originals.get("0" * 26, first.version_id) == b"photo"


def test_an_original_says_for_what_it_was_put_and_what_it_is(originals: Originals) -> None:
    first = originals.put_if_absent(
        "0" * 26, b"photo", sha256=sha256(b"photo"), media_type="image/jpeg", made_for="a1b2"
    )
    second = originals.put_if_absent(
        "0" * 26, b"other", sha256=sha256(b"other"), media_type="image/png", made_for="c3d4"
    )
    assert (first.made_for, first.media_type) == ("a1b2", "image/jpeg")
    assert second == first


@pytest.mark.guards("objects-put-if-none-match", "objects-stored-output-counts", case="aws")
def test_the_first_output_stays(outputs: Outputs) -> None:
    first = outputs.put_if_absent("outputs/k.jpg", b"one", sha256=sha256(b"one"), media_type="image/jpeg")
    assert outputs.put_if_absent("outputs/k.jpg", b"other", sha256=sha256(b"other"), media_type="image/jpeg") == first


def test_an_images_outputs_go_with_all_their_runs_and_no_others(outputs: Outputs) -> None:
    keys = [f"outputs/{image}/{run}/a.jpg" for image in ("0" * 26, "1" * 26) for run in (1, 2)]
    for key in keys:
        outputs.put_if_absent(key, b"b", sha256=sha256(b"b"), media_type="image/jpeg")
    for _ in range(2):
        assert outputs.remove(outputs.keys_of("0" * 26, (Visibility.PRIVATE,))) == {}
    assert outputs.keys_of("0" * 26, (Visibility.PRIVATE,)) == []
    puts = [outputs.put_if_absent(key, b"cc", sha256=sha256(b"cc"), media_type="image/jpeg") for key in keys]
    assert [put.size_bytes for put in puts] == [2, 2, 1, 1]


def test_an_original_goes_with_every_version(originals: Originals, kind: str, aws: Aws) -> None:
    first = originals.put_if_absent("0" * 26, b"one", sha256=sha256(b"one"), media_type="image/jpeg")
    other = originals.put_if_absent("1" * 26, b"two", sha256=sha256(b"two"), media_type="image/jpeg")
    for _ in range(2):
        versions = originals.versions_of("0" * 26)
        assert originals.remove([("0" * 26, version) for version in versions]) == {}
    assert originals.get("1" * 26, other.version_id) == b"two"
    with pytest.raises(OriginalMissing):
        originals.get("0" * 26, first.version_id)
    if kind == "aws":
        left = boto3.client("s3").list_object_versions(Bucket=aws.originals_bucket)
        assert [v["Key"] for v in left["Versions"]] == ["originals/" + "1" * 26]
        assert "DeleteMarkers" not in versions


VARIANT = Variant(
    name="a", width=1, height=1, format="jpeg", size_bytes=1, sha256=sha256(b"b"), key="outputs/i/1/a.jpg"
)


@pytest.mark.guards("objects-held-by-checksum", case="aws")
def test_an_output_is_held_with_its_bytes_and_not_with_others(outputs: Outputs) -> None:
    assert not outputs.holds(VARIANT)
    outputs.put_if_absent(VARIANT.key, b"b", sha256=sha256(b"b"), media_type="image/jpeg")
    assert outputs.holds(VARIANT)
    assert not outputs.holds(replace(VARIANT, sha256=sha256(b"c")))


def s3_with_403(*, denies: str = "") -> Any:
    """A client to which S3 answers 403 for what is missing, as it does to those who may not list the bucket.

    It may also deny "reads" of what is there, or "reads and lists".
    """
    client: Any = boto3.client("s3")

    def refusing(name: str) -> Callable[..., Any]:
        call = getattr(client, name)

        def refused(**arguments: Any) -> Any:
            try:
                answer = call(**arguments)
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                    raise
            else:
                if not denies:
                    return answer
            code = "403" if name == "head_object" else "AccessDenied"
            raise ClientError({"Error": {"Code": code, "Message": "said S3"}}, name)

        return refused

    lists = ("list_objects_v2", "list_object_versions") if denies == "reads and lists" else ()
    for name in ("head_object", "get_object", *lists):
        setattr(client, name, refusing(name))
    return client


@pytest.mark.guards("missing-forbidden-looked-into")
@pytest.mark.parametrize("made", [lambda: boto3.client("s3"), s3_with_403], ids=["404", "403"])
def test_what_is_missing_is_told_whatever_s3_answers(aws: Aws, made: Callable[[], Any]) -> None:
    client, image_id = made(), "0" * 26
    originals = OriginalsBucket(client, aws.originals_bucket)
    uploads, holds = UploadsBucket(client, aws.uploads_bucket), HoldsBucket(client, aws.holds_bucket)
    with pytest.raises(OriginalMissing):
        originals.get(image_id, "a-version")
    stored = originals.put_if_absent(image_id, b"b", sha256=sha256(b"b"), media_type="image/jpeg")
    assert originals.get(image_id, stored.version_id) == b"b"
    with pytest.raises(OriginalMissing):
        originals.get(image_id, "another-version")
    assert (uploads.size_bytes(image_id), uploads.get(image_id)) == (None, None)
    assert holds.get("holds/2026-11-21T12-00-00Z/0.json.gz") is None
    assert not OutputsBucket(client, aws.outputs_bucket).holds(VARIANT)


@pytest.mark.guards(
    "missing-listed-object-exists",
    "missing-listed-version-exists",
    "objects-forbidden-looked-into",
    "original-missing-object-only",
)
@pytest.mark.parametrize("denies", ["reads", "reads and lists"])
def test_what_is_there_and_may_not_be_read_is_never_taken_for_missing(aws: Aws, denies: str) -> None:
    client, plain, image_id = s3_with_403(denies=denies), boto3.client("s3"), "0" * 26
    version = plain.put_object(Bucket=aws.originals_bucket, Key=f"originals/{image_id}", Body=b"b")["VersionId"]
    plain.put_object(Bucket=aws.uploads_bucket, Key=f"uploads/{image_id}", Body=b"b")
    plain.put_object(Bucket=aws.holds_bucket, Key="holds/a/0.json.gz", Body=b"b")
    plain.put_object(Bucket=aws.outputs_bucket, Key=VARIANT.key, Body=b"b")
    uploads, outputs = UploadsBucket(client, aws.uploads_bucket), OutputsBucket(client, aws.outputs_bucket)
    reads: list[Callable[[], object]] = [
        lambda: OriginalsBucket(client, aws.originals_bucket).get(image_id, version),
        lambda: uploads.size_bytes(image_id),
        lambda: uploads.get(image_id),
        lambda: HoldsBucket(client, aws.holds_bucket).get("holds/a/0.json.gz"),
        lambda: outputs.holds(VARIANT),
        lambda: outputs.put_if_absent(VARIANT.key, b"b", sha256=VARIANT.sha256, media_type="image/jpeg"),
    ]
    for read in reads:
        with pytest.raises(ClientError, match=r"403|AccessDenied"):
            read()


@pytest.mark.guards("missing-list-outage-undecided")
def test_a_list_that_does_not_answer_leaves_open_what_is_missing(aws: Aws) -> None:
    client = s3_with_403()
    refuse(client, "ListObjectsV2", code="SlowDown", status=503)
    with pytest.raises(Retryable):
        UploadsBucket(client, aws.uploads_bucket).size_bytes("0" * 26)


@pytest.mark.guards("objects-forbidden-as-missing")
@pytest.mark.parametrize(("may_list", "code"), [(True, "404"), (False, "404"), (False, "403")])
def test_a_missing_output_is_not_held_whatever_s3_calls_it(aws: Aws, may_list: bool, code: str) -> None:
    client = boto3.client("s3")
    refuse(client, "HeadObject", code=code, status=int(code))
    outputs = OutputsBucket(client, aws.outputs_bucket, may_list=may_list)
    assert not outputs.holds(VARIANT)
    boto3.client("s3").put_object(Bucket=aws.outputs_bucket, Key=VARIANT.key, Body=b"b")
    # It goes between the refusal of the write and the look at what is there.
    with pytest.raises(Retryable, match="has just gone"):
        outputs.put_if_absent(VARIANT.key, b"b", sha256=VARIANT.sha256, media_type="image/jpeg")


@pytest.mark.guards("outputs-missing-checksum")
def test_an_object_of_which_s3_has_no_sha256_is_not_held(aws: Aws) -> None:
    boto3.client("s3").put_object(Bucket=aws.outputs_bucket, Key=VARIANT.key, Body=b"b")
    assert not OutputsBucket(boto3.client("s3"), aws.outputs_bucket).holds(VARIANT)


def test_removed_outputs_are_gone_and_missing_ones_no_error(outputs: Outputs) -> None:
    outputs.put_if_absent("outputs/k.jpg", b"one", sha256=sha256(b"one"), media_type="image/jpeg")
    assert outputs.remove(["outputs/k.jpg", "outputs/missing.jpg", "outputs/k.jpg"]) == {}
    again = outputs.put_if_absent("outputs/k.jpg", b"new", sha256=sha256(b"new"), media_type="image/jpeg")
    assert again.sha256 == sha256(b"new")


@pytest.mark.guards("removal-unconfirmed-kept")
def test_what_s3_does_not_confirm_may_still_be_there(aws: Aws) -> None:
    client = boto3.client("s3")
    answers = {"Deleted": [{"Key": "outputs/a"}], "Errors": [{"Key": "outputs/b", "Code": "InternalError"}]}
    spy(client, "DeleteObjects", lambda *_: answers)
    failures = OutputsBucket(client, aws.outputs_bucket).remove(["outputs/a", "outputs/b", "outputs/c"])
    assert {key: type(failure) for key, failure in failures.items()} == {"outputs/b": Retryable, "outputs/c": Retryable}


@pytest.mark.guards("removal-objects-per-call")
def test_more_objects_than_one_call_removes_take_two(aws: Aws) -> None:
    client = boto3.client("s3")
    asked = spy(client, "DeleteObjects", lambda arguments, call: call(arguments))
    keys = [f"outputs/{number}" for number in range(1001)]
    assert OutputsBucket(client, aws.outputs_bucket).remove(keys) == {}
    assert [len(arguments["Delete"]["Objects"]) for arguments in asked] == [1000, 1]


@pytest.mark.guards("removal-items-per-batch")
def test_more_items_than_one_batch_removes_take_two(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    asked = spy(client, "BatchWriteItem", lambda arguments, call: call(arguments))
    MemoryTable(client, aws.idempotency_table).forget([f"a#{number}" for number in range(26)])
    assert [len(arguments["RequestItems"][aws.idempotency_table]) for arguments in asked] == [25, 1]


@pytest.mark.guards("removal-unprocessed-retried")
def test_work_that_a_batch_left_out_is_forgotten_by_another_try(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    answers = iter([{"UnprocessedItems": {aws.idempotency_table: [{"DeleteRequest": {"Key": {"id": {"S": "x"}}}}]}}])
    asked = spy(client, "BatchWriteItem", lambda *_: next(answers, {}))
    MemoryTable(client, aws.idempotency_table).forget(["a#1"])
    assert asked[1]["RequestItems"] == {aws.idempotency_table: [{"DeleteRequest": {"Key": {"id": {"S": "x"}}}}]}


@pytest.mark.guards("removal-unprocessed-retried")
def test_items_that_batches_leave_out_again_and_again_are_not_taken_for_removed(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    left = {aws.usage_table: [{"DeleteRequest": {"Key": {"tenant_id": {"S": "acme"}, "day": {"S": "2026-11-21"}}}}]}
    asked = spy(client, "BatchWriteItem", lambda *_: {"UnprocessedItems": left})
    client.put_item(TableName=aws.usage_table, Item=left[aws.usage_table][0]["DeleteRequest"]["Key"])
    with pytest.raises(Retryable, match="left out each time"):
        UsageTable(client, aws.usage_table).forget("acme")
    assert len(asked) == 4


def test_an_outputs_address_is_signed_for_fifteen_minutes_with_sigv4(aws: Aws) -> None:
    url = OutputsBucket(s3_client(), aws.outputs_bucket).url_of(
        Variant(name="a", width=1, height=1, format="jpeg", size_bytes=1, sha256="s", key="outputs/k.jpg")
    )
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in url and "X-Amz-Expires=900" in url


def test_an_outputs_address_is_signed_for_one_method(aws: Aws) -> None:
    def signatures(method: str) -> set[str]:
        signed, credentials = AWSRequest(method, url.partition("?")[0]), boto3.Session().get_credentials()
        assert credentials is not None
        S3SigV4QueryAuth(credentials, "s3", "us-east-1", expires=900).add_auth(signed)
        return set(re.findall("X-Amz-Signature=([0-9a-f]+)", str(signed.url)))

    with time_machine.travel("2026-11-21T09:00:00Z", tick=False):
        for method, for_head in (("GET", False), ("HEAD", True)):
            url = OutputsBucket(s3_client(), aws.outputs_bucket).url_of(VARIANT, for_head=for_head)
            (signature,) = re.findall("X-Amz-Signature=([0-9a-f]+)", url)
            assert signature in signatures(method)


@pytest.mark.guards("upload-regional-address")
def test_an_outputs_address_is_in_the_region_of_its_bucket(ambient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    url = OutputsBucket(s3_client(), "bucket").url_of(
        Variant(name="a", width=1, height=1, format="jpeg", size_bytes=1, sha256="s", key="outputs/k.jpg")
    )
    assert url.startswith("https://bucket.s3.eu-central-1.amazonaws.com/outputs/k.jpg?")


def test_outputs_carry_their_media_type_and_may_be_cached_for_good(aws: Aws) -> None:
    OutputsBucket(boto3.client("s3"), aws.outputs_bucket).put_if_absent(
        "outputs/k.webp", b"x", sha256=sha256(b"x"), media_type="image/webp"
    )
    head = boto3.client("s3").head_object(Bucket=aws.outputs_bucket, Key="outputs/k.webp")
    assert (head["ContentType"], head["CacheControl"]) == ("image/webp", "private, max-age=31536000, immutable")


# ── Lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lane", ["fast", "slow"])
def test_a_message_arrives_in_its_lane_in_its_tenants_share(lane: str, aws: Aws) -> None:
    message = message_for(pending(lane=lane, tenant_id="acme"))
    sqs = boto3.client("sqs")
    lanes: Lanes = LaneQueues(sqs, {"fast": aws.fast_queue_url, "slow": aws.slow_queue_url}, SIGNER)
    lanes.send(message)
    url = aws.fast_queue_url if lane == "fast" else aws.slow_queue_url
    (received,) = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert read_message(received["Body"]) == message
    assert received["Attributes"]["MessageGroupId"] == "acme"


# ── Once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def once_of(kind: str, aws: Aws) -> IdempotencyStore:
    return FakeOnce() if kind == "fake" else PowertoolsOnce(boto3.client("dynamodb"), aws.idempotency_table)


def test_work_whose_end_could_not_be_written_is_not_done_again(kind: str, aws: Aws) -> None:
    once, calls = once_of(kind, aws), []

    def work() -> dict[str, Any]:
        calls.append(1)
        return {"variants": [{"width": 3}], "notices": ["é"]}

    once.keep("a#1", once("a#1", work, is_first=True))
    assert once("a#1", work, is_first=False) == {"variants": [{"width": 3}], "notices": ["é"]}
    assert len(calls) == 1
    once("a#2", work, is_first=False)
    assert len(calls) == 2
    once("a#2", work, is_first=False)
    assert len(calls) == 3, "its end was written, or its worker died: nothing was kept"


def test_work_that_was_forgotten_is_done_again(kind: str, aws: Aws) -> None:
    once = once_of(kind, aws)
    memory: IdempotencyRecords = (
        once if isinstance(once, FakeOnce) else MemoryTable(boto3.client("dynamodb"), aws.idempotency_table)
    )
    calls = []

    def work() -> dict[str, Any]:
        calls.append(1)
        return {}

    keys = ("é#1", "a#2", "b#1")
    for key in keys:
        once.keep(key, {})
    for key in keys:
        once(key, work, is_first=False)
    assert len(calls) == 0
    memory.forget(["é#1", "a#2", "never there"])
    for key in keys:
        once(key, work, is_first=False)
    assert len(calls) == 2


@pytest.mark.guards("memory-work-error-passed-on")
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("error", [Rejected("code", "why"), Retryable("later"), ZeroDivisionError()])
def test_work_that_raises_is_not_remembered(kind: str, error: Exception, is_first: bool, aws: Aws) -> None:
    once = once_of(kind, aws)

    def fails() -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)):
        once("a#1", fails, is_first=is_first)
    assert once("a#1", lambda: {"ok": True}, is_first=False) == {"ok": True}


@pytest.mark.guards("memory-first-attempt-no-call")
def test_a_first_attempt_costs_the_memory_no_call_and_a_later_one_a_read(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    once, asked = PowertoolsOnce(client, aws.idempotency_table), []
    client.meta.events.register("before-call.dynamodb.*", lambda model, **_: asked.append(model.name))
    once("a#1", lambda: {"ok": True}, is_first=True)
    assert asked == []
    once("a#1", lambda: {"ok": True}, is_first=False)
    assert asked == ["GetItem"]


def noted(seen: list[str]) -> dict[str, Any]:
    """Work that leaves a trace."""
    seen.append("begun")
    return {}


@pytest.mark.guards("memory-any-failure-unavailable")
def test_work_is_not_begun_where_the_memory_cannot_be_reached(aws: Aws) -> None:
    once = once_of("aws", aws)
    seen: list[str] = []
    boto3.client("dynamodb").delete_table(TableName=aws.idempotency_table)
    with pytest.raises(IdempotencyUnavailable):
        once("a#1", partial(noted, seen), is_first=False)
    assert seen == []


@pytest.mark.guards("memory-any-failure-unavailable")
@pytest.mark.parametrize("broken", [{"data": {"S": "{"}}, {"status": {"S": "ARCHIVED"}}, {"data": {"M": {}}}])
def test_a_record_that_nobody_can_read_is_no_memory(broken: dict[str, Any], aws: Aws) -> None:
    once, client = once_of("aws", aws), boto3.client("dynamodb")
    once.keep("a#1", {"ok": True})
    (record,) = client.scan(TableName=aws.idempotency_table)["Items"]
    client.put_item(TableName=aws.idempotency_table, Item={**record, **broken})
    with pytest.raises(IdempotencyUnavailable):
        once("a#1", lambda: {"ok": False}, is_first=False)


@pytest.mark.guards("memory-begun-work-ignored", "memory-expired-ignored")
@pytest.mark.parametrize("broken", [{"status": {"S": "INPROGRESS"}}, {"expiration": {"N": "1"}}])
def test_a_record_of_begun_work_or_of_long_ago_is_passed_over(broken: dict[str, Any], aws: Aws) -> None:
    once, client = once_of("aws", aws), boto3.client("dynamodb")
    once.keep("a#1", {"ok": True})
    (record,) = client.scan(TableName=aws.idempotency_table)["Items"]
    client.put_item(TableName=aws.idempotency_table, Item={**record, **broken})
    assert once("a#1", lambda: {"ok": False}, is_first=False) == {"ok": False}


def test_powertools_own_layer_reads_what_is_kept_and_the_other_way_round(aws: Aws) -> None:
    once, client = once_of("aws", aws), boto3.client("dynamodb")
    layer = DynamoDBPersistenceLayer(table_name=aws.idempotency_table, boto3_client=client)
    layer.configure(IdempotencyConfig(hash_function="sha256"), key_prefix=PREFIX)
    once.keep("é#1", {"width": 3})
    record = layer.get_record("é#1")  # type: ignore[arg-type]
    assert record is not None and record.response_json_as_dict() == {"width": 3}
    layer.save_success("é#2", {"width": 4})  # type: ignore[arg-type]
    assert once("é#2", dict, is_first=False) == {"width": 4}, "as the version before has kept it"
