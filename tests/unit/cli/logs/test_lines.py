"""Lines of `darkroom logs`."""

import json
from typing import Any

import pytest

from darkroom_cli.logs.lines import LEVELS, SourceLine, document, is_at_least, pattern_of, pretty
from local_aws.filter_patterns import compile_pattern


def event(message: str | dict[str, Any], source: str = "submit_image") -> SourceLine:
    return SourceLine(at=0, source=source, message=message if isinstance(message, str) else json.dumps(message))


def line(message: str | dict[str, Any], source: str = "submit_image") -> str:
    """The line of an event, without its time of day."""
    return pretty(event(message, source)).plain.partition("  ")[2].removeprefix(source).lstrip()


def test_what_a_function_logs_is_its_level_its_message_and_the_rest_by_name() -> None:
    record = {"level": "INFO", "message": "image accepted", "service": "darkroom", "image_id": "abc", "bytes": 5}
    assert line(record) == "INFO    image accepted  image_id=abc  bytes=5"


def test_an_exception_of_powertools_is_on_lines_of_its_own() -> None:
    record = {"level": "ERROR", "message": "failed", "exception": 'Traceback:\n  File "app.py"\nKeyError', "id": None}
    assert line(record) == 'ERROR   failed\n    Traceback:\n      File "app.py"\n    KeyError'


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            {"type": "platform.start", "record": {"requestId": "4f", "functionArn": "arn", "version": "$LATEST"}},
            "START RequestId: 4f  Version: $LATEST",
        ),
        (
            {
                "type": "platform.report",
                "record": {
                    "requestId": "4f",
                    "metrics": {
                        "durationMs": 12.5,
                        "billedDurationMs": 513,
                        "memorySizeMB": 128,
                        "maxMemoryUsedMB": 64,
                    },
                    "status": "error",
                    "errorType": "Runtime.ExitError",
                },
            },
            "REPORT RequestId: 4f  Duration: 12.5 ms  Billed: 513 ms  Memory: 64 MB  Status: error  "
            "Error: Runtime.ExitError",
        ),
        (
            {"type": "platform.initStart", "record": {"runtimeVersion": "python:3.13", "phase": "init"}},
            "INIT_START  Runtime: python:3.13",
        ),
        ({"type": "platform.fault", "record": "it ended"}, "FAULT it ended"),
    ],
)
def test_what_lambda_logs_as_json_reads_as_where_it_logs_text(event: dict[str, Any], expected: str) -> None:
    assert line({"time": "2026-11-24T12:00:00.000Z", **event}) == expected


@pytest.mark.parametrize(
    "message", ["START RequestId: 4f Version: $LATEST", '{"_aws": {}}', '{"record": 1}', "[1]", "17"]
)
def test_anything_else_is_left_as_it_is(message: str) -> None:
    assert line(message) == message


REFUSED = {
    "correlation_id": "JKJ=",
    "time": "26/Nov/2026:09:00:00 +0000",
    "ip": "203.0.113.7",
    "tenant": "shop",
    "key": "-",
    "method": "GET",
    "route": "GET /images/{id}",
    "status": "503",
    "latency_ms": "3",
    "bytes": "9",
    "error": "-",
}


@pytest.mark.guards("logs-client-address-hidden")
def test_a_request_is_its_route_and_its_status_and_nobody_is_shown_who_asked() -> None:
    request = "GET /images/{id}  503  correlation_id=JKJ=  tenant=shop  latency_ms=3  bytes=9"
    assert line(REFUSED, "api") == f"ERROR   {request}"
    unknown = line(REFUSED | {"route": "-", "status": "404", "error": "Not Found"}, "api")
    assert unknown.startswith("WARNING GET to no route  404  correlation_id=JKJ=") and "error=Not Found" in unknown
    shown = document(event(REFUSED, "api"))
    assert (shown["source"], shown["line"]["status"]) == ("api", "503")
    assert "203.0.113.7" not in str(shown)
    assert document(event("no object"))["line"] == "no object"


FAILED = {"type": "platform.report", "record": {"status": "timeout"}}

OF_EACH_LEVEL = [
    ("submit_image", {"level": "DEBUG", "message": "m"}, "DEBUG"),
    ("submit_image", {"level": "INFO", "message": "m"}, "INFO"),
    ("submit_image", {"level": "WARNING", "message": "m"}, "WARNING"),
    ("submit_image", {"level": "WARN", "message": "m"}, "WARNING"),
    ("submit_image", {"level": "ERROR", "message": "m"}, "ERROR"),
    ("submit_image", {"level": "CRITICAL", "message": "m"}, "CRITICAL"),
    ("submit_image", {"level": "INFO", "message": "m", "status": 503}, "INFO"),
    ("submit_image", {"type": "platform.report", "record": {"status": "success"}}, "INFO"),
    ("submit_image", {"type": "platform.initStart", "record": {}}, "INFO"),
    ("submit_image", FAILED, "ERROR"),
    ("api", REFUSED, "ERROR"),
    ("api", REFUSED | {"status": "404"}, "WARNING"),
    ("api", REFUSED | {"status": "202"}, "INFO"),
]


@pytest.mark.parametrize(("source", "record", "level_of_line"), OF_EACH_LEVEL)
def test_a_line_is_shown_from_its_level_on_and_the_pattern_leaves_none_of_them_out(
    source: str, record: dict[str, Any], level_of_line: str
) -> None:
    message = json.dumps(record)
    for level in LEVELS:
        is_shown = is_at_least(level, source, message)
        assert is_shown == (LEVELS.index(level_of_line) >= LEVELS.index(level)), level
        pattern = pattern_of(level, source)
        is_found = not pattern or compile_pattern(pattern).match(message) is not None
        assert is_found or not is_shown, level
    assert not is_at_least("WARNING", source, "no object")
