"""The audit log: the fake and CloudWatch Logs alike."""

from __future__ import annotations

import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import day_of
from darkroom_cli.operator.aws.audit_log import AuditLog
from darkroom_cli.operator.domain.audit import AuditEntry, Recorded, State
from darkroom_cli.operator.ports import Audit
from tests.contract.conftest import Aws
from tests.contract.stores import spy
from tests.support.fakes.audit import ACTOR, FakeAudit

NOW = time.time_ns() // 1_000_000
"""CloudWatch takes nothing that is two weeks old."""

DAY = 24 * 3_600_000


def entry(number: int, *, at: int = NOW, **changes: Any) -> AuditEntry:
    return AuditEntry(
        **{
            "action_id": f"a{number}",
            "action": "replay",
            "state": State.DONE,
            "at": at,
            "about": {"queue": "slow"},
            "targets": (f"{number:026d}",),
            "counts": {"replayed": 1},
            **changes,
        }
    )


def real(caller: Any = lambda: ACTOR, group: str = "/audit") -> AuditLog:
    return AuditLog(boto3.client("logs"), group, stack="shop", caller=caller)


def log_of(kind: str) -> Audit:
    if kind == "fake":
        return FakeAudit()
    boto3.client("logs").create_log_group(logGroupName="/audit")
    return real()


def test_what_is_written_is_read_with_who_acted_and_on_which_stack(kind: str, aws: Aws) -> None:
    log = log_of(kind)
    log.write([entry(1), entry(2, state=State.FAILED, error="Fenced", about={}, targets=(), counts={})])
    log.write([entry(3, at=NOW - DAY)])
    entries = sorted(log.entries(since=NOW - DAY, until=NOW), key=lambda recorded: recorded.entry.action_id)
    assert entries == [
        Recorded(entry=entry, actor=ACTOR, stack="shop")
        for entry in (
            entry(1),
            entry(2, state=State.FAILED, error="Fenced", about={}, targets=(), counts={}),
            entry(3, at=NOW - DAY),
        )
    ]
    assert [recorded.entry.action_id for recorded in log.entries(since=NOW - DAY, until=NOW - 1)] == ["a3"]


@pytest.mark.guards("audit-existing-stream-used")
def test_a_stream_that_another_operator_has_made_is_used(aws: Aws) -> None:
    log = log_of("aws")
    log.write([entry(1)])
    real().write([entry(2)])
    assert len(list(log.entries(since=NOW, until=NOW))) == 2
    streams = boto3.client("logs").describe_log_streams(logGroupName="/audit")["logStreams"]
    assert [stream["logStreamName"] for stream in streams] == [day_of(NOW)]


def test_who_acts_is_asked_once(aws: Aws) -> None:
    log_of("aws")
    asked: list[None] = []

    def caller() -> str:
        asked.append(None)
        return ACTOR

    log = real(caller)
    log.write([entry(1)])
    log.write([entry(2)])
    assert len(asked) == 1


def test_no_request_has_more_than_it_may(aws: Aws) -> None:
    log_of("aws")
    client = boto3.client("logs")
    sent = spy(client, "PutLogEvents", lambda arguments, call: call(arguments))
    AuditLog(client, "/audit", stack="shop", caller=lambda: ACTOR).write([entry(number) for number in range(60)])
    assert [len(request["logEvents"]) for request in sent] == [25, 25, 10]


@pytest.mark.guards("audit-rejected-event-noticed")
def test_an_entry_that_cloudwatch_leaves_out_is_not_written(aws: Aws) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html: the request succeeds.
    log_of("aws")
    client = boto3.client("logs")
    spy(client, "PutLogEvents", lambda *_: {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}})
    with pytest.raises(Retryable, match="tooNewLogEventStartIndex"):
        AuditLog(client, "/audit", stack="shop", caller=lambda: ACTOR).write([entry(1)])


def test_a_log_that_is_gone_is_no_log(aws: Aws) -> None:
    with pytest.raises(ClientError):
        real(group="/gone").write([entry(1)])


def test_a_throttled_log_is_retryable(aws: Aws) -> None:
    log_of("aws")
    client = boto3.client("logs")

    def throttle(*_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutLogEvents")

    spy(client, "PutLogEvents", throttle)
    with pytest.raises(Retryable, match="writing the audit log"):
        AuditLog(client, "/audit", stack="shop", caller=lambda: ACTOR).write([entry(1)])


def test_a_line_that_this_version_cannot_read_hides_no_other(aws: Aws) -> None:
    log, logs = log_of("aws"), boto3.client("logs")
    log.write([entry(1)])
    events: Any = [{"timestamp": NOW, "message": "not of this version"}]
    logs.put_log_events(logGroupName="/audit", logStreamName=day_of(NOW), logEvents=events)
    assert [recorded.entry.action_id for recorded in log.entries(since=NOW, until=NOW)] == ["a1"]
