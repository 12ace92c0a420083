"""The tables: the live ones, the copies of them that AWS restored under other names, and what is in S3 of an image."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.images.objects import MADE_FOR, OutputsBucket
from darkroom.aws.kernel.errors import code_of, items_at, pages_of, retryable
from darkroom.domain.images.image import Image, Source, Status
from darkroom.domain.images.stored_by import original_key
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import Visibility
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.restore.decisions import Found, RestoredItem
from darkroom_cli.stack.operators import Stack
from darkroom_client.client import ApiError

TABLES: Mapping[str, tuple[str, ...]] = {
    "ImagesTable": ("image_id",),
    "TenantsTable": ("id",),
    "EndpointsTable": ("tenant_id", "place"),
    "UsageTable": ("tenant_id", "day"),
}
"""The tables whose rows are copied back, by their keys."""

ROWS_AT_ONCE = 100
"""Rows that are looked for in a live table at once: as many as BatchGetItem takes."""


@dataclass(frozen=True, kw_only=True)
class LiveTable:
    """A live table of the stack, into which rows are put that it lacks."""

    logical_id: str
    name: str
    client: Any = field(repr=False)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return TABLES[self.logical_id]

    def id_of(self, item: RestoredItem) -> str:
        """What an item is called: its key in words."""
        return "/".join(str(next(iter(item[name].values()))) for name in self.key_names)

    def key_of(self, item: RestoredItem) -> RestoredItem:
        """An item's key."""
        return {name: item[name] for name in self.key_names}

    def present(self, items: Sequence[RestoredItem]) -> frozenset[str]:
        """Which of them, 100 at most, it has, by their ids; whatever it says of them. Raises Retryable."""
        names = {f"#{name}": name for name in self.key_names}
        how = {"ConsistentRead": True, "ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        keys = list(map(self.key_of, items))
        return frozenset(map(self.id_of, items_at(self.client, self.name, keys, "reading the live table", **how)))

    def put(self, item: RestoredItem) -> bool:
        """Puts an item unless its key has one; returns whether it has this one now, also if the answer to a first
        attempt was lost. Raises Retryable."""
        try:
            with retryable("writing to the live table"):
                self.client.put_item(
                    TableName=self.name,
                    Item=item,
                    # guard: restore-never-overwrites
                    ConditionExpression="attribute_not_exists(#key)",
                    ExpressionAttributeNames={"#key": self.key_names[0]},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return bool(error.response.get("Item") == item)  # guard: restore-lost-answer
        return True


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A table that AWS restored: the items of `live` as they were at `point`."""

    name: str
    live: LiveTable
    point: Milliseconds

    def items(self, patience: TransientRetry, on_read: Callable[[int], None]) -> Iterator[RestoredItem]:
        """All items, read as the caller iterates; nothing writes to a copy. Raises Retryable after minutes."""
        place: dict[str, Any] | None = {}
        while place is not None:
            page = patience(self._page, place)
            yield from page["Items"]
            place = {"ExclusiveStartKey": last_key} if (last_key := page.get("LastEvaluatedKey")) else None

    def _page(self, place: Mapping[str, Any]) -> Any:
        with retryable("reading the restored table"):
            return self.live.client.scan(TableName=self.name, **place)


_EMPTY_PAGES = 20
"""After so many pages without a record the end of an open shard is taken for reached: DynamoDB does not say it, and
some pages in its middle may be empty, too."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What the stream of `live` still says of items that the table lacks: the last 24 hours, to the last write."""

    name: str
    arn: str
    live: LiveTable
    point: Milliseconds
    client: Any = field(repr=False)

    def items(self, patience: TransientRetry, on_read: Callable[[int], None]) -> Iterator[RestoredItem]:
        """The items as they were before they went, but for what the table removed by itself when its time was over;
        `on_read` is told how many writes were read. Raises Retryable after minutes."""
        latest: dict[str, tuple[int, RestoredItem | None]] = {}
        present: set[str] = set()
        read = 0
        for shard_id in self._shards(patience):
            for records in self._pages(shard_id, patience):
                keys = {self.live.id_of(key): key for key in (record["dynamodb"]["Keys"] for record in records)}
                unknown = [key for name, key in keys.items() if name not in present]
                for some in batched(unknown, ROWS_AT_ONCE, strict=False):
                    present |= patience(self.live.present, some)
                for record in records:
                    name, place = self.live.id_of(record["dynamodb"]["Keys"]), int(record["dynamodb"]["SequenceNumber"])
                    # A shard's children may be read before it: the number tells what was written last.
                    if name not in present and place > latest.get(name, (-1, None))[0]:
                        latest[name] = (place, _left_by(record))
                read += len(records)
                on_read(read)
                if patience.stop():
                    return
        yield from (item for name, (_, item) in latest.items() if item is not None and name not in present)

    def _shards(self, patience: TransientRetry) -> Iterator[str]:
        after: dict[str, str] = {}
        while True:
            stream = patience(self._described, after)
            yield from (shard["ShardId"] for shard in stream["Shards"])
            if "LastEvaluatedShardId" not in stream:
                return
            after = {"ExclusiveStartShardId": stream["LastEvaluatedShardId"]}

    def _described(self, after: Mapping[str, str]) -> Any:
        with retryable("describing the stream"):
            return self.client.describe_stream(StreamArn=self.arn, **after)["StreamDescription"]

    def _pages(self, shard_id: str, patience: TransientRetry) -> Iterator[Sequence[Any]]:
        """The records of a shard, from the oldest that there is; none if its day is over."""
        try:
            place = patience(self._begin, shard_id)
            empty = 0
            while place is not None and empty < _EMPTY_PAGES:
                answer = patience(self._records, place)
                empty = 0 if answer["Records"] else empty + 1
                yield answer["Records"]
                place = answer.get("NextShardIterator")
        except ClientError as error:
            if code_of(error) != "ResourceNotFoundException":
                raise

    def _begin(self, shard_id: str) -> str | None:
        with retryable("reading the stream"):
            answer = self.client.get_shard_iterator(
                StreamArn=self.arn, ShardId=shard_id, ShardIteratorType="TRIM_HORIZON"
            )
        place: str | None = answer.get("ShardIterator")
        return place

    def _records(self, place: str) -> Any:
        with retryable("reading the stream"):
            return self.client.get_records(ShardIterator=place)


def _left_by(record: Mapping[str, Any]) -> RestoredItem | None:
    """The item after a write, or before its removal; None if its time was over
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html)."""
    if record["eventName"] != "REMOVE":
        return dict(record["dynamodb"]["NewImage"])
    is_over = record.get("userIdentity", {}).get("PrincipalId") == "dynamodb.amazonaws.com"
    return None if is_over else dict(record["dynamodb"]["OldImage"])  # guard: restore-expired-tombstones


STREAM_MILLISECONDS = 24 * 3_600_000


def stream_of_images(stack: Stack) -> Stream:
    """The stream of the Images table. Raises ApiError if the table has none."""
    live = LiveTable(logical_id="ImagesTable", name=stack.physical_id("ImagesTable"), client=stack.client("dynamodb"))
    with retryable("looking at the live table"):
        table = live.client.describe_table(TableName=live.name)["Table"]
    if "LatestStreamArn" not in table:
        raise ApiError(f"{live.name} has no stream. Restore a copy: ./darkroom restore{stack.options}")
    return Stream(
        name="the stream",
        arn=table["LatestStreamArn"],
        live=live,
        point=stack.clock() - STREAM_MILLISECONDS,
        client=stack.client("dynamodbstreams"),
    )


def copy_named(stack: Stack, name: str) -> Copy:
    """The restored table of that name. Raises ApiError, saying what to do, unless it is a whole copy of one of the
    stack's tables."""
    client = stack.client("dynamodb")
    live = {physical_id: logical_id for logical_id, physical_id in stack.physical_ids("AWS::DynamoDB::Table").items()}
    if name in live:
        raise ApiError(f"{name} is the live {live[name]} of {stack.name}. Name the copy that AWS restored.")
    try:
        with retryable("looking at the restored table"):
            table = client.describe_table(TableName=name)["Table"]
    except ClientError as error:
        if code_of(error) != "ResourceNotFoundException":
            raise
        raise ApiError(
            f"There is no table {name} in {stack.region}. How to make it: ./darkroom restore{stack.options}"
        ) from error
    if table["TableStatus"] != "ACTIVE":  # guard: restore-incomplete-copy
        raise ApiError(
            f"{name} is {table['TableStatus']}: AWS is not done with it, which takes minutes to hours. Wait:  "
            f"aws dynamodb wait table-exists --table-name {name} --region {stack.region}"
        )
    summary = table.get("RestoreSummary", {})
    source = str(summary.get("SourceTableArn", "")).rpartition(":table/")
    same_place = source[0] == table["TableArn"].rpartition(":table/")[0]
    if source[2] not in live or not same_place:  # guard: restore-foreign-copy
        of = f"was restored from {summary['SourceTableArn']}" if summary else "was not restored from any table"
        raise ApiError(
            f"{name} {of}; it must be a copy of a table of {stack.name}: {', '.join(sorted(live))}. "
            f"See --stack, and ./darkroom restore{stack.options}"
        )
    logical_id = live[source[2]]
    if logical_id not in TABLES:
        raise ApiError(
            f"Nothing of {logical_id} is copied back: docs/recovery.md says why, and what to do. "
            f"These are: {', '.join(TABLES)}."
        )
    return Copy(
        name=name,
        live=LiveTable(logical_id=logical_id, name=source[2], client=client),
        point=int(summary["RestoreDateTime"].timestamp() * 1000),
    )


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The buckets of originals and of variants."""

    client: Any
    originals: str
    outputs: OutputsBucket

    def objects_of(self, image: Image) -> Found:
        """What is there of the image, now (S3 lists consistently). Raises Retryable."""
        key = original_key(image.image_id)
        versions: list[Mapping[str, Any]] = []
        markers: list[Mapping[str, Any]] = []
        pages = self.client.get_paginator("list_object_versions").paginate(Bucket=self.originals, Prefix=key)
        for page in pages_of(pages, "listing an original's versions"):
            versions += [version for version in page.get("Versions", ()) if version["Key"] == key]
            markers += [marker for marker in page.get("DeleteMarkers", ()) if marker["Key"] == key]
        first, made_for = None, ""
        if versions and not image.has_original:
            first, made_for = self._stored(key, min(versions, key=lambda version: version["LastModified"])["VersionId"])
        return Found(
            versions=frozenset(version["VersionId"] for version in versions),
            is_hidden=any(marker["IsLatest"] for marker in markers),
            first=first,
            made_for=made_for,
            keys=frozenset(
                self.outputs.keys_of(image.image_id, Visibility) if versions and image.outcome is Status.DONE else ()
            ),
        )

    def _stored(self, key: str, version_id: str) -> tuple[Source, str]:
        with retryable("looking at an original"):
            head = self.client.head_object(Bucket=self.originals, Key=key, VersionId=version_id, ChecksumMode="ENABLED")
        source = Source(
            version_id=version_id,
            sha256=base64.b64decode(head.get("ChecksumSHA256", "")).hex(),
            size_bytes=head["ContentLength"],
            media_type=head.get("ContentType", ""),
        )
        return source, head.get("Metadata", {}).get(MADE_FOR, "")


@dataclass(frozen=True, kw_only=True)
class Recoverable:
    """How far back a table can be restored; `earliest` and `latest` are None if its recovery is off."""

    logical_id: str
    name: str
    earliest: Milliseconds | None
    latest: Milliseconds | None


def recoverable(stack: Stack) -> list[Recoverable]:
    """How far back each table can be restored whose rows are copied back. Raises Retryable."""
    return [_recoverable(stack, logical_id) for logical_id in TABLES]


def _recoverable(stack: Stack, logical_id: str) -> Recoverable:
    name = stack.physical_id(logical_id)
    with retryable("asking how far back a table can be restored"):
        answer = stack.client("dynamodb").describe_continuous_backups(TableName=name)
    recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    ends = [recovery.get("EarliestRestorableDateTime"), recovery.get("LatestRestorableDateTime")]
    earliest, latest = (None if end is None else int(end.timestamp() * 1000) for end in ends)
    return Recoverable(logical_id=logical_id, name=name, earliest=earliest, latest=latest)
