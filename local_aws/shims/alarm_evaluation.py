"""Evaluates alarms periodically, as CloudWatch does, and notifies their actions' topics of every change.

Gap: MiniStack evaluates an alarm only when metric data or the alarm is put, over all dimensions of the metric's name,
as one datum across all periods. It supports neither DatapointsToAlarm nor missing data, and no OK without data.
AWS: an alarm is evaluated once a minute, over the metric with exactly its dimensions (and unit, if it names one), with
one datapoint per period. Its notification is a JSON document; its history says what changed and what was done.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html

Periods have their real length here and are aligned as on AWS, to whole multiples of their length. So that nobody has to
wait for the end of one, alarms are evaluated every second, and the unfinished period counts
- with the statistics Sum and SampleCount only if it exceeds the alarm's limit, which no further data can undo; and
- with other statistics always. If such an alarm looks at only one period, every change of its state ends a period, so
  the first datum that does not breach clears it. With AWS's clock a little ahead or behind, these data would fall into
  different periods too.
A count (Sum, SampleCount) that no longer breaches clears its alarm at the end of its period, as on AWS.
On AWS no time is skipped. After a move of the clock by more than a minute (`warp.py`), silence raises no
alarm before as much time has passed as the alarm looks at. In steps of a minute, as drills make them, no period is
skipped: what emits each minute has its turn in between.

What still differs from AWS: an alarm may clear and fire again within one period. The evaluation range is two periods
longer than EvaluationPeriods; AWS documents that it is longer, and gives five for three as an example. Percentiles
count however few samples there are, and other extended statistics are not supported: an alarm on one of those or on an
anomaly band keeps its state. Only SNS topics are executed as actions.
"""

import functools
import itertools
import json
import logging
import math
import operator
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import botocore.loaders

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace
from local_aws.shims import metric_math
from local_aws.shims.background import every, scope, scopes

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]

INTERVAL_SECONDS = 1
FURTHER_PERIODS = 2
COUNTS = ("Sum", "SampleCount")
_DISORDER_SECONDS = 900
_LONGEST_STEP_SECONDS = 60.5

_COMPARISONS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "GreaterThanThreshold": (operator.gt, "greater than"),
    "GreaterThanOrEqualToThreshold": (operator.ge, "greater than or equal to"),
    "LessThanThreshold": (operator.lt, "less than"),
    "LessThanOrEqualToThreshold": (operator.le, "less than or equal to"),
}
_ACTIONS: dict[State, str] = {
    "ALARM": "AlarmActions",
    "OK": "OKActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}


@dataclass
class ClockMoves:
    """When the clock was moved ahead last by more than a minute: then it gained on the monotonic one, which is never
    moved."""

    offset: float | None = None
    moved_at: float = -math.inf

    def seconds_since_last(self, now: float, monotonic: float) -> float:
        """How long ago that was, by the moved clock."""
        before, self.offset = self.offset, now - monotonic
        if before is not None and self.offset - before > _LONGEST_STEP_SECONDS:
            self.moved_at = now
        return now - self.moved_at


_logger = logging.getLogger(__name__)
# The periodic evaluation and those that MiniStack starts on a request run one after another.
_evaluating = threading.RLock()
# When each alarm changed its state, by its ARN, as far back as its evaluation looks.
_changes: dict[str, list[float]] = {}
_clock_moves = ClockMoves()


def apply(emulator: Emulator) -> None:
    """Replace MiniStack's evaluation and notification, and evaluate all alarms periodically."""
    cloudwatch = internals("services.cloudwatch")
    replace(cloudwatch, "_evaluate_alarm", lambda _: _evaluate)
    replace(cloudwatch, "_dispatch_alarm_actions", lambda _: _act)
    for request in ("_put_metric_alarm", "_put_composite_alarm", "_set_alarm_state"):
        replace(cloudwatch, request, _in_turn)
    every(INTERVAL_SECONDS, _evaluate_all, name="alarm-evaluation")


def _in_turn(handle: Any) -> Any:
    """Let requests that change states wait for an evaluation: two changes at once would notify twice, or not at all."""

    def handle_in_turn(*request: Any, **options: Any) -> Any:
        with _evaluating:
            return handle(*request, **options)

    return handle_in_turn


# ── The rules of an alarm, without CloudWatch's stores ───────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What an alarm compares, and when it changes its state."""

    statistic: str
    period_seconds: int
    evaluation_periods: int
    datapoints_to_alarm: int | None
    comparison: str
    threshold: float
    missing_data: str

    @property
    def needed(self) -> int:
        """How many datapoints have to breach."""
        return self.datapoints_to_alarm or self.evaluation_periods

    def breaches(self, value: float) -> bool:
        """Whether a value breaches the threshold."""
        return _COMPARISONS[self.comparison][0](value, self.threshold)


@dataclass(frozen=True, kw_only=True)
class Datapoint:
    """The statistic of one period's data, or None if there are none."""

    begins_at: float
    value: float | None
    sample_count: float = 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of an evaluation: the state, the reason, and the datapoints it is based on, newest first."""

    state: State
    reason: str
    evaluated: Sequence[Datapoint]


def periods(rule: Rule, *, now: float, changes: Sequence[float]) -> list[tuple[float, float]]:
    """Return the start and end of each period to look at, newest first: the unfinished one and all that may count.

    >>> rule = Rule(statistic="Maximum", period_seconds=60, evaluation_periods=1, datapoints_to_alarm=None,
    ...             comparison="GreaterThanThreshold", threshold=0, missing_data="missing")
    >>> periods(rule, now=200, changes=[])
    [(180, 200), (120, 180), (60, 120), (0, 60)]
    >>> periods(rule, now=200, changes=[170, 190])
    [(190, 200), (180, 190), (170, 180), (120, 170), (60, 120), (0, 60)]
    """
    newest = now // rule.period_seconds * rule.period_seconds
    length_of_range = rule.evaluation_periods + FURTHER_PERIODS
    edges = {newest - rule.period_seconds * number for number in range(length_of_range + 1)}
    if rule.evaluation_periods == 1 and rule.statistic not in COUNTS:
        edges |= {change for change in changes if min(edges) < change < now}
    ordered = [now, *sorted(edges, reverse=True)]
    return [(start, end) for end, start in itertools.pairwise(ordered)]


def evaluate(rule: Rule, datapoints: Sequence[Datapoint]) -> Verdict | None:
    """Return the result for the datapoints of `periods`, or None if the alarm keeps its state."""
    considered = datapoints if _counts_before_its_end(rule, datapoints[0]) else datapoints[1:]
    range_seconds = rule.period_seconds * (rule.evaluation_periods + FURTHER_PERIODS)
    considered = [point for point in considered if point.begins_at > considered[0].begins_at - range_seconds]
    existing = [point for point in considered if point.value is not None][: rule.evaluation_periods]
    breaching = [point for point in existing if _breaches(rule, point)]
    missing = rule.evaluation_periods - len(existing)
    if missing == 0 or rule.missing_data in ("breaching", "notBreaching"):
        beyond = len(breaching) + (missing if rule.missing_data == "breaching" else 0)
        state: State = "ALARM" if beyond >= rule.needed else "OK"
    elif len(breaching) >= rule.needed:
        state = "ALARM"
    elif len(breaching) < len(existing):
        state = "OK"
    elif rule.missing_data == "ignore":
        return None
    else:
        # Breaching data are not enough while the alarm could still see other data: the oldest has to be old enough.
        is_old_enough = bool(existing) and considered.index(existing[-1]) + 1 >= rule.needed
        state = "ALARM" if is_old_enough else "INSUFFICIENT_DATA"
    return Verdict(state=state, reason=_reason(rule, state, existing, missing), evaluated=existing)


def is_silence_of_skipped_time(rule: Rule, verdict: Verdict, *, seconds_since_move: float) -> bool:
    """Whether an alarm would be raised by missing data of a time that nobody has lived through."""
    breaching = [point for point in verdict.evaluated if _breaches(rule, point)]
    is_silence = verdict.state == "ALARM" and len(breaching) < rule.needed
    # guard: emulator-skipped-time-no-silence
    return is_silence and seconds_since_move < rule.evaluation_periods * rule.period_seconds


def _counts_before_its_end(rule: Rule, unfinished: Datapoint) -> bool:
    if unfinished.value is None:
        return False
    if rule.statistic in COUNTS:
        return rule.comparison.startswith("Greater") and rule.breaches(unfinished.value)
    return True


def _breaches(rule: Rule, point: Datapoint) -> bool:
    return point.value is not None and rule.breaches(point.value)


# ── CloudWatch's wording ─────────────────────────────────────────────────────────────────────────────────────────────


def _reason(rule: Rule, state: State, existing: Sequence[Datapoint], missing: int) -> str:
    total = rule.evaluation_periods
    if state == "INSUFFICIENT_DATA":
        return f"Insufficient Data: {_datapoints(total)} {_were(total)} unknown."
    because = [point for point in existing if _breaches(rule, point) == (state == "ALARM")]
    filling = ""
    if missing and rule.missing_data in ("breaching", "notBreaching"):
        treated_as = "Breaching" if rule.missing_data == "breaching" else "NonBreaching"
        filling = f" and {_datapoints(missing, 'missing ')} {_were(missing)} treated as [{treated_as}]"
    if not because:
        received = _datapoints(len(existing)) if existing else "no datapoints"
        periods_ = "1 period" if total == 1 else f"{total} periods"
        return f"Threshold Crossed: {received} {_were(len(existing))} received for {periods_}{filling}."
    listed = ", ".join(f"{point.value} ({_moment(point.begins_at):%d/%m/%y %H:%M:%S})" for point in because)
    counted, transition = _datapoints(len(because)), ""
    if rule.datapoints_to_alarm:
        counted = f"{len(because)} out of the last {total} datapoints"
        minimum, change = (rule.needed, "OK -> ALARM") if state == "ALARM" else (total - rule.needed + 1, "ALARM -> OK")
        transition = f" (minimum {_datapoints(minimum)} for {change} transition)"
    words = f"{'' if state == 'ALARM' else 'not '}{_COMPARISONS[rule.comparison][1]}"
    return (
        f"Threshold Crossed: {counted} [{listed}] {_were(len(because))} {words} the threshold "
        f"({rule.threshold}){filling}{transition}."
    )


def _datapoints(count: int, kind: str = "") -> str:
    return f"{count} {kind}datapoint{'' if count == 1 else 's'}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def _written(timestamp: float) -> str:
    return f"{_moment(timestamp).strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}+0000"


# ── The alarms of the emulator ───────────────────────────────────────────────────────────────────────────────────────


def _evaluate_all() -> None:
    alarms = internals("services.cloudwatch")._alarms
    for account_id, region in scopes(alarms):
        with scope(account_id, region):
            for alarm in list(alarms.values()):
                try:
                    _evaluate(alarm)
                except Exception:
                    _logger.exception("The evaluation of %s went wrong", alarm["AlarmName"])


def _evaluate(alarm: dict[str, Any]) -> None:
    one_metric = next(iter(metric_math.metrics_of(alarm).values()), alarm)
    statistic = str(one_metric.get("ExtendedStatistic") or one_metric.get("Statistic"))
    cloudwatch = internals("services.cloudwatch")
    is_known = statistic in (*COUNTS, "Average", "Minimum", "Maximum") or cloudwatch._is_percentile_stat(statistic)
    if not is_known or not one_metric.get("MetricName") or alarm.get("ComparisonOperator") not in _COMPARISONS:
        return
    rule = Rule(
        statistic=statistic,
        period_seconds=int(one_metric["Period"]),
        evaluation_periods=int(alarm["EvaluationPeriods"]),
        datapoints_to_alarm=alarm.get("DatapointsToAlarm"),
        comparison=alarm["ComparisonOperator"],
        threshold=float(alarm["Threshold"]),
        missing_data=alarm.get("TreatMissingData") or "missing",
    )
    with _evaluating:
        now = time.time()
        spans = periods(rule, now=now, changes=_changes.get(alarm["AlarmArn"], []))
        verdict = evaluate(rule, _datapoints_of(alarm, rule, spans))
        since_move = _clock_moves.seconds_since_last(now, time.monotonic())
        if verdict and is_silence_of_skipped_time(rule, verdict, seconds_since_move=since_move):
            return
        if verdict and verdict.state != alarm["StateValue"]:
            _changes[alarm["AlarmArn"]] = [
                *(at for at in _changes.get(alarm["AlarmArn"], []) if at > spans[-1][0]),
                now,
            ]
            _change(alarm, rule, verdict, now)


def _datapoints_of(alarm: Mapping[str, Any], rule: Rule, spans: Sequence[tuple[float, float]]) -> list[Datapoint]:
    metrics = metric_math.metrics_of(alarm)
    if not metrics:
        return _datapoints_of_metric(alarm, rule, spans)
    series = {name: _datapoints_of_metric(metric, rule, spans) for name, metric in metrics.items()}
    values: list[dict[str, float | None]] = [
        {name: points[number].value for name, points in series.items()} for number in range(len(spans))
    ]
    return [
        Datapoint(begins_at=start, value=metric_math.result(alarm, of_period))
        for (start, _), of_period in zip(spans, values, strict=True)
    ]


def _datapoints_of_metric(
    metric: Mapping[str, Any], rule: Rule, spans: Sequence[tuple[float, float]]
) -> list[Datapoint]:
    cloudwatch = internals("services.cloudwatch")
    dimensions = cloudwatch._dims_key(cloudwatch._dims_from_list(metric.get("Dimensions") or []))
    bucket = cloudwatch._metrics.get((metric["Namespace"], metric["MetricName"], dimensions)) or []
    # Data arrive nearly in the order of their timestamps, so most old data need not be looked at.
    oldest = spans[-1][0] - _DISORDER_SECONDS
    recent = itertools.takewhile(lambda datum: datum["Timestamp"] >= oldest, reversed(list(bucket)))
    data = [datum for datum in recent if not metric.get("Unit") or datum["Unit"] == metric["Unit"]]
    return [
        _datapoint(rule, start, [datum for datum in data if start <= datum["Timestamp"] < end]) for start, end in spans
    ]


def _datapoint(rule: Rule, begins_at: float, data: list[Any]) -> Datapoint:
    cloudwatch = internals("services.cloudwatch")
    statistics = cloudwatch._calc_stats(data)
    if not statistics:
        return Datapoint(begins_at=begins_at, value=None)
    value = cloudwatch._stat_value(statistics, rule.statistic, data)
    return Datapoint(begins_at=begins_at, value=value, sample_count=statistics["SampleCount"])


def _change(alarm: dict[str, Any], rule: Rule, verdict: Verdict, now: float) -> None:
    cloudwatch = internals("services.cloudwatch")
    old_state = alarm["StateValue"]
    reason_data = _reason_data(alarm, rule, verdict, now)
    alarm |= {
        "StateValue": verdict.state,
        "StateReason": verdict.reason,
        "StateReasonData": json.dumps(reason_data),
        "StateUpdatedTimestamp": int(now),
        "StateTransitionedTimestamp": int(now),
    }
    cloudwatch._record_history(alarm["AlarmName"], old_state, verdict.state, verdict.reason, "MetricAlarm", reason_data)
    cloudwatch._dispatch_alarm_actions(alarm, old_state, verdict.state, verdict.reason)
    cloudwatch._evaluate_parent_alarms(alarm)


def _reason_data(alarm: Mapping[str, Any], rule: Rule, verdict: Verdict, now: float) -> dict[str, Any]:
    data = {
        "version": "1.0",
        "queryDate": _written(now),
        "startDate": _written(verdict.evaluated[-1].begins_at) if verdict.evaluated else None,
        "unit": alarm.get("Unit"),
        "statistic": rule.statistic,
        "period": rule.period_seconds,
        "recentDatapoints": [point.value for point in reversed(verdict.evaluated)],
        "threshold": rule.threshold,
        "evaluatedDatapoints": [
            {"timestamp": _written(point.begins_at), "sampleCount": point.sample_count, "value": point.value}
            for point in verdict.evaluated
        ],
    }
    return {name: value for name, value in data.items() if value is not None}


def _act(alarm: Mapping[str, Any], old_state: State, new_state: State, reason: str) -> None:
    """Notify the topics of the new state's actions, and record that in the alarm's history."""
    cloudwatch, responses = internals("services.cloudwatch"), internals("core.responses")
    if not alarm.get("ActionsEnabled", True):
        return
    region = _region_name(responses.get_region())
    subject = f'{new_state}: "{alarm["AlarmName"]}" in {region}'[:100]
    message = json.dumps(_notification(alarm, old_state, new_state, reason, region))
    sns, source = internals("services.sns"), (alarm["AlarmArn"], responses.get_account_id())
    for action in filter(cloudwatch._is_sns_action_arn, alarm.get(_ACTIONS[new_state]) or []):
        if not sns.topic_policy_allows(action, "cloudwatch.amazonaws.com", *source):
            continue  # only if IAM is evaluated: otherwise everybody may
        sns._fanout(action, responses.new_uuid(), message, subject)
        cloudwatch._history_entries().append(
            {
                "AlarmName": alarm["AlarmName"],
                "AlarmType": "CompositeAlarm" if "AlarmRule" in alarm else "MetricAlarm",
                "Timestamp": cloudwatch._ts_iso(time.time()),
                "HistoryItemType": "Action",
                "HistorySummary": f"Successfully executed action {action}",
                "HistoryData": json.dumps(
                    {
                        "actionState": "Succeeded",
                        "notificationResource": action,
                        "stateUpdateTimestamp": int(time.time() * 1000),
                        "publishedMessage": message,
                    }
                ),
            }
        )


def _notification(
    alarm: Mapping[str, Any], old_state: State, new_state: State, reason: str, region: str
) -> dict[str, Any]:
    watched = _watched_alarms(alarm) if "AlarmRule" in alarm else {"Trigger": _trigger(alarm)}
    return {
        "AlarmName": alarm["AlarmName"],
        "AlarmDescription": alarm.get("AlarmDescription") or None,
        "AWSAccountId": internals("core.responses").get_account_id(),
        "AlarmConfigurationUpdatedTimestamp": _written(alarm["AlarmConfigurationUpdatedTimestamp"]),
        "NewStateValue": new_state,
        "NewStateReason": reason,
        "StateChangeTime": _written(time.time()),
        "Region": region,
        "AlarmArn": alarm["AlarmArn"],
        "OldStateValue": old_state,
        "OKActions": alarm.get("OKActions") or [],
        "AlarmActions": alarm.get("AlarmActions") or [],
        "InsufficientDataActions": alarm.get("InsufficientDataActions") or [],
        **watched,
    }


def _watched_alarms(composite: Mapping[str, Any]) -> dict[str, Any]:
    """The rule, and the alarms whose changes made it change; SetAlarmState of the composite itself names none."""
    triggering = json.loads(composite.get("StateReasonData") or "{}").get("triggeringAlarms", [])
    return {
        "AlarmRule": composite["AlarmRule"],
        "TriggeringChildren": [
            {"Arn": child["arn"], "State": {"Value": child["state"]["value"], "Timestamp": child["state"]["timestamp"]}}
            for child in triggering  # guard: emulator-composite-alarm-children
        ],
    }


def _trigger(alarm: Mapping[str, Any]) -> dict[str, Any]:
    optional = {"DatapointsToAlarm": alarm["DatapointsToAlarm"]} if alarm.get("DatapointsToAlarm") else {}
    return {
        **_watched_metrics(alarm),
        "EvaluationPeriods": alarm["EvaluationPeriods"],
        **optional,
        "ComparisonOperator": alarm["ComparisonOperator"],
        "Threshold": alarm["Threshold"],
        "TreatMissingData": alarm.get("TreatMissingData") or "missing",
        "EvaluateLowSampleCountPercentile": alarm.get("EvaluateLowSampleCountPercentile") or "",
    }


def _watched_metrics(alarm: Mapping[str, Any]) -> dict[str, Any]:
    if metrics := metric_math.metrics_of(alarm):
        return {"Metrics": alarm["Metrics"], "Period": next(iter(metrics.values()))["Period"]}
    extended = alarm.get("ExtendedStatistic")
    return {
        "MetricName": alarm["MetricName"],
        "Namespace": alarm["Namespace"],
        "StatisticType": "ExtendedStatistic" if extended else "Statistic",
        **({"ExtendedStatistic": extended} if extended else {"Statistic": str(alarm["Statistic"]).upper()}),
        "Unit": alarm.get("Unit"),
        "Dimensions": [{"value": each["Value"], "name": each["Name"]} for each in alarm.get("Dimensions") or []],
        "Period": alarm["Period"],
    }


@functools.cache
def _region_name(region: str) -> str:
    partitions = botocore.loaders.create_loader().load_data("partitions")["partitions"]
    names = {code: each["description"] for partition in partitions for code, each in partition["regions"].items()}
    return str(names.get(region, region))
