"""Emits the metrics of a log group's metric filters, and matches events with filter patterns as CloudWatch Logs does.

Gap: MiniStack stores metric filters and emits no metric. FilterLogEvents finds every event with a pattern for JSON and
ignores the case of terms; subscription filters match any words of a pattern.
AWS: a filter publishes its value for each event that matches, its default value, if it has one, for each other event,
and the dimensions whose values an event has. Patterns distinguish cases, and one that is faulty is refused.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForMetricFilters.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_MetricTransformation.html

What still differs from AWS: a metric filter of a JSON pattern emits no metric for an event whose value is no number;
AWS documents no more than that it has to be one.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local_aws.emulator import Emulator
from local_aws.filter_patterns import InvalidPattern, Match, compile_pattern, number
from local_aws.ministack_internals import internals, replace
from local_aws.shims.metric_data import observe

MAXIMUM_DIMENSIONS = 3

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FilteredMetric:
    """What a metric filter emits for one event; `is_default` if the event does not match."""

    value: float
    dimensions: Mapping[str, str]
    is_default: bool = False


def apply(emulator: Emulator) -> None:
    """Look at every event that is stored, and match patterns like AWS wherever MiniStack does."""
    logs = internals("services.cloudwatch_logs")
    # What stores events passes them on to subscription filters, with the log group's name.
    replace(logs, "_fanout_to_subscription_filters", _filter)
    replace(logs, "_subscription_pattern_matches", lambda _: _matches)
    replace(logs, "_compile_filter_pattern", lambda _: lambda pattern: lambda message: _matches(pattern, message))
    for request in ("_filter_log_events", "_put_subscription_filter", "_start_live_tail"):
        replace(logs, request, _refuse_faulty_patterns)
    replace(logs, "_put_metric_filter", _refuse_faulty_filters)


def _matches(pattern: str | None, message: str) -> bool:
    return compile_pattern(pattern or "").match(message) is not None


# ── Metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _filter(pass_on: Any) -> Any:
    def filter_events(group: str, stream: str, events: Sequence[Mapping[str, Any]]) -> None:
        for metric_filter in list(internals("services.cloudwatch_logs")._metric_filters.values()):
            if metric_filter["logGroupName"] == group:  # guard: emulator-metric-filter-own-group
                for event in events:
                    _emit(metric_filter, event)
        pass_on(group, stream, events)

    return filter_events


def _emit(metric_filter: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    for transformation in metric_filter["metricTransformations"]:
        metric = filtered_metric(metric_filter["filterPattern"], transformation, event["message"])
        if metric is None:
            continue
        namespace, name = transformation["metricNamespace"], transformation["metricName"]
        unit = transformation.get("unit") or "None"
        if metric.is_default:
            observe(namespace, name, {}, metric.value, unit)
        else:
            timestamp = event["timestamp"] / 1000
            internals("services.cloudwatch")._store_datum(
                *(namespace, name, dict(metric.dimensions), timestamp, unit, metric.value), None, None, None
            )


def filtered_metric(pattern: str, transformation: Mapping[str, Any], message: str) -> FilteredMetric | None:
    """Return what a filter emits for an event; None if nothing."""
    match = compile_pattern(pattern).match(message)
    if match is None:
        default = transformation.get("defaultValue")
        return None if default is None else FilteredMetric(value=float(default), dimensions={}, is_default=True)
    written = str(transformation["metricValue"])
    value = number(match.value(written) if written.startswith("$") else written)
    return None if value is None else FilteredMetric(value=value, dimensions=dict(_dimensions(transformation, match)))


def _dimensions(transformation: Mapping[str, Any], match: Match) -> Iterator[tuple[str, str]]:
    for name, selector in (transformation.get("dimensions") or {}).items():
        value = match.value(selector)
        if value is not None:
            yield name, str(value)


# ── Refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_faulty_patterns(handle: Any) -> Any:
    def handle_valid(request: Mapping[str, Any]) -> Any:
        pattern = request.get("filterPattern") or request.get("logEventFilterPattern") or ""
        return _fault_of_pattern(pattern) or handle(request)

    return handle_valid


def _refuse_faulty_filters(put: Any) -> Any:
    def put_valid(request: Mapping[str, Any]) -> Any:
        pattern = request.get("filterPattern") or ""
        if refused := _fault_of_pattern(pattern):
            return refused
        transformations = request.get("metricTransformations") or []
        if len(transformations) != 1:
            return _refused("metricTransformations must have exactly one member")
        if fault := _fault(pattern, transformations[0]):
            return _refused(fault)
        return put(request)

    return put_valid


def _fault_of_pattern(pattern: str) -> Any:
    try:
        compile_pattern(pattern)
    except InvalidPattern as fault:
        return _refused(f"Invalid filter pattern: {fault}")
    return None


def _fault(pattern: str, transformation: Mapping[str, Any]) -> str:
    value, dimensions = str(transformation.get("metricValue", "")), transformation.get("dimensions") or {}
    has_fields = pattern.strip()[:1] in ("{", "[")
    for member in ("metricName", "metricNamespace"):
        if not transformation.get(member) or set(":*$") & set(transformation[member]):
            return f"{member} must be there, without any of : * $"
    if number(value) is None and not (value.startswith("$") and has_fields):
        return "metricValue must be a number, or a field of a pattern for JSON or fields: $.name or $name"
    if len(dimensions) > MAXIMUM_DIMENSIONS:
        return f"dimensions must have {MAXIMUM_DIMENSIONS} members at most"
    if dimensions and transformation.get("defaultValue") is not None:
        return "defaultValue cannot be combined with dimensions"
    if any(not (each.startswith("$") and has_fields) for each in dimensions.values()):
        return "the value of a dimension must be a field of a pattern for JSON or fields: $.name or $name"
    return ""


def _refused(message: str) -> Any:
    return internals("core.responses").error_response_json("InvalidParameterException", message, 400)
