"""The table in which Powertools remembers finished work, for those who remove it. Powertools itself is not imported: it
would make every start slower."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from darkroom.aws.kernel.removal import remove_items

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "transcode_image"
"""Whose work is remembered: the beginning of every record's id."""


class MemoryTable:
    """Implements the `Memory` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def forget(self, keys: Sequence[str]) -> None:
        ids = dict.fromkeys(record_id(key) for key in keys)
        remove_items(
            self._client, self._table_name, ({"id": {"S": item_id}} for item_id in ids), "forgetting finished work"
        )


def record_id(key: str) -> str:
    """The id of the record under a key, as Powertools makes it: a prefix, and the SHA-256 of the key in JSON
    (https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/)."""
    return f"{PREFIX}#{hashlib.sha256(json.dumps(key).encode()).hexdigest()}"
