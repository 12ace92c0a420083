"""The Images table as operators use it: they read all of it, and list what was made before there were lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import batched

from botocore.exceptions import ClientError

from darkroom.aws.images.images_table import ImagesTable, readable
from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.domain.images.image import DUE_PARTITIONS, DutyKind, Image, list_shard_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import UnreadableRow

_PARKED = (DutyKind.RESCUES, DutyKind.EXPIRIES)
"""What parked images are listed for: the second, if they expire before the next look."""

ROWS_AT_ONCE = 100
"""How many rows one read brings: DynamoDB's limit for a batch."""


class ImageRegistryTable(ImagesTable):
    """Implements the `ImageRegistry` port with the table of images."""

    def everything(self) -> Iterator[Image | UnreadableRow]:
        pages = self._client.get_paginator("scan").paginate(TableName=self._table_name)
        for page in pages_of(pages, "reading the table"):
            yield from map(readable, page["Items"])

    def known(self, image_ids: Sequence[str]) -> frozenset[str]:
        # Nothing but the id: a row that a newer version wrote may be unreadable here, and exists all the same.
        # guard: orphans-consistent-look
        return frozenset(item["image_id"]["S"] for item in self._batch(image_ids, ProjectionExpression="image_id"))

    def parked(self, until: Milliseconds) -> Iterator[Image]:
        for kind in _PARKED:
            for partition in DUE_PARTITIONS[kind]:
                for entries in batched(self.due(partition, until, sys.maxsize), ROWS_AT_ONCE, strict=False):
                    rows = self.get_all([entry.image_id for entry in entries]).values()
                    yield from (row for row in rows if isinstance(row, Image) and row.parked)

    def enlist(self, image_id: str, tenant_id: str) -> None:
        try:
            with retryable("listing an image"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"image_id": {"S": image_id}},
                    UpdateExpression="SET list_shard = :shard",
                    # guard: list-enlist-not-deleted
                    ConditionExpression="attribute_exists(image_id) AND attribute_not_exists(deleted_at)",
                    ExpressionAttributeValues={":shard": {"S": list_shard_of(tenant_id, image_id)}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise  # otherwise it was deleted meanwhile
