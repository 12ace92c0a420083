"""Reports the items that a table's time to live removed in its stream.

Gap: MiniStack removes them without a word.
AWS: the stream has a REMOVE for each, with the old image, and with DynamoDB itself as `userIdentity`.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html

What still differs from AWS: items are removed within a minute of their time, there within a few days.
"""

import threading
from contextvars import ContextVar
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims.background import scope

_DYNAMODB = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
_REAPER = "dynamodb-ttl-reaper"

# Whether the change that is being recorded is one of DynamoDB's own.
_is_expiry: ContextVar[bool] = ContextVar("is_expiry", default=False)

dynamodb = internals("services.dynamodb")


def apply(emulator: Emulator) -> None:
    """Record each removal by the thread that removes expired items."""
    replace(dynamodb, "_remove_item", _recorded)
    replace(dynamodb, "_build_change_record", _with_identity)


def _recorded(remove: Any) -> Any:
    def remove_item(table: dict[str, Any], *key: Any) -> Any:
        item = remove(table, *key)
        # While one is recorded, MiniStack removes and records it in the table's replicas itself.
        if item is not None and threading.current_thread().name == _REAPER and not _is_expiry.get():
            _record_expiry(table, item)
        return item

    return remove_item


def _record_expiry(table: dict[str, Any], item: Any) -> None:
    _, _, _, region, account_id, _ = table["TableArn"].split(":", 5)
    token = _is_expiry.set(True)
    try:
        with scope(account_id, region):
            dynamodb._emit_stream_event(table["TableName"], "REMOVE", item, None)
    finally:
        _is_expiry.reset(token)


def _with_identity(build: Any) -> Any:
    def build_record(*arguments: Any) -> Any:
        record = build(*arguments)
        return {**record, "userIdentity": _DYNAMODB} if _is_expiry.get() else record

    return build_record
