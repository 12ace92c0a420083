"""The Deliveries table: one item for each event and endpoint, by the time of the event."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.aws.kernel.removal import remove_partition
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.events.event import image_id_of_event
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import KEPT_SECONDS, LOOKS, Delivery, DeliveryStatus
from darkroom.domain.webhooks.endpoint import RUNWAYS, InFlight, runway_of
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import DeliveryKey, DeliveryPage, DueDelivery, Place

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DUE_INDEX, IMAGE_INDEX = "due", "image"

TAKES = 4
"""How often a place is asked for: the runway may have to be made, and what was lost there to be removed."""

RUNWAY_KEPT_SECONDS = 24 * 3600
"""How long an empty runway is kept, and what was lost there."""

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
            item["image_id"] = {"S": image_id}  # guard: erasure-gone-endpoint-deliveries
        return DELIVERIES.row_of(self._rows.put_if_absent(_key(delivery.endpoint_id, delivery.delivery_id), item))

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        return self._rows.change(_key(before.endpoint_id, before.delivery_id), before, after)

    def take_place(self, endpoint_id: str, flight: InFlight, *, now: Milliseconds, most: int) -> Place:
        mine: Item = {"M": {"claimed_by": {"S": str(flight.claimed_by)}, "until": {"N": str(flight.until)}}}
        flights: Mapping[str, Item] | None = {}  # what the first try meets is not known, and usually it is room
        for _ in range(TAKES):
            met = flights or {}
            flights = self._put_flight(endpoint_id, flight, mine, flights, now=now, most=most)
            if flights is None:
                continue
            if flights.get(flight.delivery_id) == mine:  # perhaps put by an attempt whose answer was lost
                return "retaken" if flight.delivery_id in met else "taken"
            # guard: webhook-runway-lost-place-expires
            counted = {name for name, item in flights.items() if int(item["M"]["until"]["N"]) > now}
            if flight.delivery_id in counted:
                return "held"
            if len(counted) >= most:
                return "full"
        return "full"

    def _put_flight(
        self,
        endpoint_id: str,
        flight: InFlight,
        mine: Item,
        flights: Mapping[str, Item] | None,
        *,
        now: Milliseconds,
        most: int,
    ) -> Mapping[str, Item] | None:
        """The flights that are there: this one, if it was put in the place of those of `flights` that were lost; or
        those that kept it from that, None if the runway is not made."""
        lost = {name: item for name, item in (flights or {}).items() if int(item["M"]["until"]["N"]) <= now}
        names = {f"#lost{number}": name for number, name in enumerate(lost)}
        values = {f":lost{number}": item for number, item in enumerate(lost.values())}
        forget = {":forget": {"N": str(now // 1000 + RUNWAY_KEPT_SECONDS)}}
        if flights is not None:
            of_others = [alias for alias, name in names.items() if name != flight.delivery_id]
            removed = ", ".join(f"flights.{alias}" for alias in of_others)
            conditions = [f"flights.{alias} = :{alias[1:]}" for alias in names]
            # guard: webhook-runway-delivery-once
            conditions += [] if flight.delivery_id in lost else ["attribute_not_exists(flights.#it)"]
            request: Any = {
                "UpdateExpression": "SET flights.#it = :it, forget_at = :forget" + (removed and f" REMOVE {removed}"),
                "ConditionExpression": " AND ".join(
                    # guard: webhook-runway-place-limit
                    ["attribute_exists(flights)", "size(flights) < :most", *conditions]
                ),
                "ExpressionAttributeNames": {"#it": flight.delivery_id, **names},
                "ExpressionAttributeValues": {
                    ":it": mine,
                    ":most": {"N": str(most + len(lost))},
                    **forget,
                    **values,
                },
            }
        else:
            request = {
                "UpdateExpression": "SET flights = :flights, forget_at = :forget",
                "ConditionExpression": "attribute_not_exists(flights)",
                "ExpressionAttributeValues": {":flights": {"M": {flight.delivery_id: mine}}, **forget},
            }
        try:
            with retryable("taking a place on a runway"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key=_runway(endpoint_id, runway_of(flight.delivery_id)),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item") or {}
            return item["flights"]["M"] if "flights" in item else None
        return {flight.delivery_id: mine}

    def free_place(self, endpoint_id: str, flight: InFlight) -> None:
        try:
            with retryable("freeing a place on a runway"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key=_runway(endpoint_id, runway_of(flight.delivery_id)),
                    UpdateExpression="REMOVE flights.#it",
                    # guard: webhook-runway-place-owner
                    ConditionExpression="flights.#it.claimed_by = :me",
                    ExpressionAttributeNames={"#it": flight.delivery_id},
                    ExpressionAttributeValues={":me": {"S": str(flight.claimed_by)}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":  # it was lost, and its place is another's
                raise

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
        deliveries: list[Delivery | UnreadableRow] = []
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
                deliveries.append(DELIVERIES.readable(item))
                if len(deliveries) == limit:
                    return DeliveryPage(deliveries=tuple(deliveries), next=place)
            if "LastEvaluatedKey" not in answer:
                return DeliveryPage(deliveries=tuple(deliveries), next=None)
            place = answer["LastEvaluatedKey"]["delivery_id"]["S"]
        return DeliveryPage(deliveries=tuple(deliveries), next=place)

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
        removed = remove_partition(self._client, self._table_name, partition, "delivery_id", "removing deliveries")
        for runway in range(RUNWAYS):  # guard: webhook-runway-cleanup
            with retryable("removing a runway"):
                self._client.delete_item(TableName=self._table_name, Key=_runway(endpoint_id, runway))
        return removed

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
                endpoint_key = item["tenant_id"]["S"], item["endpoint_id"]["S"]
                if endpoint_key not in known:
                    known.add(endpoint_key)
                    yield endpoint_key


def _runway(endpoint_id: str, runway: int) -> Item:
    """A key of its own partition. No endpoint's id has a `#`, so that no list of deliveries shows it."""
    return _key(f"{endpoint_id}#{runway}", "flights")


def _key(endpoint_id: str, delivery_id: str) -> Item:
    return {"endpoint_id": {"S": endpoint_id}, "delivery_id": {"S": delivery_id}}
