"""The Throughput table: one item per lane and minute, to which its workers add what they did, and one for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.kernel.instants import Milliseconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MINUTE, _DAY = 60_000, 24 * 3600 * 1000

LATEST_MINUTES = 5
"""How many minutes are read at once: if all of them together have fewer than 20 images, the lane has hardly worked."""


_OF_TENANT = "busy#"
"""With which the names of tenants' attributes begin."""


def _partition_of_tenants(lane: str) -> str:
    """The partition of whom the lane worked for. Items that grow with the tenants of a minute, and may at worst become
    too large for more of them, must not be what load shedding reads."""
    # guard: noisy-own-partition
    return f"{lane}#tenants"


class ThroughputTable:
    """Implements the `Throughput` port with a DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def add(self, lane: str, work: Work, now: Milliseconds) -> None:
        minute = now // _MINUTE * _MINUTE
        with retryable("adding to the throughput report"):
            self._client.update_item(
                TableName=self._table_name,
                Key={"lane": {"S": lane}, "minute": {"N": str(minute)}},
                # The name `minute` is reserved in expressions, but not used in any of these.
                UpdateExpression="ADD settled :settled, busy_milliseconds :busy SET forget_at = :forget_at",
                ExpressionAttributeValues={
                    ":settled": {"N": str(work.settled)},
                    ":busy": {"N": str(work.busy_milliseconds)},
                    ":forget_at": {"N": str((minute + _DAY) // 1000)},
                },
            )

    def latest(self, lane: str, now: Milliseconds) -> Sequence[Work]:
        with retryable("reading the throughput report"):
            answer = self._client.query(
                TableName=self._table_name,
                KeyConditionExpression="lane = :lane AND #minute > :since",
                ExpressionAttributeNames={"#minute": "minute"},
                ExpressionAttributeValues={":lane": {"S": lane}, ":since": {"N": str(now - _DAY)}},
                ScanIndexForward=False,
                Limit=LATEST_MINUTES,
            )
        # A minute that another version wrote is just one minute less of data, and no reason to turn an upload away.
        return [
            Work(settled=int(item["settled"]["N"]), busy_milliseconds=int(item["busy_milliseconds"]["N"]))
            for item in answer["Items"]
            # guard: isolated-throughput-minute
            if all("N" in item.get(name, {}) for name in ("settled", "busy_milliseconds"))
        ]

    def add_of_tenants(self, lane: str, busy_milliseconds: Mapping[str, int], now: Milliseconds) -> None:
        minute = now // _MINUTE * _MINUTE
        names = {f"#{place}": _OF_TENANT + tenant_id for place, tenant_id in enumerate(busy_milliseconds)}
        values = {f":{place}": {"N": str(busy)} for place, busy in enumerate(busy_milliseconds.values())}
        added = ", ".join(f"#{place} :{place}" for place in range(len(busy_milliseconds)))
        attributes: Any = {**values, ":forget_at": {"N": str((minute + _DAY) // 1000)}}
        with retryable("adding to the throughput of tenants"):
            self._client.update_item(
                TableName=self._table_name,
                Key={"lane": {"S": _partition_of_tenants(lane)}, "minute": {"N": str(minute)}},
                UpdateExpression=f"ADD {added} SET forget_at = :forget_at",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=attributes,
            )

    def of_tenants(self, lane: str, since: Milliseconds) -> Mapping[str, int]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="lane = :lane AND #minute >= :since",
            ExpressionAttributeNames={"#minute": "minute"},
            ExpressionAttributeValues={":lane": {"S": _partition_of_tenants(lane)}, ":since": {"N": str(since)}},
        )
        busy: dict[str, int] = {}
        for page in pages_of(pages, "reading the throughput of tenants"):
            for item in page["Items"]:
                for name, value in item.items():
                    if name.startswith(_OF_TENANT) and "N" in value:
                        tenant_id = name.removeprefix(_OF_TENANT)
                        busy[tenant_id] = busy.get(tenant_id, 0) + int(value["N"])
        return busy
