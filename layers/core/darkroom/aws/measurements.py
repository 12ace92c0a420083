"""What CloudWatch has measured of a stack, in one request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from darkroom.aws.errors import retryable
from darkroom.domain.instants import Milliseconds
from darkroom.domain.observation import HOUR, Flow, Measured

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

_MINUTE = 60_000

BURNING_MINUTES = 3
"""How long a burn counts after it was measured: it is measured every minute while there is one."""


class CloudWatchMeasurements:
    """Implements the `Measurements` port: SQS's metrics of the lanes' queues (`queue_names`, by lane), and the stack's
    own in `namespace`. SQS's come a few minutes late."""

    def __init__(self, client: CloudWatchClient, queue_names: Mapping[str, str], *, namespace: str) -> None:
        self._client = client
        self._lanes = tuple(queue_names)
        own = {"service": "darkroom"}
        self._queries = [
            *(_query(f"in{place}", "AWS/SQS", "NumberOfMessagesSent", {"QueueName": name}, "Sum")
              for place, name in enumerate(queue_names.values())),
            *(_query(f"out{place}", "AWS/SQS", "NumberOfMessagesDeleted", {"QueueName": name}, "Sum")
              for place, name in enumerate(queue_names.values())),
            _query("lateness", namespace, "ReleaseLatenessSeconds", own, "Maximum"),
            _query("fast_burn", namespace, "FastBurn", own, "Maximum"),
            _query("slow_burn", namespace, "SlowBurn", own, "Maximum"),
        ]  # fmt: skip

    def latest(self, now: Milliseconds) -> Measured:
        until = now // _MINUTE * _MINUTE  # whole minutes: what a minute has so far says little
        with retryable("reading the metrics"):
            answer = self._client.get_metric_data(
                MetricDataQueries=self._queries, StartTime=_moment(until - HOUR), EndTime=_moment(until)
            )
        found: dict[str, dict[Milliseconds, float]] = {
            result["Id"]: {
                round(at.timestamp() * 1000): value
                for at, value in zip(result["Timestamps"], result["Values"], strict=True)
            }
            for result in answer["MetricDataResults"]
        }
        lateness = found.get("lateness", {})
        return Measured(
            flows={
                lane: flow
                for place, lane in enumerate(self._lanes)
                if (flow := _latest_flow(found.get(f"in{place}", {}), found.get(f"out{place}", {}))) is not None
            },
            release_lateness_seconds=max(lateness.values(), default=None),
            fast_burn=_present(found.get("fast_burn", {}), until),
            slow_burn=_present(found.get("slow_burn", {}), until),
        )


def _latest_flow(incoming: Mapping[Milliseconds, float], outgoing: Mapping[Milliseconds, float]) -> Flow | None:
    # Of the newest minute only one of the two may be there yet.
    minute_at = max(incoming.keys() & outgoing.keys() or [*incoming, *outgoing], default=None)
    if minute_at is None:
        return None
    return Flow(
        minute_at=minute_at, incoming=round(incoming.get(minute_at, 0)), outgoing=round(outgoing.get(minute_at, 0))
    )


def _present(burns: Mapping[Milliseconds, float], until: Milliseconds) -> float | None:
    return next((burns[at] for at in sorted(burns)[-1:] if at >= until - BURNING_MINUTES * _MINUTE), None)


def _query(query_id: str, namespace: str, name: str, dimensions: Mapping[str, str], statistic: str) -> Any:
    metric = {
        "Namespace": namespace,
        "MetricName": name,
        "Dimensions": [{"Name": each, "Value": value} for each, value in dimensions.items()],
    }
    return {"Id": query_id, "MetricStat": {"Metric": metric, "Period": 60, "Stat": statistic}}


def _moment(instant: Milliseconds) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
