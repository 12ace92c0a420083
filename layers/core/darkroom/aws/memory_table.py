"""The table in which Powertools remembers finished work, for those who remove it. Powertools itself is not imported: it
would make every start slower."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any

from darkroom.aws.errors import retryable
from darkroom.domain.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PREFIX = "transcode_image"
"""Whose work is remembered: the beginning of every record's id."""

_BATCH_WRITES = 25
"""How many items one call writes
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html)."""

_TRIES = 4
"""How often items that a batch left out are written again."""


class MemoryTable:
    """Implements the `Memory` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def forget(self, keys: Sequence[str]) -> None:
        ids = dict.fromkeys(record_id(key) for key in keys)  # a batch that names one twice is refused
        for some in batched(ids, _BATCH_WRITES, strict=False):
            left: Any = [{"DeleteRequest": {"Key": {"id": {"S": one}}}} for one in some]
            for _ in range(_TRIES):
                with retryable("forgetting finished work"):
                    answer = self._client.batch_write_item(RequestItems={self._table_name: left})
                # A batch may be written only in part, with a 200.
                left = answer.get("UnprocessedItems", {}).get(self._table_name)
                if not left:
                    break
            else:
                raise Retryable("forgetting finished work: some was left out each time")


def record_id(key: str) -> str:
    """The id of the record under a key, as Powertools makes it: a prefix, and the SHA-256 of the key in JSON
    (https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/)."""
    return f"{PREFIX}#{hashlib.sha256(json.dumps(key).encode()).hexdigest()}"
