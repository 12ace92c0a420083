"""What CloudWatch has measured of a stack: the last minutes, the lanes over hours, the error budgets and the functions'
errors, each in a request of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.first_attempts import bad_of
from darkroom_cli.operator.domain.budgets import BUDGET_DAYS, WEBHOOKS, Budget
from darkroom_cli.operator.domain.observation import (
    DAY,
    ERROR_MINUTES,
    HISTORY_MINUTES,
    HOUR,
    Flow,
    History,
    LaneHistory,
    Measured,
)

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_MINUTE = 60_000

_OVER_TIME = (
    ("visible", "ApproximateNumberOfMessagesVisible", "Maximum"),
    ("hidden", "ApproximateNumberOfMessagesNotVisible", "Maximum"),
    ("age", "ApproximateAgeOfOldestMessage", "Maximum"),
    ("in", "NumberOfMessagesSent", "Sum"),
    ("out", "NumberOfMessagesDeleted", "Sum"),
)
"""Of a lane's queue, as SQS names them
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html)."""

_OF_WEBHOOKS = (
    ("counted", "FirstAttemptBurn", "SampleCount"),
    ("burn", "FirstAttemptBurn", "Sum"),
    ("repeated", "DeliveriesRepeated", "Sum"),
)


class CloudWatchMeasurements:
    """Implements the `Measurements` port: SQS's metrics of the lanes' queues (`queue_names`, by lane), Lambda's of
    the functions (`function_names`, by what they are called here), and the stack's own in `namespace`. SQS's come a few
    minutes late."""

    def __init__(
        self,
        client: CloudWatchClient,
        queue_names: Mapping[str, str],
        *,
        namespace: str,
        function_names: Mapping[str, str],
    ) -> None:
        self._client = client
        self._lanes = tuple(queue_names)
        own = {"service": "darkroom"}
        self._queries = [
            *(_query(f"in{place}", "AWS/SQS", "NumberOfMessagesSent", {"QueueName": name}, "Sum")
              for place, name in enumerate(queue_names.values())),
            *(_query(f"out{place}", "AWS/SQS", "NumberOfMessagesDeleted", {"QueueName": name}, "Sum")
              for place, name in enumerate(queue_names.values())),
            _query("lateness", namespace, "ReleaseLatenessSeconds", own, "Maximum"),
            # Lambda measures it of every invocation: a metric of our own would cost $0.30 a month.
            *(_query("accept", "AWS/Lambda", "Duration", {"FunctionName": name}, "p99", period_seconds=300)
              for function, name in function_names.items() if function == "submit_image"),
            _query("receives", namespace, "ReceiveCount", own, "p99", period_seconds=300),
            *(_query(f"first_{share}", namespace, "FirstAttemptSeconds", own, share, period_seconds=300)
              for share in ("p50", "p99")),
        ]  # fmt: skip
        self._history_queries = [
            _query(f"{what}{place}", "AWS/SQS", metric, {"QueueName": name}, statistic)
            for what, metric, statistic in _OVER_TIME
            for place, name in enumerate(queue_names.values())
        ]
        self._budget_queries = [
            _query(f"{what}{place}", namespace, name, {**own, "lane": lane}, "Sum", period_seconds=HOUR // 1000)
            for what, name in (("ended", "ImagesEnded"), ("bad", "ImagesBad"))
            for place, lane in enumerate(self._lanes)
        ] + [
            _query(what, namespace, name, own, statistic, period_seconds=HOUR // 1000)
            for what, name, statistic in _OF_WEBHOOKS
        ]
        self._functions = tuple(function_names)
        # Without a version or an alias: the sum of all of them.
        # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
        self._error_queries = [
            _query(f"errors{place}", "AWS/Lambda", "Errors", {"FunctionName": name}, "Sum")
            for place, name in enumerate(function_names.values())
        ]

    def latest(self, now: Milliseconds) -> Measured:
        # guard: top-whole-minutes-only
        until = now // _MINUTE * _MINUTE  # whole minutes: what a minute has so far says little
        with retryable("reading the metrics"):
            answer = self._client.get_metric_data(
                MetricDataQueries=self._queries, StartTime=_moment(until - HOUR), EndTime=_moment(until)
            )
        values_by_id = {result["Id"]: _values(result) for result in answer["MetricDataResults"]}

        def most(what: str) -> float | None:
            return max(values_by_id.get(what, {}).values(), default=None)

        return Measured(
            flows={
                lane: flow
                for place, lane in enumerate(self._lanes)
                if (flow := _latest_flow(values_by_id.get(f"in{place}", {}), values_by_id.get(f"out{place}", {})))
                is not None
            },
            release_lateness_seconds=most("lateness"),
            accept_p99_milliseconds=most("accept"),
            receives_p99=most("receives"),
            first_attempt_p50_seconds=most("first_p50"),
            first_attempt_p99_seconds=most("first_p99"),
        )

    def history(self, now: Milliseconds) -> History:
        until = now - now % _MINUTE  # of the minute that is not over there is only a part
        minutes = range(until - HISTORY_MINUTES * _MINUTE, until, _MINUTE)
        # 100,800 values at most come back at once, and these are a few thousand; a page may be cut short all the same.
        pages = self._client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=self._history_queries, StartTime=_moment(minutes[0]), EndTime=_moment(until)
        )
        values_by_id: dict[str, dict[Milliseconds, float]] = {}
        for page in pages_of(pages, "reading the lanes' history"):
            for result in page["MetricDataResults"]:
                values_by_id.setdefault(result["Id"], {}).update(_values(result))

        def over_time(what: str, place: int) -> list[int | None]:
            values = values_by_id.get(f"{what}{place}", {})
            return [round(values[at]) if at in values else None for at in minutes]

        return History(
            minutes=minutes,
            lanes={
                lane: LaneHistory(
                    depth=[
                        None if visible is None and hidden is None else (visible or 0) + (hidden or 0)
                        for visible, hidden in zip(over_time("visible", place), over_time("hidden", place), strict=True)
                    ],
                    oldest_seconds=over_time("age", place),
                    incoming=over_time("in", place),
                    outgoing=over_time("out", place),
                )
                for place, lane in enumerate(self._lanes)
            },
        )

    def budgets(self, now: Milliseconds) -> Mapping[str, Budget]:
        # In whole hours: CloudWatch keeps these for 15 months, those of minutes for 15 days, and nothing depends on
        # where it lets a longer period begin. The hour that is not over counts.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
        until = (now // HOUR + 1) * HOUR  # guard: top-budget-window
        sums = defaultdict[str, float](float)
        pages = self._client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=self._budget_queries,
            StartTime=_moment(until - BUDGET_DAYS * DAY),
            EndTime=_moment(until),
        )
        for page in pages_of(pages, "reading the error budgets"):
            for result in page["MetricDataResults"]:
                sums[result["Id"]] += sum(result["Values"])  # guard: top-budget-all-pages
        counted = round(sums["counted"])
        return {
            lane: Budget(ended=round(sums[f"ended{place}"]), bad=round(sums[f"bad{place}"]))
            for place, lane in enumerate(self._lanes)
        } | {
            WEBHOOKS: Budget(ended=counted, bad=bad_of(sums["burn"], counted), repeated=round(sums["repeated"])),
        }

    def function_errors(self, now: Milliseconds) -> Mapping[str, int]:
        until = (now // _MINUTE + 1) * _MINUTE  # an error of this minute counts at once
        with retryable("reading the functions' errors"):
            answer = self._client.get_metric_data(
                MetricDataQueries=self._error_queries,
                StartTime=_moment(until - ERROR_MINUTES * _MINUTE),
                EndTime=_moment(until),
            )
        sums = Counter({result["Id"]: round(sum(result["Values"])) for result in answer["MetricDataResults"]})
        errors = Counter({name: sums[f"errors{place}"] for place, name in enumerate(self._functions)})
        return {name: number for name, number in errors.most_common() if number}


def _values(result: Any) -> dict[Milliseconds, float]:
    return {
        round(at.timestamp() * 1000): value for at, value in zip(result["Timestamps"], result["Values"], strict=True)
    }


def _latest_flow(incoming: Mapping[Milliseconds, float], outgoing: Mapping[Milliseconds, float]) -> Flow | None:
    # Of the newest minute only one of the two may be there yet.
    minute_at = max(incoming.keys() & outgoing.keys() or [*incoming, *outgoing], default=None)
    if minute_at is None:
        return None
    return Flow(
        minute_at=minute_at, incoming=round(incoming.get(minute_at, 0)), outgoing=round(outgoing.get(minute_at, 0))
    )


def _query(
    query_id: str,
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    statistic: str,
    *,
    period_seconds: int = _MINUTE // 1000,
) -> Any:
    metric = {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": each, "Value": value} for each, value in dimensions.items()],
    }
    return {"Id": query_id, "MetricStat": {"Metric": metric, "Period": period_seconds, "Stat": statistic}}


def _moment(instant: Milliseconds) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
