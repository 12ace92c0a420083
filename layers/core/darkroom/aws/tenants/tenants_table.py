"""The Tenants table: one item per tenant and one per API key, each found by what a credential states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.attributes import from_attributes
from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.tenants import Tenant, TenantState, tier_named
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

type Item = dict[str, Any]

TENANT, KEY = "tenant#", "key#"
"""With which the ids of items begin."""


class TenantsTable:
    """Implements the `Tenants` port with one DynamoDB table."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client = client
        self._table_name = table_name

    def tenant(self, tenant_id: str) -> Tenant | None:
        item = self._item(TENANT + tenant_id)
        return None if item is None else tenant_of(item)

    def key(self, key_id: str) -> ApiKey | None:
        item = self._item(KEY + key_id)
        return None if item is None else key_of(item)

    def note_use(self, key_id: str, day: str) -> None:
        try:
            with retryable("changing the tenants"):
                self._client.update_item(
                    TableName=self._table_name,
                    Key={"id": {"S": KEY + key_id}},
                    UpdateExpression="SET last_used_on = :day",
                    ConditionExpression="attribute_exists(id) "
                    "AND (attribute_not_exists(last_used_on) OR last_used_on < :day)",
                    ExpressionAttributeValues={":day": {"S": day}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise

    def _item(self, item_id: str) -> Item | None:
        with retryable("reading the tenants"):
            answer = self._client.get_item(TableName=self._table_name, Key={"id": {"S": item_id}}, ConsistentRead=True)
        return answer.get("Item")


def _plain(item: Item, kind: type[Tenant | ApiKey]) -> dict[str, Any]:
    known = {field.name for field in fields(kind)}
    return from_attributes({name: value for name, value in item.items() if name in known})


def tenant_of(item: Item) -> Tenant:
    """The tenant that an item holds. Raises UnreadableRow."""
    with _one_row(item):
        plain = _plain(item, Tenant)
        if "visibility" in plain:
            plain["visibility"] = Visibility(plain["visibility"])
        if "import_from" in plain:
            plain["import_from"] = tuple(plain["import_from"])
        return Tenant(**plain | {"tier": tier_named(plain["tier"]), "state": TenantState(plain["state"])})


def key_of(item: Item) -> ApiKey:
    """The key that an item holds. Raises UnreadableRow."""
    with _one_row(item):
        plain = _plain(item, ApiKey)
        return ApiKey(**plain | ({"scopes": tuple(plain["scopes"])} if "scopes" in plain else {}))


@contextmanager
def _one_row(item: Item) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # whatever it is, it is this row's, and no reason to fail any other
        row_id, tenant_id = item["id"]["S"].partition("#")[2], item.get("tenant_id", {}).get("S")
        # guard: unreadable-key-erased
        raise UnreadableRow(row_id, f"{type(error).__name__}: {error}", tenant_id=tenant_id) from error
