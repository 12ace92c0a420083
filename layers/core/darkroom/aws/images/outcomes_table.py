"""The outcomes of each lane, in items of the Throughput table: one per lane and minute, to which its workers add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.images.service_level import Outcomes
from darkroom.domain.kernel.instants import Milliseconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_DAY_SECONDS = 24 * 3600

_COUNTS = ("attempts", "failed_attempts", "ended", "late", "given_up")
_MARKS = "failing_marks"


def partition_of(lane: str) -> str:
    """The items' partition, not that of the lane's throughput: load shedding reads the last few minutes with work, and
    quiet minutes must not displace those."""
    # guard: outcomes-own-partition
    return f"{lane}#outcomes"


class OutcomesTable:
    """Implements the `OutcomeCounts` port with the Throughput table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def add(self, lane: str, minute: Milliseconds, outcomes: Outcomes) -> None:
        added: dict[str, Any] = {name: {"N": str(count)} for name in _COUNTS if (count := getattr(outcomes, name))}
        if outcomes.failing_marks:  # DynamoDB knows no empty set
            added[_MARKS] = {"NS": [str(mark) for mark in sorted(outcomes.failing_marks)]}
        names = {f"#{number}": name for number, name in enumerate(added)}
        values = {f":{number}": value for number, value in enumerate(added.values())}
        add = f"ADD {', '.join(f'#{number} :{number}' for number in range(len(added)))} " if added else ""
        with retryable("adding to the outcomes"):
            self._client.update_item(
                TableName=self._table_name,
                Key={"lane": {"S": partition_of(lane)}, "minute": {"N": str(minute)}},
                UpdateExpression=f"{add}SET #forget_at = :forget_at",
                ExpressionAttributeNames={**names, "#forget_at": "forget_at"},
                ExpressionAttributeValues={**values, ":forget_at": {"N": str(minute // 1000 + _DAY_SECONDS)}},
            )

    def since(self, lane: str, since: Milliseconds) -> Mapping[Milliseconds, Outcomes]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="lane = :lane AND #minute >= :since",
            ExpressionAttributeNames={"#minute": "minute"},
            ExpressionAttributeValues={":lane": {"S": partition_of(lane)}, ":since": {"N": str(since)}},
        )
        return {
            int(item["minute"]["N"]): _outcomes_of(item)
            for page in pages_of(pages, "reading the outcomes")  # guard: outcomes-all-pages-read
            for item in page["Items"]
        }


def _outcomes_of(item: Mapping[str, Any]) -> Outcomes:
    """What another version wrote otherwise is not counted."""
    counts = {name: int(item[name]["N"]) for name in _COUNTS if "N" in item.get(name, {})}
    return Outcomes(**counts, failing_marks=frozenset(map(int, item.get(_MARKS, {}).get("NS", ()))))
