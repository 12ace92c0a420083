"""The Endpoints table: at most ten items for each tenant, one for each of its places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.aws.kernel.versioned_rows import Item, Rows, VersionedRows
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.webhooks import DueEndpoint

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DUE_INDEX = "due"

ENDPOINTS = Rows(Endpoint, "endpoint", "endpoint_id")
"""What the table's items hold."""


class EndpointsTable:
    """Implements the `Endpoints` port with one DynamoDB table and its index of endpoints that are due."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name
        self._rows = VersionedRows(client, table_name, ENDPOINTS)

    def get(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
        item = self._rows.get(_key(tenant_id, endpoint_id))
        # The place may have been given to another endpoint since.
        return ENDPOINTS.row_of(item) if item is not None and item["endpoint_id"]["S"] == endpoint_id else None

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        with retryable("reading the endpoints of a tenant"):
            answer = self._client.query(
                TableName=self._table_name,
                KeyConditionExpression="tenant_id = :tenant",
                ExpressionAttributeValues={":tenant": {"S": tenant_id}},
                ConsistentRead=True,
            )
        # Ten rows of a few KB are one page.
        return [ENDPOINTS.readable(item) for item in answer["Items"]]  # guard: unreadable-endpoint-isolated

    def everything(self) -> Iterator[Endpoint | UnreadableRow]:
        pages = self._client.get_paginator("scan").paginate(TableName=self._table_name)
        for page in pages_of(pages, "reading all endpoints"):
            yield from map(ENDPOINTS.readable, page["Items"])

    def create(self, endpoint: Endpoint) -> bool:
        key = _key(endpoint.tenant_id, endpoint.endpoint_id)
        item = {**ENDPOINTS.item_of(endpoint), "due_shard": {"S": endpoint.due_shard}}
        kept = self._rows.put_if_absent(key, item)
        return bool(kept["endpoint_id"]["S"] == endpoint.endpoint_id)

    def change(self, before: Endpoint, after: Endpoint) -> Endpoint:
        try:
            key = _key(before.tenant_id, before.endpoint_id)
            # guard: webhook-endpoint-place-fence
            return self._rows.change(key, before, after, fence=("version", "endpoint_id"))
        except Fenced as error:
            is_same = error.current is not None and error.current.endpoint_id == before.endpoint_id
            raise (error if is_same else Fenced(None)) from error
        except UnreadableRow as error:
            raise (error if error.row_id == before.endpoint_id else Fenced(None)) from error

    def remove(self, tenant_id: str, endpoint_id: str) -> None:
        try:
            with retryable("removing the endpoint"):
                self._client.delete_item(
                    TableName=self._table_name,
                    Key=_key(tenant_id, endpoint_id),
                    ConditionExpression="endpoint_id = :id",
                    ExpressionAttributeValues={":id": {"S": endpoint_id}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":  # it is gone, or another has its place
                raise

    def due(self, shard: str, now: Milliseconds, limit: int) -> Iterator[DueEndpoint]:
        pages: Any = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            IndexName=DUE_INDEX,
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues={":shard": {"S": shard}, ":now": {"N": str(now)}},
            PaginationConfig={"MaxItems": limit},
        )
        for page in pages_of(pages, "reading the due index of endpoints"):
            for item in page["Items"]:
                yield DueEndpoint(int(item["due_at"]["N"]), item["tenant_id"]["S"], item["endpoint_id"]["S"])

    def postpone(self, due: DueEndpoint, until: Milliseconds) -> None:
        seen = {"due_at": {"N": str(due.due_at)}, "endpoint_id": {"S": due.endpoint_id}}
        self._rows.postpone(_key(due.tenant_id, due.endpoint_id), seen, until)


def _key(tenant_id: str, endpoint_id: str) -> Item:
    return {"tenant_id": {"S": tenant_id}, "place": {"N": str(place_of(endpoint_id))}}
