"""The backfills in the Batches table: an item per backfill, and one beside it for each of its pages; and the scan of
the Images table that finds their images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.aws.bulk.batches_table import DUE_SHARD, LISTED_INDEX
from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.bulk.backfills import Backfill, Page, Selection
from darkroom.domain.images.image import Status
from darkroom.ports.bulk import Found
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BACKFILLS = Rows(Backfill, "backfill", "backfill_id")
PAGES = Rows(Page, "page of a backfill", "backfill_id", "number")

_BACKFILL = "backfill"
"""The part of a backfill's own item."""

_PAGE = "page#"
"""What the parts of its pages begin with."""

_LIST_SHARD = "#backfills"
"""The partition that lists them all: no tenant's id has a `#`."""


class BackfillsTable:
    """Implements the `Backfills` port with the table of batches."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, BACKFILLS)

    def get(self, backfill_id: str) -> Backfill | None:
        item = self._rows.get(_key(backfill_id))
        return None if item is None else BACKFILLS.row_of(item)

    def create(self, backfill: Backfill) -> Backfill:
        indexed = {"due_shard": {"S": DUE_SHARD}, "list_shard": {"S": _LIST_SHARD}}
        item = {**BACKFILLS.item_of(backfill), **indexed}
        return BACKFILLS.row_of(self._rows.put_if_absent(_key(backfill.backfill_id), item))

    def change(self, before: Backfill, after: Backfill) -> Backfill:
        return self._rows.change(_key(before.backfill_id), before, after)

    def put_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        put = {"Put": {"TableName": self._table_name, "Item": {**PAGES.item_of(page), **_key_of(page)}}}
        return self._rows.change_with(_key(before.backfill_id), before, after, put)

    def settle_page(self, before: Backfill, after: Backfill, page: Page) -> Backfill:
        remove = {"Delete": {"TableName": self._table_name, "Key": _key_of(page)}}
        return self._rows.change_with(_key(before.backfill_id), before, after, remove)

    def pages(self, backfill_id: str) -> Sequence[Page]:
        answers: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="place = :place AND begins_with(part, :page)",
            ExpressionAttributeValues={":place": {"S": backfill_id}, ":page": {"S": _PAGE}},
            ConsistentRead=True,
        )
        found = pages_of(answers, "reading the pages of a backfill")
        return [PAGES.row_of(item) for answer in found for item in answer["Items"]]

    def all(self) -> Iterator[Backfill | UnreadableRow]:
        answers: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=LISTED_INDEX,
            KeyConditionExpression="list_shard = :shard",
            ExpressionAttributeValues={":shard": {"S": _LIST_SHARD}},
            ScanIndexForward=False,
        )
        for answer in pages_of(answers, "reading the backfills"):
            yield from map(BACKFILLS.readable, answer["Items"])


class ImagesScan:
    """Implements the `ImageScan` port."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def select(self, selection: Selection, *, after: str | None, limit: int) -> Found:
        conditions = {
            "preset = :preset": {":preset": {"S": selection.preset}},
            "(attribute_not_exists(preset_version) OR preset_version < :version)": {
                ":version": {"N": str(selection.version)}
            },
            # The outcome of one with work beside it is in no attribute: its row says it.
            "(#status = :done OR size(works) > :zero)": {":done": {"S": Status.DONE.value}, ":zero": {"N": "0"}},
            "attribute_not_exists(deleted_at)": {},
        }
        if selection.since is not None:
            conditions["created_at >= :since"] = {":since": {"N": str(selection.since)}}
        if selection.until is not None:
            conditions["created_at < :until"] = {":until": {"N": str(selection.until)}}
        if selection.tag is not None:
            conditions["contains(tags, :tag)"] = {":tag": {"S": selection.tag}}
        if selection.tenant_id is not None:
            conditions["tenant_id = :tenant"] = {":tenant": {"S": selection.tenant_id}}
        beginning: Any = {} if after is None else {"ExclusiveStartKey": {"image_id": {"S": after}}}
        with retryable("reading the images' table"):
            answer = self._client.scan(
                TableName=self._table_name,
                FilterExpression=" AND ".join(conditions),
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={name: value for each in conditions.values() for name, value in each.items()},
                ProjectionExpression="image_id",
                Limit=limit,
                **beginning,
            )
        last = answer.get("LastEvaluatedKey")
        return Found(
            image_ids=tuple(item["image_id"]["S"] for item in answer["Items"]),
            up_to=None if last is None else last["image_id"]["S"],
            read=answer["ScannedCount"],
        )


def _key(backfill_id: str) -> Item:
    return {"place": {"S": backfill_id}, "part": {"S": _BACKFILL}}


def _key_of(page: Page) -> Item:
    return {"place": {"S": page.backfill_id}, "part": {"S": f"{_PAGE}{page.number:08d}"}}
