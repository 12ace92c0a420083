"""The Batches table as operators use it: they read all batches, and forget a tenant's with the files of imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from darkroom.aws.bulk.batches_table import BATCHES, LISTED_INDEX, BatchesTable, partitions_of
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.aws.kernel.errors import pages_of
from darkroom.aws.kernel.removal import remove_partition
from darkroom.ports.bulk import BatchCursor
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.domain.bulk.batches import Batch

_PAGE_BATCHES = 100


class BatchRegistryTable:
    """Implements the `BatchRegistry` port; `manifests` has the files of imports."""

    def __init__(self, client: DynamoDBClient, table_name: str, manifests: ManifestsBucket) -> None:
        self._client = client
        self._table_name = table_name
        self._manifests = manifests
        self._batches = BatchesTable(client, table_name)

    def everything(self) -> Iterator[Batch | UnreadableRow]:
        # The index has the batches' own rows, none of their images, and backfills, which are no tenant's.
        pages: Any = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            IndexName=LISTED_INDEX,
            FilterExpression="part = :batch",
            ExpressionAttributeValues={":batch": {"S": "batch"}},
        )
        for page in pages_of(pages, "reading all batches"):
            yield from map(BATCHES.readable, page["Items"])

    def forget(self, tenant_id: str) -> int:
        removed = 0
        after: BatchCursor | None = None
        while True:
            page = self._batches.of_tenant(tenant_id, after=after, limit=_PAGE_BATCHES)
            for row in page.batches:
                batch_id = row.row_id if isinstance(row, UnreadableRow) else row.batch_id
                if isinstance(row, UnreadableRow) or row.is_import:
                    self._manifests.forget(batch_id)  # guard: erasure-tenant-imports
                for place in partitions_of(batch_id):
                    partition = ("place", place)
                    remove_partition(self._client, self._table_name, partition, "part", "removing a batch")
                removed += 1
            after = page.next
            if after is None:
                return removed
