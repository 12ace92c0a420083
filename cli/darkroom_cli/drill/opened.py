"""The drill that is open on a stack, if there is one: how everything was before, kept in the stack itself.

It is an item of the Throughput table, in a partition of its own, written before anything is changed and removed once
everything is as it was. Whoever opens a drill must be the first to write it, so there is one drill at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.drill.switches import Setting

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PARTITION = "drill"
"""No lane has this name."""

_KEY: dict[str, Any] = {"lane": {"S": PARTITION}, "minute": {"N": "0"}}
_FORGET_AFTER_SECONDS = 90 * 86_400
"""Long after it expired: what nobody has put back must not be forgotten by itself."""


@dataclass(frozen=True, kw_only=True)
class OpenDrill:
    """A drill that was begun and has not put everything back. `token` distinguishes it from any other, of the same
    name too."""

    name: str
    token: str
    settings: tuple[Setting, ...]
    began_at: Milliseconds
    expires_at: Milliseconds


class AnotherIsOpen(Exception):
    """A drill is open already: `drill`."""

    def __init__(self, drill: OpenDrill) -> None:
        super().__init__(f"the drill {drill.name} is open")
        self.drill = drill


class OpenDrills:
    """The one place of a stack for an open drill."""

    def __init__(self, client: DynamoDBClient, table_name: str) -> None:
        self._client, self._table_name = client, table_name

    def open(self, drill: OpenDrill) -> None:
        """Writes it, if none is open. Raises AnotherIsOpen."""
        item: dict[str, Any] = {
            **_KEY,
            "name": {"S": drill.name},
            "token": {"S": drill.token},
            "settings": {"S": json.dumps([asdict(setting) for setting in drill.settings])},
            "began_at": {"N": str(drill.began_at)},
            "expires_at": {"N": str(drill.expires_at)},
            "forget_at": {"N": str(drill.expires_at // 1000 + _FORGET_AFTER_SECONDS)},
        }
        try:
            self._client.put_item(
                TableName=self._table_name,
                Item=item,
                ConditionExpression="attribute_not_exists(lane)",  # guard: drill-one-at-a-time
            )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            other = self.find()
            if other is None:  # it was closed between the two calls
                return self.open(drill)
            # guard: drill-lost-answer-own-token
            if other.token != drill.token:  # else it is ours, and an answer was lost
                raise AnotherIsOpen(other) from error

    def find(self) -> OpenDrill | None:
        """The one that is open, or None."""
        item = self._client.get_item(TableName=self._table_name, Key=_KEY, ConsistentRead=True).get("Item")
        if item is None:
            return None
        return OpenDrill(
            name=item["name"]["S"],
            token=item["token"]["S"],
            settings=tuple(Setting(**setting) for setting in json.loads(item["settings"]["S"])),
            began_at=int(item["began_at"]["N"]),
            expires_at=int(item["expires_at"]["N"]),
        )

    def close(self, drill: OpenDrill, *, left: Sequence[Setting] = ()) -> None:
        """Removes it; if switches are `left` that could not be put back, those stay written."""
        try:
            if left:
                self._client.update_item(
                    TableName=self._table_name,
                    Key=_KEY,
                    UpdateExpression="SET settings = :left",
                    ConditionExpression="#token = :token",
                    ExpressionAttributeNames={"#token": "token"},
                    ExpressionAttributeValues={
                        ":left": {"S": json.dumps([asdict(setting) for setting in left])},
                        ":token": {"S": drill.token},
                    },
                )
            else:
                self._client.delete_item(
                    TableName=self._table_name,
                    Key=_KEY,
                    # guard: drill-only-own-note-removed
                    ConditionExpression="#token = :token",
                    ExpressionAttributeNames={"#token": "token"},
                    ExpressionAttributeValues={":token": {"S": drill.token}},
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":  # somebody else has closed it
                raise
