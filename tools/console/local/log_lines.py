"""Formats one log event as a line for people: Powertools' and Lambda's JSON taken apart, anything else as it is."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from console.terminal.display import printable

_STYLES = {"DEBUG": "dim", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}
# Keys that the line shows anyway, or whose value is the same in every line of a function.
_HIDDEN = frozenset(
    {
        "level", "message", "timestamp", "service", "location", "cold_start", "function_name", "function_memory_size",
        "function_arn", "function_request_id", "trace_id", "exception", "exception_name", "stack_trace",
        "errorMessage", "errorType", "stackTrace", "logger",
    }
)  # fmt: skip


def pretty(timestamp_milliseconds: int, function: str, message: str) -> Text:
    """Time, function, level, message, then the rest as key=value; a traceback on lines of its own."""
    moment = datetime.fromtimestamp(timestamp_milliseconds / 1000, tz=UTC).astimezone()
    head = Text.assemble((moment.strftime("%H:%M:%S.%f")[:-3], "dim"), "  ", (f"{function:<18}", "cyan"))
    record = _record(message)
    if record is None:
        return head.append(printable(message.rstrip().expandtabs(2)), style="dim")
    if _is_of_lambda(record):
        return head.append(printable("  ".join(_told_by_lambda(record))), style="dim")
    level = str(record.get("level", ""))
    head.append(f"{level:<8}", style=_STYLES.get(level, "")).append(printable(_said(record)))
    for key, value in record.items():
        if key not in _HIDDEN and value is not None:
            head.append(f"  {printable(key)}=", style="dim").append(printable(_text(value)))
    for line in _stack(record).splitlines():
        head.append(f"\n    {printable(line)}", style="red")
    return head


def _record(message: str) -> dict[str, Any] | None:
    try:
        record = json.loads(message)
    except ValueError:
        return None
    is_known = isinstance(record, dict) and (record.keys() & {"message", "errorMessage"} or _is_of_lambda(record))
    return record if is_known else None


def _is_of_lambda(record: dict[str, Any]) -> bool:
    return str(record.get("type", "")).startswith("platform.")


def _said(record: dict[str, Any]) -> str:
    """What a function says; for an exception that it raised, the runtime says it."""
    return _text(record["message"]) if "message" in record else f"{record.get('errorType')}: {record['errorMessage']}"


def _stack(record: dict[str, Any]) -> str:
    return str(record.get("exception") or "".join(record.get("stackTrace") or ()))


def _told_by_lambda(event: dict[str, Any]) -> Iterator[str]:
    """What Lambda says of an invocation as it says it where logs are text: START RequestId: …, REPORT RequestId: ….

    https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
    """
    kind = "".join(f"_{letter}" if letter.isupper() else letter for letter in event["type"].removeprefix("platform."))
    record = event.get("record")
    if not isinstance(record, dict):
        yield f"{kind.upper()} {_text(record)}"
        return
    yield f"{kind.upper()} RequestId: {record['requestId']}" if "requestId" in record else kind.upper()
    metrics = record.get("metrics") or {}
    for name, value in (
        ("Version", record.get("version")),
        ("Runtime", record.get("runtimeVersion")),
        ("Duration", _with_unit(metrics.get("durationMs"), "ms")),
        ("Billed", _with_unit(metrics.get("billedDurationMs"), "ms")),
        ("Init", _with_unit(metrics.get("initDurationMs"), "ms")),
        ("Memory", _with_unit(metrics.get("maxMemoryUsedMB"), "MB")),
        ("Status", record.get("status")),
        ("Error", record.get("errorType")),
    ):
        if value is not None:
            yield f"{name}: {value}"


def _with_unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
