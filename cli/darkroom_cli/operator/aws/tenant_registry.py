"""The Tenants table as operators use it: they list, add, change and remove tenants and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.attributes import to_attributes
from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.tenants.tenants_table import KEY, TENANT, Item, TenantsTable, key_of, tenant_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Tenant
from darkroom.domain.tenants.api_keys import ApiKey
from darkroom.ports.kernel import UnreadableRow


class TenantRegistryTable(TenantsTable):
    """Implements the `TenantRegistry` port with one DynamoDB table."""

    def all_tenants(self) -> Sequence[Tenant | UnreadableRow]:
        tenants, unreadable = _read(self._items(TENANT), tenant_of)
        return [*sorted(tenants, key=lambda tenant: tenant.tenant_id), *unreadable]

    def all_keys(self) -> Sequence[ApiKey | UnreadableRow]:
        keys, unreadable = _read(self._items(KEY), key_of)
        return [*sorted(keys, key=lambda key: (key.tenant_id, key.created_at, key.key_id)), *unreadable]

    def add_tenant(self, tenant: Tenant) -> Tenant:
        return tenant_of(self._put(TENANT + tenant.tenant_id, _to_item(tenant)))

    def add_key(self, key: ApiKey) -> ApiKey:
        return key_of(self._put(KEY + key.key_id, _to_item(key)))

    def change_tenant(self, before: Tenant, after: Tenant) -> Tenant | None:
        old, new = _to_item(before), _to_item(after)
        changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        if not changed:
            return self.tenant(before.tenant_id)
        sets = [f"#{name} = :{name}" for name in sorted(changed & new.keys())]
        removes = [f"#{name}" for name in sorted(changed - new.keys())]
        item = self._update(
            TENANT + before.tenant_id,
            " ".join(f"{verb} {', '.join(parts)}" for verb, parts in (("SET", sets), ("REMOVE", removes)) if parts),
            names={f"#{name}": name for name in changed},  # `state` is a reserved word
            values={f":{name}": new[name] for name in changed & new.keys()},
        )
        return None if item is None else tenant_of(item)

    def revoke_key(self, key_id: str, now: Milliseconds) -> ApiKey | None:
        item = self._update(
            KEY + key_id,
            "SET #revoked_at = if_not_exists(#revoked_at, :now)",
            names={"#revoked_at": "revoked_at"},
            values={":now": {"N": str(now)}},
        )
        return None if item is None else key_of(item)

    def expire_key(self, key_id: str, at: Milliseconds) -> ApiKey | None:
        item = self._update(
            KEY + key_id,
            "SET #expires_at = :at",
            names={"#expires_at": "expires_at"},
            values={":at": {"N": str(at)}},
            # guard: key-rotation-never-prolongs
            condition="(attribute_not_exists(#expires_at) OR #expires_at > :at)",
        )
        # It expires earlier by itself, or there is none.
        return self.key(key_id) if item is None else key_of(item)

    def remove_key(self, key_id: str) -> None:
        self._remove(KEY + key_id)

    def remove_tenant(self, tenant_id: str) -> None:
        self._remove(TENANT + tenant_id)

    def _remove(self, item_id: str) -> None:
        with retryable("removing from the tenants"):
            self._client.delete_item(TableName=self._table_name, Key={"id": {"S": item_id}})

    def _items(self, kind: str) -> Iterator[Item]:
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table_name,
            ConsistentRead=True,
            FilterExpression="begins_with(id, :kind)",
            ExpressionAttributeValues={":kind": {"S": kind}},
        )
        with retryable("listing the tenants"):
            yield from [item for page in pages for item in page["Items"]]

    def _put(self, item_id: str, item: Item) -> Item:
        try:
            with retryable("adding to the tenants"):
                self._client.put_item(
                    TableName=self._table_name,
                    Item={"id": {"S": item_id}, **item},
                    ConditionExpression="attribute_not_exists(id)",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            # Somebody's item is there, or this call's own, put by an attempt whose answer was lost.
            existing = self._item(item_id)
            if existing is None:
                raise Retryable("the item came and went") from error
            return existing
        return {"id": {"S": item_id}, **item}

    def _update(
        self, item_id: str, expression: str, *, names: dict[str, str], values: Item, condition: str = ""
    ) -> Item | None:
        """Returns the item after the update, or None if there is none or it does not meet the condition. Repeating it
        changes nothing."""
        with_values: Any = {"ExpressionAttributeValues": values} if values else {}
        try:
            with retryable("changing the tenants"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"id": {"S": item_id}},
                    UpdateExpression=expression,
                    ConditionExpression=" AND ".join(filter(None, ("attribute_exists(id)", condition))),
                    ExpressionAttributeNames=names,
                    ReturnValues="ALL_NEW",
                    **with_values,
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return None
        return answer["Attributes"]


def _to_item(row: Tenant | ApiKey) -> Item:
    return to_attributes(asdict(row))


def _read[Row](items: Iterable[Item], read: Callable[[Item], Row]) -> tuple[list[Row], list[UnreadableRow]]:
    rows, unreadable = [], []
    for item in items:
        try:
            rows.append(read(item))
        except UnreadableRow as error:  # guard: isolated-tenant-row
            unreadable.append(error)
    return rows, unreadable
