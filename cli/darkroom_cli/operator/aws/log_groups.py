"""The functions' log groups in CloudWatch Logs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import pages_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.trace import LogLine

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient


class LogGroups:
    """Implements the `LogLines` port; `groups` names the log group of each source."""

    def __init__(self, client: CloudWatchLogsClient, groups: Mapping[str, str]) -> None:
        self._client = client
        self._groups = dict(groups)

    @property
    def sources(self) -> Collection[str]:
        return self._groups.keys()

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        # A phrase in quotes is looked for in the line's text
        # (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html). Pages may be empty: a
        # group with many lines is searched in parts.
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=self._groups[source], filterPattern=f'"{text}"', startTime=since, endTime=until
        )
        for page in pages_of(pages, "searching the logs"):
            for event in page["events"]:
                fields = _fields_of(event["message"])
                if fields is not None and text in event["message"]:
                    yield LogLine(at=_instant_of(fields, event["timestamp"]), source=source, fields=fields)


def _fields_of(message: str) -> Mapping[str, Any] | None:
    try:
        fields = json.loads(message)
    except ValueError:  # a line of the platform's
        return None
    return fields if isinstance(fields, dict) else None


def _instant_of(fields: Mapping[str, Any], otherwise: Milliseconds) -> Milliseconds:
    """When the function wrote the line, to the millisecond; the log may have got it a little later."""
    try:
        # As Powertools writes it: 2026-11-24 09:00:00,417+0000
        return round(datetime.fromisoformat(fields["timestamp"]).timestamp() * 1000)
    except (LookupError, TypeError, ValueError):
        return otherwise
