"""Rows whose every write counts their `version`, and is allowed on the version that it was decided on alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from darkroom.aws.kernel.attributes import from_attributes, to_attributes
from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.kernel.row_reader import REASON_CHARACTERS, reader
from darkroom.aws.kernel.transactions import MET, REFUSED, reasons_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import Fenced, UnreadableRow

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mypy_boto3_dynamodb import DynamoDBClient

type Item = dict[str, Any]


class Rows[Row: Any]:
    """The items of a table as rows of a dataclass `kind`; `name` is what a row is called in errors, and `ids` are the
    attributes that make its id."""

    def __init__(self, kind: type[Row], name: str, *ids: str) -> None:
        self.name = name
        self._ids = ids
        self._fields = tuple(kind.__dataclass_fields__)
        self._read = reader(cast("Hashable", kind))

    def item_of(self, row: Row) -> Item:
        """The attributes of a row."""
        return to_attributes(vars(row))

    def row_of(self, item: Item) -> Row:
        """The row that an item holds; attributes that this version does not know are skipped, and left as they are by a
        write. Raises UnreadableRow for a known one with an unknown value."""
        try:
            row: Row = self._read(from_attributes({name: item[name] for name in self._fields if name in item}))
        except Exception as error:  # whatever it is, it is this row's, and no reason to fail any other
            raise UnreadableRow(
                "/".join(str(item.get(name, {}).get("S")) for name in self._ids),
                str(error)[:REASON_CHARACTERS] or type(error).__name__,
                tenant_id=item.get("tenant_id", {}).get("S"),  # guard: webhook-unreadable-row-tenant
                due_at=int(item["due_at"]["N"]) if "due_at" in item else None,  # the key of an index
                events=_texts(item.get("events", {})),
            ) from error
        return row

    def readable(self, item: Item) -> Row | UnreadableRow:
        """The row that an item holds, or why this version cannot read it."""
        try:
            return self.row_of(item)
        except UnreadableRow as error:
            return error


def _texts(attribute: Item) -> tuple[str, ...] | None:
    parts = attribute.get("L")
    return tuple(part["S"] for part in parts) if parts and all(part.keys() == {"S"} for part in parts) else None


class VersionedRows[Row: Any]:
    """One table whose `items` have a `version`."""

    def __init__(self, client: DynamoDBClient, table_name: str, items: Rows[Row]) -> None:
        self.client = client
        self.table_name = table_name
        self._items = items

    def get(self, key: Item) -> Item | None:
        """The item under the key (a consistent read), or None."""
        with retryable(f"reading the {self._items.name}"):
            answer = self.client.get_item(TableName=self.table_name, Key=key, ConsistentRead=True)
        return answer.get("Item")

    def put_if_absent(self, key: Item, item: Item) -> Item:
        """Puts the item unless its key has one; returns the key's item: this one or the earlier one."""
        try:
            with retryable(f"writing the {self._items.name}"):
                self.client.put_item(
                    TableName=self.table_name,
                    Item={**item, **key},
                    # guard: webhook-row-put-once
                    ConditionExpression="attribute_not_exists(#key)",
                    ExpressionAttributeNames={"#key": next(iter(key))},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            # Another's, or this call's own, put by an attempt whose answer was lost.
            existing: Item = error.response["Item"]  # type: ignore[typeddict-item]
            return existing
        return {**item, **key}

    def change(self, key: Item, before: Row, after: Row, *, fence: tuple[str, ...] = ("version",)) -> Row:
        """Writes what differs, as the next version, if the fields in `fence` are still those of `before`; returns the
        row as written.
        A lost response is recognized. Raises Fenced, with the current row or None, if another write came first."""
        after = replace(after, version=before.version + 1)
        update, new = self.update_of(key, before, after, fence=fence)
        try:
            with retryable(f"changing the {self._items.name}"):
                self.client.update_item(**update)
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            item: Any = error.response.get("Item")
            # The SDK retries a write whose answer was lost, and the retry meets what the first attempt wrote.
            if item is not None and all(item.get(name) == value for name, value in new.items()):
                return after
            raise Fenced(None if item is None else self._items.row_of(item)) from error
        return after

    def change_with(self, key: Item, before: Row, after: Row, other: Any) -> Row:
        """The same together with the `other` write of a transaction: both, or neither. The other item changes with the
        row alone, so the row's version is its fence, too."""
        after = replace(after, version=before.version + 1)
        update, _ = self.update_of(key, before, after)
        doing = f"changing the {self._items.name} and what is beside it"
        try:
            # The SDK gives each call a token of its own, by which DynamoDB knows a retry whose answer was lost.
            with retryable(doing):
                self.client.transact_write_items(TransactItems=[{"Update": update}, other])
        except ClientError as error:
            reasons = reasons_of(error, doing)
            if MET in reasons:
                raise Retryable(f"{doing}: {MET}") from error
            if REFUSED not in reasons:
                raise
            item = self.get(key)
            raise Fenced(None if item is None else self._items.row_of(item)) from error
        return after

    def update_of(
        self, key: Item, before: Row, after: Row, *, fence: tuple[str, ...] = ("version",)
    ) -> tuple[Any, Item]:
        """The update of `change`, as UpdateItem and a transaction take it, and what it makes of the attributes that
        differ, None of those that it removes."""
        old, new = self._items.item_of(before), self._items.item_of(after)
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        sets = [f"#{name} = :{name}" for name in changed if name in new]
        removes = [f"#{name}" for name in changed if name not in new]
        update = {
            "TableName": self.table_name,
            "Key": key,
            "UpdateExpression": f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else ""),
            # guard: webhook-row-version-fence
            "ConditionExpression": " AND ".join(f"#{name} = :was_{name}" for name in fence),
            "ExpressionAttributeNames": {f"#{name}": name for name in (*changed, *fence)},
            "ExpressionAttributeValues": {
                **{f":was_{name}": old[name] for name in fence},
                **{f":{name}": new[name] for name in changed if name in new},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return update, {name: new.get(name) for name in changed}

    def postpone(self, key: Item, seen: Item, until: Milliseconds) -> None:
        """Moves the item's `due_at` to `until` if the attributes in `seen` are still the same; nothing else of it is
        read or written."""
        try:
            with retryable(f"postponing a look at the {self._items.name}"):
                self.client.update_item(
                    TableName=self.table_name,
                    Key=key,
                    UpdateExpression="SET due_at = :until",
                    # guard: unreadable-postpone-fence
                    ConditionExpression=" AND ".join(f"{name} = :{name}" for name in seen),
                    ExpressionAttributeValues={
                        ":until": {"N": str(until)},
                        **{f":{name}": value for name, value in seen.items()},
                    },
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":  # another write has moved it
                raise
