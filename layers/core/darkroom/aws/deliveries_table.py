"""The Deliveries table: one item for each event and endpoint, by the time of the event."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.aws.errors import pages_of, retryable
from darkroom.aws.removal import remove_partition
from darkroom.aws.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.delivery import KEPT_SECONDS, LOOKS, Delivery, DeliveryStatus
from darkroom.domain.event import image_id_of_event
from darkroom.domain.instants import Milliseconds
from darkroom.ports import DeliveryKey, DeliveryPage, DueDelivery, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DUE_INDEX, IMAGE_INDEX = "due", "image"

DELIVERIES = Rows(Delivery, "delivery", "endpoint_id", "delivery_id")
"""What the table's items hold."""


class DeliveriesTable:
    """Implements the `Deliveries` port with one DynamoDB table and its indexes of deliveries that are due and of
    those of each image."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, DELIVERIES)

    def get(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        item = self._rows.get(_key(endpoint_id, delivery_id))
        return None if item is None else DELIVERIES.row_of(item)

    def create(self, delivery: Delivery) -> Delivery:
        forget_at = delivery.created_at // 1000 + KEPT_SECONDS  # TTL counts in seconds
        item = DELIVERIES.item_of(delivery) | {"forget_at": {"N": str(forget_at)}}
        if (image_id := image_id_of_event(delivery.event_id)) is not None:
            item["image_id"] = {"S": image_id}
        return DELIVERIES.row_of(self._rows.put_if_absent(_key(delivery.endpoint_id, delivery.delivery_id), item))

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        return self._rows.change(_key(before.endpoint_id, before.delivery_id), before, after)

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        with retryable("reading the due index of deliveries"):
            answer = self._client.query(
                TableName=self._table_name,
                IndexName=DUE_INDEX,
                KeyConditionExpression="endpoint_id = :endpoint",
                ExpressionAttributeValues={":endpoint": {"S": endpoint_id}},
                Limit=limit,
            )
        return [DueDelivery(int(item["due_at"]["N"]), item["delivery_id"]["S"]) for item in answer["Items"]]

    def postpone(self, endpoint_id: str, due: DueDelivery, until: Milliseconds) -> None:
        self._rows.postpone(_key(endpoint_id, due.delivery_id), {"due_at": {"N": str(due.due_at)}}, until)

    def page(
        self,
        endpoint_id: str,
        *,
        limit: int,
        after: str | None = None,
        since: Milliseconds = 0,
        statuses: Sequence[DeliveryStatus] = (),
        newest_first: bool = True,
    ) -> DeliveryPage:
        found: list[Delivery | UnreadableRow] = []
        place = after
        for _ in range(LOOKS):
            beginning: Any = {} if place is None else {"ExclusiveStartKey": _key(endpoint_id, place)}
            wanted: Any = {}
            values = {":endpoint": {"S": endpoint_id}, ":since": {"S": f"{since:014}"}}
            if statuses:
                names = {f":status_{number}": status.value for number, status in enumerate(statuses)}
                wanted = {
                    "FilterExpression": f"#status IN ({', '.join(names)})",
                    "ExpressionAttributeNames": {"#status": "status"},
                }
                values |= {name: {"S": value} for name, value in names.items()}
            with retryable("reading the deliveries"):
                answer = self._client.query(
                    TableName=self._table_name,
                    KeyConditionExpression="endpoint_id = :endpoint AND delivery_id >= :since",
                    ExpressionAttributeValues=values,
                    ScanIndexForward=not newest_first,
                    Limit=limit,  # counted before the filter
                    **wanted,
                    **beginning,
                )
            for item in answer["Items"]:
                place = item["delivery_id"]["S"]
                found.append(DELIVERIES.readable(item))
                if len(found) == limit:
                    return DeliveryPage(deliveries=tuple(found), next=place)
            if "LastEvaluatedKey" not in answer:
                return DeliveryPage(deliveries=tuple(found), next=None)
            place = answer["LastEvaluatedKey"]["delivery_id"]["S"]
        return DeliveryPage(deliveries=tuple(found), next=place)

    def of_image(self, image_id: str) -> Sequence[DeliveryKey]:
        pages: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=IMAGE_INDEX,
            KeyConditionExpression="image_id = :image",
            ExpressionAttributeValues={":image": {"S": image_id}},
        )
        return [
            DeliveryKey(item["endpoint_id"]["S"], item["delivery_id"]["S"])
            for page in pages_of(pages, "reading the deliveries of an image")
            for item in page["Items"]
        ]

    def remove_all(self, endpoint_id: str) -> int:
        partition = "endpoint_id", endpoint_id
        return remove_partition(self._client, self._table_name, partition, "delivery_id", "removing deliveries")

    def endpoints_of(self, tenant_ids: Collection[str]) -> Iterator[tuple[str, str]]:
        names = {f":tenant_{number}": {"S": tenant_id} for number, tenant_id in enumerate(tenant_ids)}
        pages: Any = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            FilterExpression=f"tenant_id IN ({', '.join(names)})",
            ExpressionAttributeValues=names,
            ProjectionExpression="tenant_id, endpoint_id",
        )
        known: set[tuple[str, str]] = set()
        for page in pages_of(pages, "reading all deliveries"):
            for item in page["Items"]:
                found = item["tenant_id"]["S"], item["endpoint_id"]["S"]
                if found not in known:
                    known.add(found)
                    yield found


def _key(endpoint_id: str, delivery_id: str) -> Item:
    return {"endpoint_id": {"S": endpoint_id}, "delivery_id": {"S": delivery_id}}
