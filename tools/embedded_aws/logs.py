"""Reads the logs of the running stack's functions from the emulator's CloudWatch Logs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.config import Config
from botocore.exceptions import ClientError

from stacks.running import RunningStack

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

_SUFFIX = "Function"
# An event may become readable after a later one: read this far back again and skip what was seen.
_OVERLAP_MILLISECONDS = 5_000

IMPATIENT = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 1})
"""For clients whose user may stop them at any moment."""


@dataclass(frozen=True, kw_only=True, order=True)
class LogEvent:
    """One line of a function's log; `function` is the name of its folder."""

    timestamp_milliseconds: int
    function: str = field(compare=False)
    message: str = field(compare=False)


def log_groups(stack: RunningStack) -> dict[str, str]:
    """The log group of each function, by the name of the function's folder (SubmitImageFunction: submit_image)."""
    functions = stack.client("lambda")
    groups = {}
    for logical_id, name in stack.physical_ids("AWS::Lambda::Function").items():
        logging = functions.get_function_configuration(FunctionName=name).get("LoggingConfig", {})
        groups[folder_name(logical_id)] = logging.get("LogGroup", f"/aws/lambda/{name}")
    return dict(sorted(groups.items()))


def folder_name(logical_id: str) -> str:
    """SubmitImageFunction → submit_image; a folder's name is returned unchanged."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in logical_id.removesuffix(_SUFFIX))
    return words.removeprefix("_").replace("-", "_")


class LogReader:
    """Polls log groups and returns each event once."""

    def __init__(self, stack: RunningStack, groups: Iterable[tuple[str, str]]) -> None:
        self._logs: CloudWatchLogsClient = stack.client("logs")
        self._groups = list(groups)
        self._since_milliseconds = 0
        self._seen: set[str] = set()

    def read(self) -> list[LogEvent]:
        """The events that have not been read before, oldest first."""
        began_milliseconds = int(time.time() * 1000)
        events = sorted(event for function, group in self._groups for event in self._new(function, group))
        self._since_milliseconds = began_milliseconds - _OVERLAP_MILLISECONDS
        return events

    def _new(self, function: str, group: str) -> Iterator[LogEvent]:
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=group, startTime=self._since_milliseconds
        )
        try:
            for page in pages:
                for event in page["events"]:
                    # MiniStack's events have no ids.
                    identity = event.get("eventId") or f"{event['timestamp']} {group} {event['message']}"
                    if identity not in self._seen:
                        self._seen.add(identity)
                        yield LogEvent(
                            timestamp_milliseconds=event["timestamp"], function=function, message=event["message"]
                        )
        except ClientError as error:
            # Lambda creates a log group when a function first logs, unless the template created it.
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
