"""A line of a log: its level, and how people and programs are shown it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.operator.domain.trace import API
from darkroom_cli.terminal.display import printable

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_ELSEWHERE = {"WARN": "WARNING", "FATAL": "CRITICAL"}
"""How the runtime names what Powertools names otherwise."""

_ADDRESS = "ip"
"""The field of the gateway's log that is never shown: who asked is for AWS's own tools, if it must be known."""

_STYLES = {"DEBUG": "dim", "INFO": "green", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "bold red"}
# Keys that the line shows anyway, or whose value is the same in every line of a function.
_HIDDEN = frozenset(
    {
        "level", "message", "timestamp", "service", "location", "cold_start", "function_name", "function_memory_size",
        "function_arn", "function_request_id", "trace_id", "exception", "exception_name", "stack_trace",
        "errorMessage", "errorType", "stackTrace", "logger",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """One line of the log of a source: a function by the name of its folder, or the gateway, `api`."""

    at: Milliseconds
    source: str
    message: str


def document(line: SourceLine) -> dict[str, Any]:
    """The line for programs: as an object if it is one."""
    record = _object(line.message)
    message = line.message if record is None else _without_address(line.source, record)
    return {"at": rfc3339(line.at), "source": line.source, "line": message}


def is_at_least(level: str, source: str, message: str) -> bool:
    """Whether a line is of that level or above: what Lambda says of an invocation that did not finish is an error, and
    so is a 5xx of the gateway; its 4xx are warnings."""
    return LEVELS.index(_level_of(source, _object(message))) >= LEVELS.index(level)


def _level_of(source: str, record: dict[str, Any] | None) -> str:
    if record is None:
        return "INFO"
    if source == API:
        return {"4": "WARNING", "5": "ERROR"}.get(str(record.get("status"))[:1], "INFO")
    ended = record.get("record")
    if isinstance(ended, dict) and ended.get("status", "success") != "success":
        return "ERROR"
    level = str(record.get("level", ""))
    return level if level in LEVELS else _ELSEWHERE.get(level, "INFO")


def pattern_of(level: str, source: str) -> str:
    """The filter pattern of CloudWatch Logs for lines of that level or above; empty if it leaves nothing out."""
    if level in LEVELS[:2]:
        return ""
    if source == API:
        return '{ $.status = "4*" || $.status = "5*" }' if level == "WARNING" else '{ $.status = "5*" }'
    names = LEVELS[LEVELS.index(level) :]
    levels = [
        f'$.level = "{name}"' for name in (*names, *(name for name, level in _ELSEWHERE.items() if level in names))
    ]
    ends = [f'$.record.status = "{status}"' for status in ("error", "failure", "timeout")]
    return f"{{ {' || '.join(levels + ends)} }}"


def pretty(line: SourceLine) -> Text:
    """Time, source, level, message, then the rest as key=value; a traceback on lines of its own."""
    moment = datetime.fromtimestamp(line.at / 1000, tz=UTC).astimezone()
    head = Text.assemble((moment.strftime("%H:%M:%S.%f")[:-3], "dim"), "  ", (f"{line.source:<18}", "cyan"))
    record = _object(line.message)
    if record is not None and line.source == API:
        record = _of_gateway(record)
    if record is None or not (record.keys() & {"message", "errorMessage"} or _is_of_lambda(record)):
        return head.append(printable(line.message.rstrip().expandtabs(2)), style="dim")
    if _is_of_lambda(record):
        return head.append(printable("  ".join(_told_by_lambda(record))), style="dim")
    level = str(record.get("level", ""))
    head.append(f"{level:<8}", style=_STYLES.get(level, "")).append(printable(_said(record)))
    for key, value in record.items():
        if key not in _HIDDEN and value is not None:
            head.append(f"  {printable(key)}=", style="dim").append(printable(_text(value)))
    for part in _stack(record).splitlines():
        head.append(f"\n    {printable(part)}", style="red")
    return head


def _object(message: str) -> dict[str, Any] | None:
    try:
        record = json.loads(message)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _without_address(source: str, record: dict[str, Any]) -> dict[str, Any]:
    # guard: logs-client-address-hidden
    return {name: value for name, value in record.items() if source != API or name != _ADDRESS}


def _of_gateway(record: dict[str, Any]) -> dict[str, Any]:
    """A line of the gateway in the form of a function's: the request and its status are the message."""
    fields = {name: value for name, value in _without_address(API, record).items() if value != "-"}
    method, route, _ = fields.pop("method", ""), fields.pop("route", None), fields.pop("time", None)
    asked = f"{method} to no route" if route is None else route
    return {"level": _level_of(API, record), "message": f"{asked}  {fields.pop('status', '')}", **fields}


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
    kind = "".join(
        f"_{dead_letter}" if dead_letter.isupper() else dead_letter
        for dead_letter in event["type"].removeprefix("platform.")
    )
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
