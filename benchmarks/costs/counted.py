"""What one image calls, writes and logs, counted on the local stack and by the real operations in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from darkroom_cli.capacity.plan import TOKEN_WRITES, Demand, requests_of_status, requests_of_upload, requests_of_worker
from repository.expand_template import raw_template

ENTRY_KILOBYTES = 0.026
"""CloudWatch counts 26 bytes for each entry besides its text
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html)."""

_VARIABLES = raw_template()["Globals"]["Function"]["Environment"]["Variables"]
TIMING_SHARE = float(_VARIABLES["TIMING_SHARE"]["Fn::If"][2])
"""The share of lines of what took an invocation's time with InvocationLogs=sampled."""

FUNCTIONS = {
    "submit_image": "SubmitImageLogs",
    "read_image": "ReadImageLogs",
    "transcode_image": "TranscodeImageLogs",
    "publish_events": "PublishEventsLogs",
    "create_deliveries": "CreateDeliveriesLogs",
    "count_usage": "CountUsageLogs",
}
"""The log groups of the functions that run for each image."""

TYPICAL = Demand(per_second=10, seconds=0.5)


@dataclass
class Logged:
    """What a function's log has: kilobytes as InvocationLogs=sampled would leave them, more with `all`, invocations,
    metrics by their dimensions and name, and how many lines have which message."""

    sampled: float = 0.0
    more: float = 0.0
    runs: int = 0
    metrics: set[tuple[str, ...]] = field(default_factory=set)
    lines: Counter[str] = field(default_factory=Counter)


def logged(messages: Iterable[str]) -> Logged:
    """Reads the log of a stack that logs every invocation. What a process writes once, as it begins, does not count."""
    summed = Logged()
    for message in messages:
        if not message.startswith("{"):
            continue
        line, kilobytes = json.loads(message), len(message.encode()) / 1000 + ENTRY_KILOBYTES
        if "_aws" in line:
            names = {
                (*(line[dimension] for dimension in dimensions), metric["Name"])
                for directive in line["_aws"]["CloudWatchMetrics"]
                for dimensions in directive["Dimensions"]
                for metric in directive["Metrics"]
            }
            summed.metrics |= names
            summed.sampled += 0 if any(name[-1] == "ColdStart" for name in names) else kilobytes
        elif str(line.get("type", "")).startswith("platform."):
            summed.more += kilobytes
        elif line.get("message") == "timing":
            summed.runs += 1
            summed.sampled += TIMING_SHARE * kilobytes
            summed.more += (1 - TIMING_SHARE) * kilobytes
        elif "service" in line:
            summed.sampled += kilobytes
            summed.lines[line["message"]] += 1
    return summed


def difference(before: Logged, after: Logged) -> Logged:
    """What was added since."""
    return Logged(
        sampled=after.sampled - before.sampled,
        more=after.more - before.more,
        runs=after.runs - before.runs,
        metrics=after.metrics,
        lines=after.lines - before.lines,
    )


def stated() -> dict[str, float]:
    """What `darkroom capacity` says of an image, of what is counted here."""
    upload, worker, status = requests_of_upload(), requests_of_worker(TYPICAL), requests_of_status()
    return {
        "write units of an upload": upload["DynamoDB write units"] - TOKEN_WRITES,
        "write units of a worker": worker["DynamoDB write units"],
        "S3 PUTs": upload["S3 puts"] + worker["S3 puts"],
        "S3 GETs": worker["S3 gets"],
        "messages sent": upload["SQS requests"],
        "log KB of an upload": upload["Log kilobytes"],
        "log KB of a worker": worker["Log kilobytes"],
        "log KB of a look": status["Log kilobytes"],
    }
