"""Lets alarms watch a calculation with metrics, such as the sum of several queues' messages.

Gap: MiniStack refuses an alarm with Metrics in a stack, and ignores them in PutMetricAlarm.
AWS: such an alarm watches the one query among its Metrics that returns data. In arithmetic a missing value counts as 0,
and a period has no datapoint where no metric has one, or where it would be divided by zero.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html

What still differs from AWS: functions, comparisons, expressions on expressions and metrics of different periods or
statistics are refused. (The evaluation of alarms is in alarm_evaluation.)
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_MOST_METRICS = 10
_OF_ONE_METRIC = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions", "Unit")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def apply(emulator: Emulator) -> None:
    """Take Metrics in stacks and in requests."""
    replace(internals("services.cloudformation.provisioners"), "_cw_metric_alarm_record", _of_a_stack)
    replace(internals("services.cloudwatch"), "_put_metric_alarm", _of_a_request)


def metrics_of(alarm: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each metric of an alarm's calculation is, by its id; nothing for an alarm on one metric."""
    return {
        query["Id"]: {
            **query["MetricStat"]["Metric"],
            "Statistic": query["MetricStat"]["Stat"],
            "Period": int(query["MetricStat"]["Period"]),
            "Unit": query["MetricStat"].get("Unit"),
        }
        for query in alarm.get("Metrics") or ()
        if query.get("MetricStat")
    }


def result(alarm: Mapping[str, Any], values: Mapping[str, float | None]) -> float | None:
    """Return the result of an alarm's calculation for one period's values of its metrics, or None if there is none.

    >>> alarm = {"Metrics": [{"Id": "all", "Expression": "fast + slow / 2", "ReturnData": True}]}
    >>> result(alarm, {"fast": 1.0, "slow": 4.0}), result(alarm, {"fast": None, "slow": 4.0})
    (3.0, 2.0)
    >>> result(alarm, {"fast": None, "slow": None}) is None
    True
    """
    if all(value is None for value in values.values()):
        return None
    try:
        return _calculated(ast.parse(_expression(alarm["Metrics"]), mode="eval").body, values)
    except ZeroDivisionError:
        return None


def _expression(queries: Sequence[Mapping[str, Any]]) -> str:
    watched = [query for query in queries if str(query.get("ReturnData", True)).lower() == "true"]
    if len(watched) != 1 or not watched[0].get("Expression"):
        raise ValueError("exactly one of the Metrics must have ReturnData, and the embedded AWS asks for an Expression")
    return str(watched[0]["Expression"])


def _calculated(part: ast.expr, values: Mapping[str, float | None]) -> float:
    match part:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_calculated(left, values), _calculated(right, values))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_calculated(operand, values)
        case ast.Name(id=name) if name in values:
            return values[name] or 0.0
        case ast.Constant(value=int() | float() as number):
            return float(number)
    raise ValueError(f"the embedded AWS cannot calculate {ast.unparse(part)}: it knows + - * / and the metrics' ids")


def _watching(alarm: dict[str, Any], queries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an alarm on a calculation. Raises ValueError for one that CloudWatch or the embedded AWS does not take."""
    metrics = metrics_of({"Metrics": queries})
    if len(metrics) > _MOST_METRICS:
        raise ValueError(f"an alarm can use {_MOST_METRICS} metrics at most")
    if len({query["Id"] for query in queries}) < len(queries):
        raise ValueError("the Ids of the Metrics must differ")
    if len({(metric["Statistic"], metric["Period"]) for metric in metrics.values()}) != 1:
        raise ValueError("the embedded AWS asks for metrics of one Stat and one Period")
    of_several = {**alarm, "Metrics": list(queries)}
    result(of_several, dict.fromkeys(metrics, 1.0))
    return {name: value for name, value in of_several.items() if name not in _OF_ONE_METRIC}


def _of_a_stack(record: Any) -> Any:
    def alarm_of(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        queries = properties.get("Metrics")
        if not queries:
            made: dict[str, Any] = record(name, properties)
            return made
        without = {key: value for key, value in properties.items() if key != "Metrics"}
        try:
            return _watching(record(name, without | {"Namespace": "none", "MetricName": "none"}), queries)
        except (ValueError, SyntaxError) as error:
            raise refusal("CloudWatch", str(error)) from error

    return alarm_of


def _of_a_request(put: Any) -> Any:
    def put_metric_alarm(query: Any, parameters: Any, is_cbor: bool, is_json: bool = False) -> Any:
        cloudwatch = internals("services.cloudwatch")
        queries = parameters.get("Metrics") if is_cbor or is_json else None
        try:
            _watching({}, queries) if queries else None
        except (ValueError, SyntaxError) as error:
            return cloudwatch._error("ValidationError", str(error), 400, use_json=is_json, use_cbor=is_cbor)
        answer = put(query, parameters, is_cbor, is_json)
        name = (parameters or {}).get("AlarmName")
        if queries and answer[0] < 300:
            cloudwatch._alarms[name] = _watching(cloudwatch._alarms[name], queries)
        return answer

    return put_metric_alarm
