"""The audit log: a log group of its own in CloudWatch Logs, to which operators append and which no function reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds, day_of
from darkroom_cli.operator.domain.audit import AuditEntry, Recorded, document, read_document

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

_AT_ONCE = 25
"""How many entries one request has: of 20 KB each they stay below its 1,048,576 bytes
(https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html)."""


class AuditLog:
    """Implements the `Audit` port in a log group; `caller` says who acts (an ARN), and is asked once.

    There is a stream for each day, which the first action of the day makes.
    """

    def __init__(self, client: CloudWatchLogsClient, group: str, *, stack: str, caller: Callable[[], str]) -> None:
        self._client, self._group, self._stack, self._ask = client, group, stack, caller
        self._streams: set[str] = set()

    @cached_property
    def _actor(self) -> str:
        return self._ask()

    def write(self, entries: Sequence[AuditEntry]) -> None:
        for start in range(0, len(entries), _AT_ONCE):
            self._put(entries[start : start + _AT_ONCE])

    def _put(self, entries: Sequence[AuditEntry]) -> None:
        stream = day_of(entries[0].at)
        self._require(stream)
        events: Any = [
            {
                "timestamp": entry.at,
                "message": json.dumps(document(Recorded(entry=entry, actor=self._actor, stack=self._stack))),
            }
            for entry in entries
        ]
        with retryable("writing the audit log"):
            answer = self._client.put_log_events(logGroupName=self._group, logStreamName=stream, logEvents=events)
        # A request succeeds although its events were left out, if they are too far from CloudWatch's own time.
        if rejected := answer.get("rejectedLogEventsInfo"):  # guard: audit-rejected-event-noticed
            raise Retryable(
                f"the audit log refuses what has this machine's time ({', '.join(rejected)}): set its clock right"
            )

    def _require(self, stream: str) -> None:
        if stream in self._streams:
            return
        try:
            with retryable("writing the audit log"):
                self._client.create_log_stream(logGroupName=self._group, logStreamName=stream)
        except ClientError as error:
            if code_of(error) != "ResourceAlreadyExistsException":  # guard: audit-existing-stream-used
                raise
        self._streams.add(stream)

    def entries(self, *, since: Milliseconds, until: Milliseconds) -> Iterator[Recorded]:
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=self._group, startTime=since, endTime=until
        )
        for page in pages_of(pages, "reading the audit log"):
            for event in page["events"]:
                recorded = read_document(event["message"], event["timestamp"])
                if recorded is not None:
                    yield recorded
