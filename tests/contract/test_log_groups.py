"""The functions' logs: the fake and CloudWatch Logs alike."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.aws.log_groups import LogGroups
from darkroom_cli.operator.domain.trace import LogLine
from darkroom_cli.operator.ports import LogLines
from tests.contract.conftest import Aws
from tests.support.fakes.logs import FakeLogLines

NOW = 1_795_251_600_000
ID = "0" * 26


def logged(kind: str, *lines: tuple[int, dict[str, Any]]) -> LogLines:
    """A log of one function with these lines, by their time."""
    if kind == "fake":
        made = [LogLine(at=NOW + at, source="worker", fields=fields) for at, fields in lines]
        return FakeLogLines(lines=made, sources=("worker",))
    return log_of([(at, json.dumps(fields)) for at, fields in lines])


def log_of(messages: list[tuple[int, str]]) -> LogGroups:
    logs = boto3.client("logs")
    logs.create_log_group(logGroupName="/worker")
    logs.create_log_stream(logGroupName="/worker", logStreamName="one")
    if messages:
        events: Any = [{"timestamp": NOW + at, "message": message} for at, message in messages]
        logs.put_log_events(logGroupName="/worker", logStreamName="one", logEvents=events)
    return LogGroups(logs, {"worker": "/worker"})


def texts(lines: LogLines, *, since: int = -1000, until: int = 1000) -> list[str]:
    return [line.message for line in lines.containing("worker", ID, since=NOW + since, until=NOW + until)]


def test_the_lines_in_which_a_text_is_are_found_in_their_time(kind: str, aws: Aws) -> None:
    lines = logged(
        kind,
        (0, {"message": "run", "image_id": ID}),
        (5, {"message": "other", "image_id": "1" * 26}),
        (9, {"message": "nested", "image_ids": [ID]}),
        (500, {"message": "late", "image_id": ID}),
    )
    assert list(lines.sources) == ["worker"]
    assert texts(lines) == ["run", "nested", "late"]
    assert texts(lines, until=100) == ["run", "nested"]
    assert texts(lines, since=1) == ["nested", "late"]


def test_a_line_has_the_time_at_which_its_function_wrote_it(aws: Aws) -> None:
    written = {"message": "run", "image_id": ID, "timestamp": "2026-11-21 09:00:00,417+0000"}
    odd = {"message": "odd", "image_id": ID, "timestamp": "yesterday"}
    lines = log_of([(900, json.dumps(written)), (901, json.dumps(odd))])
    listed = list(lines.containing("worker", ID, since=NOW, until=NOW + 1000))
    assert [line.at - NOW for line in listed] == [417, 901]


def test_what_is_no_json_object_is_left_out(aws: Aws) -> None:
    assert texts(log_of([(1, f"REPORT RequestId: {ID}"), (2, json.dumps([ID]))])) == []


def test_a_group_that_is_gone_is_no_empty_log(aws: Aws) -> None:
    with pytest.raises(ClientError):
        texts(LogGroups(boto3.client("logs"), {"worker": "/gone"}))


def test_a_throttled_search_is_retryable(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("logs")

    def throttled(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException"}}, "FilterLogEvents")

    client.meta.events.register("before-send.logs.FilterLogEvents", throttled)
    with pytest.raises(Retryable):
        texts(LogGroups(client, {"worker": "/worker"}))
