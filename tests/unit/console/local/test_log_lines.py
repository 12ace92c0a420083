"""Lines of `darkroom local logs`."""

import json
from typing import Any

import pytest

from console.local.log_lines import pretty


def line(message: str | dict[str, Any]) -> str:
    """The line of an event, without its time of day."""
    text = message if isinstance(message, str) else json.dumps(message)
    return pretty(0, "submit_image", text).plain.partition("  ")[2].removeprefix("submit_image").lstrip()


def test_what_a_function_logs_is_its_level_its_message_and_the_rest_by_name() -> None:
    record = {"level": "INFO", "message": "image accepted", "service": "darkroom", "image_id": "abc", "bytes": 5}
    assert line(record) == "INFO    image accepted  image_id=abc  bytes=5"


def test_an_exception_of_powertools_is_on_lines_of_its_own() -> None:
    record = {"level": "ERROR", "message": "failed", "exception": 'Traceback:\n  File "app.py"\nKeyError', "id": None}
    assert line(record) == 'ERROR   failed\n    Traceback:\n      File "app.py"\n    KeyError'


def test_an_exception_that_the_runtime_logs_reads_like_one_of_powertools() -> None:
    record = {
        "timestamp": "2026-11-24T12:00:00Z",
        "level": "ERROR",
        "errorMessage": "'x'",
        "errorType": "KeyError",
        "requestId": "4f",
        "stackTrace": ['  File "app.py", line 1, in handler\n    event["x"]\n'],
    }
    assert (
        line(record)
        == 'ERROR   KeyError: \'x\'  requestId=4f\n      File "app.py", line 1, in handler\n        event["x"]'
    )


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
