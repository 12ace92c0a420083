"""The Pauses table as operators use it: they begin, end and forget pauses."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.pauses.pauses_table import PausesTable, readable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.pauses.pauses import REMEMBERED_SECONDS, Pause, Paused, subject_of
from darkroom.ports.kernel import UnreadableRow


class PauseRegistryTable(PausesTable):
    """Implements the `PauseRegistry` port with one DynamoDB table."""

    def pause(self, pause: Pause) -> Pause:
        changed = self._update(
            pause.subject,
            "SET since = :since, reason = :reason REMOVE resumed_at, forget_at",
            {":since": {"N": str(pause.since)}, ":reason": {"S": pause.reason}},
            # guard: pause-twice-is-one
            condition="attribute_not_exists(since) OR attribute_exists(resumed_at)",
        )
        return changed or self._get(pause.subject) or pause

    def resume(self, kind: Paused, name: str, resumed_at: Milliseconds) -> Pause | None:
        changed = self._update(
            subject_of(kind, name),
            "SET resumed_at = :now, forget_at = :forget_at",
            {":now": {"N": str(resumed_at)}, ":forget_at": {"N": str(resumed_at // 1000 + REMEMBERED_SECONDS)}},
            # guard: pause-resumed-once
            condition="attribute_exists(since) AND attribute_not_exists(resumed_at)",
        )
        return changed or self._get(subject_of(kind, name))

    def forget(self, kind: Paused, name: str) -> None:
        with retryable("forgetting a pause"):
            self._client.delete_item(TableName=self._table_name, Key={"subject": {"S": subject_of(kind, name)}})

    def _update(self, subject: str, expression: str, values: Any, *, condition: str) -> Pause | None:
        """The pause after the update; None if the condition does not hold, perhaps because this is its repetition."""
        try:
            with retryable("changing a pause"):
                answer = self._client.update_item(
                    TableName=self._table_name,
                    Key={"subject": {"S": subject}},
                    UpdateExpression=expression,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise
            return None
        return _read(answer["Attributes"])

    def _get(self, subject: str) -> Pause | None:
        with retryable("reading a pause"):
            answer = self._client.get_item(
                TableName=self._table_name, Key={"subject": {"S": subject}}, ConsistentRead=True
            )
        return None if "Item" not in answer else _read(answer["Item"])


def _read(item: Any) -> Pause:
    pause = readable(item)
    if isinstance(pause, UnreadableRow):
        raise pause
    return pause
