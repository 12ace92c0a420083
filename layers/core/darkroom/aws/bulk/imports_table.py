"""The imports, each an item in the Batches table beside its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.bulk.batches_table import DUE_SHARD
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.bulk.imports import Import

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_IMPORTS = Rows(Import, "import", "batch_id")


class ImportsTable:
    """Implements the `Imports` port with the table of batches."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._rows = VersionedRows(client, table_name, _IMPORTS)

    def get(self, batch_id: str) -> Import | None:
        item = self._rows.get(_key(batch_id))
        return None if item is None else _IMPORTS.row_of(item)

    def create(self, row: Import) -> Import:
        item = {**_IMPORTS.item_of(row), "due_shard": {"S": DUE_SHARD}}
        return _IMPORTS.row_of(self._rows.put_if_absent(_key(row.batch_id), item))

    def change(self, before: Import, after: Import) -> Import:
        return self._rows.change(_key(before.batch_id), before, after)


def _key(batch_id: str) -> Item:
    return {"place": {"S": batch_id}, "part": {"S": "import"}}
