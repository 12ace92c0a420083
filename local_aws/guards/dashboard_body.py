"""Refuses a dashboard whose body does not have the structure of one.

Gap: MiniStack stores any text as a dashboard.
AWS: PutDashboard answers InvalidParameterInput and names each place. A body is JSON with `widgets`; each has a type,
its place within the grid, and properties: a metric widget a region and metrics or annotations, a log widget a region
and a query, an alarm widget the ARNs of alarms, a text widget its text.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html

The other types' properties, and those that only concern looks, are not checked. AWS does not document the wording.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

MAXIMUM_WIDGETS = 500
_TYPES = ("alarm", "chart", "custom", "explorer", "log", "metric", "text")
_PLACES = {"x": (0, 23), "y": (0, None), "width": (1, 24), "height": (1, 1000)}
_ONE_OF = {
    "metric": (("region",), ("metrics", "annotations")),
    "log": (("region",), ("query",)),
    "alarm": (("alarms",),),
    "text": (("markdown",),),
}
_SUB_MINUTE_PERIODS = (1, 5, 10, 20, 30)

type Fault = tuple[str, str]


def apply(emulator: Emulator) -> None:
    """Check each body that a request or a stack gives a dashboard."""
    cloudwatch = internals("services.cloudwatch")
    replace(cloudwatch, "_put_dashboard", _check_request)
    replace(cloudwatch, "cloudformation_put_dashboard", _check_resource)


def _check_request(put: Any) -> Any:
    def put_dashboard(query: Any, parameters: Any, is_cbor: bool, is_json: bool = False) -> Any:
        cloudwatch = internals("services.cloudwatch")
        body = (parameters.get("DashboardBody") if is_cbor or is_json else cloudwatch._p(query, "DashboardBody")) or ""
        if message := _refusal(body):
            return cloudwatch._error("InvalidParameterInput", message, 400, use_json=is_json, use_cbor=is_cbor)
        return put(query, parameters, is_cbor, is_json)

    return put_dashboard


def _check_resource(put: Any) -> Any:
    def put_dashboard(name: str, body: str) -> Any:
        if message := _refusal(body):
            raise refusal("CloudWatch", message)  # guard: emulator-stack-dashboard-check
        return put(name, body)

    return put_dashboard


def _refusal(body: str) -> str:
    errors = [{"dataPath": path, "message": message} for path, message in faults(body)]
    if not errors:
        return ""
    return f"The dashboard body is invalid, there are {len(errors)} validation errors: {json.dumps(errors)}"


def faults(body: str) -> list[Fault]:
    """The faults of a dashboard's body, each with its place."""
    try:
        dashboard = json.loads(body)
    except ValueError as error:
        return [("", f"Should be JSON: {error}")]
    widgets = dashboard.get("widgets") if isinstance(dashboard, dict) else None
    if not isinstance(widgets, list):
        return [("", "Should have required property 'widgets', an array")]
    if len(widgets) > MAXIMUM_WIDGETS:
        return [("/widgets", f"Should not have more than {MAXIMUM_WIDGETS} items")]
    return [fault for number, widget in enumerate(widgets) for fault in _of_widget(f"/widgets/{number}", widget)]


def _of_widget(path: str, widget: Any) -> Iterator[Fault]:
    if not isinstance(widget, dict):
        yield path, "Should be object"
        return
    if widget.get("type") not in _TYPES:
        yield f"{path}/type", f"Should be one of {', '.join(_TYPES)}"
    for name, (least, most) in _PLACES.items():
        value = widget.get(name, least)
        if type(value) is not int or value < least or (most is not None and value > most):
            yield f"{path}/{name}", f"Should be an integer from {least}" + (f" to {most}" if most else "")
    if ("x" in widget) != ("y" in widget):
        yield path, "Should have both properties 'x' and 'y', or neither"
    properties = widget.get("properties")
    if isinstance(properties, dict):
        yield from _of_properties(f"{path}/properties", str(widget.get("type")), properties)
    else:
        yield path, "Should have required property 'properties', an object"


def _of_properties(path: str, kind: str, properties: Mapping[str, Any]) -> Iterator[Fault]:
    for names in _ONE_OF.get(kind, ()):
        if not any(properties.get(name) for name in names):
            yield path, f"Should have required property '{"' or '".join(names)}'"
    if kind == "alarm" and not _are_texts(properties.get("alarms") or []):
        yield f"{path}/alarms", "Should be an array of ARNs"
    if kind == "metric":
        period = properties.get("period", 60)
        if type(period) is not int or (period not in _SUB_MINUTE_PERIODS and (period < 60 or period % 60)):
            yield f"{path}/period", f"Should be a multiple of 60, or one of {', '.join(map(str, _SUB_MINUTE_PERIODS))}"
        metrics = properties.get("metrics") or []
        if not isinstance(metrics, list):
            yield f"{path}/metrics", "Should be array"
            return
        for number, metric in enumerate(metrics):
            if fault := _of_metric(metric):
                yield f"{path}/metrics/{number}", fault


def _of_metric(metric: Any) -> str:
    if not isinstance(metric, list) or not metric:
        return "Should be an array of a namespace, a metric, and names and values of dimensions"
    names = metric[:-1] if isinstance(metric[-1], dict) else metric
    if not names:
        return "" if metric[-1].get("expression") else "Should have an expression, or a namespace and a metric"
    if not _are_texts(names):
        return "Should have no items but texts, and at its end an object"
    # ... stands for any number of items of the metric before.
    is_complete = "..." in names or (len(names) >= 2 and len(names) % 2 == 0)
    return "" if is_complete else "Should have a value for each name of a dimension"


def _are_texts(items: Sequence[Any]) -> bool:
    return isinstance(items, list) and all(isinstance(item, str) for item in items)
