"""Formats one log event as a line for people: Powertools' JSON taken apart, anything else as it is."""

import json
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from console.terminal.display import printable

_STYLES = {"DEBUG": "dim", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}
# Keys that the line shows anyway, or whose value is the same in every line of a function.
_HIDDEN = frozenset(
    {
        "level", "message", "timestamp", "service", "location", "cold_start", "function_name", "function_memory_size",
        "function_arn", "function_request_id", "xray_trace_id", "exception", "exception_name", "stack_trace",
    }
)  # fmt: skip


def pretty(timestamp_milliseconds: int, function: str, message: str) -> Text:
    """Time, function, level, message, then the rest as key=value; a traceback on lines of its own."""
    moment = datetime.fromtimestamp(timestamp_milliseconds / 1000, tz=UTC).astimezone()
    head = Text.assemble((moment.strftime("%H:%M:%S.%f")[:-3], "dim"), "  ", (f"{function:<18}", "cyan"))
    record = _record(message)
    if record is None:
        return head.append(printable(message.rstrip().expandtabs(2)), style="dim")
    level = str(record.get("level", ""))
    head.append(f"{level:<8}", style=_STYLES.get(level, "")).append(printable(_text(record["message"])))
    for key, value in record.items():
        if key not in _HIDDEN and value is not None:
            head.append(f"  {printable(key)}=", style="dim").append(printable(_text(value)))
    for line in str(record.get("exception") or "").splitlines():
        head.append(f"\n    {printable(line)}", style="red")
    return head


def _record(message: str) -> dict[str, Any] | None:
    try:
        record = json.loads(message)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "message" in record else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
