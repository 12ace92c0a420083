"""The dashboard and the saved queries: nothing that exists is missing, and nothing that they show does not exist."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from darkroom.domain.images.service_level import OBJECTIVE
from darkroom.domain.kernel.lanes import LANES
from repository.expand_template import expanded_template, resources
from repository.report import ROOT

ALARMS = resources("AWS::CloudWatch::Alarm") | resources("AWS::CloudWatch::CompositeAlarm")
CODE = "".join(
    path.read_text() for path in [*ROOT.glob("functions/*/app.py"), *ROOT.glob("layers/core/darkroom/**/*.py")]
)
OWN = "Darkroom/${AWS::StackName}"

LOG_GROUPS = resources("AWS::Logs::LogGroup")
QUERIES = resources("AWS::Logs::QueryDefinition")


def widgets() -> dict[str, dict[str, Any]]:
    """The dashboard's widgets by their titles."""
    ((_, dashboard),) = resources("AWS::CloudWatch::Dashboard").items()
    body = json.loads(dashboard["DashboardBody"]["Fn::Sub"])
    return {widget["properties"]["title"]: widget for widget in body["widgets"]}


WIDGETS = widgets()


def metrics(widget: dict[str, Any]) -> list[tuple[list[str], dict[str, Any]]]:
    """The metrics of a widget, each with its options."""
    rows = widget["properties"].get("metrics", [])
    return [
        ([part for part in row if isinstance(part, str)], next((part for part in row if isinstance(part, dict)), {}))
        for row in rows
    ]


def shown(title: str) -> set[str]:
    """What a widget shows, as "Metric dimension" with the last dimension's value."""
    return {f"{names[1]} {names[-1]}" for names, _ in metrics(WIDGETS[title]) if names}


def test_the_dashboard_has_at_most_twelve_widgets_that_do_not_overlap() -> None:
    assert 0 < len(WIDGETS) <= 12
    cells = [
        (x, y)
        for widget in WIDGETS.values()
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24, "a dashboard is 24 units wide"


def test_the_dashboard_shows_every_alarm_that_each_stack_has() -> None:
    arns = WIDGETS["Alarms"]["properties"]["alarms"]
    everywhere = [
        name for name in ALARMS if expanded_template()["Resources"][name].get("Condition") in (None, "HasObservability")
    ]
    assert sorted(arns) == sorted(f"${{{name}.Arn}}" for name in everywhere)


@pytest.mark.parametrize("lane", LANES)
def test_every_lane_is_shown_with_its_rates_depth_ages_and_budget(lane: str) -> None:
    queue = f"${{{lane.capitalize()}Queue.QueueName}}"
    assert {f"NumberOfMessagesSent {queue}", f"NumberOfMessagesDeleted {queue}"} <= shown(
        "In and out (messages per minute)"
    )
    assert {f"ApproximateNumberOfMessagesVisible {queue}", f"DrainPerSecond {lane}"} <= shown(
        "Depth and the high-water mark"
    )
    ages = [options["stat"] for names, options in metrics(WIDGETS["Age at the end of an image (seconds)"])
            if names[1:2] == ["ImageSeconds"] and names[-1] == lane]  # fmt: skip
    assert ages == ["p50", "p95", "p99"]
    assert {f"ImagesEnded {lane}", f"ImagesBad {lane}"} <= shown("Error budget left of 28 days")


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_a_lanes_marks_are_its_service_level_and_its_objective(lane: Any) -> None:
    lines = WIDGETS["Age at the end of an image (seconds)"]["properties"]["annotations"]["horizontal"]
    assert {"label": f"{lane.name} service level", "value": lane.sla_seconds} in lines
    marks = [options.get("expression") for _, options in metrics(WIDGETS["Depth and the high-water mark"])]
    assert f"FILL({lane.name}_drain, REPEAT) * {lane.sla_seconds}" in marks
    left = [options.get("expression") for _, options in metrics(WIDGETS["Error budget left of 28 days"])]
    budget = round(1 - OBJECTIVE, 6)
    assert f"100 * (1 - FILL({lane.name}_bad, 0) / {lane.name}_ended / {budget})" in left


def test_no_lane_is_shown_that_there_is_not() -> None:
    text = json.dumps(WIDGETS)
    queues = set(re.findall(r"\$\{(\w+)Queue\.QueueName\}", text)) - {"Delivery"}
    assert {name.lower() for name in queues} == set(LANES)
    assert {names[-1] for widget in WIDGETS.values() for names, _ in metrics(widget) if "lane" in names} == set(LANES)


def test_our_own_metrics_on_the_dashboard_are_emitted_with_these_dimensions() -> None:
    for title, widget in WIDGETS.items():
        for names, _ in metrics(widget):
            if names and names[0] == OWN:
                # The log groups' filters emit the one, Powertools the other.
                is_ours = names[1] not in ("FunctionErrors", "ColdStart")
                assert f'"{names[1]}"' in CODE or not is_ours, f"{title}: {names[1]}"
                assert names[2::2] in ([], ["service"], ["service", "lane"], ["function_name", "service"]), title


def test_every_expression_uses_what_its_widget_has() -> None:
    for title, widget in WIDGETS.items():
        ids = {options["id"] for _, options in metrics(widget) if "id" in options}
        for _, options in metrics(widget):
            expression = options.get("expression", "")
            if "SEARCH" not in expression:
                words = set(re.findall(r"[a-z][a-z_]*", expression))
                assert words <= ids, f"{title}: {expression}"


def test_every_widget_says_what_its_kind_needs() -> None:
    for title, widget in WIDGETS.items():
        has = widget["properties"].keys()
        needs = {"alarm": {"alarms"}, "log": {"query", "region"}, "metric": {"metrics", "region", "stat", "period"}}
        assert needs[widget["type"]] <= has, title


def test_every_saved_query_reads_the_logs_of_every_function_and_of_the_api() -> None:
    read = {
        name for name in LOG_GROUPS if name.removesuffix("Logs") + "Function" in resources("AWS::Lambda::Function")
    } | {"ApiLogs"}
    assert len(QUERIES) == 6
    for name, query in QUERIES.items():
        assert {group["Ref"] for group in query["LogGroupNames"]} == read, name
        assert len(query["LogGroupNames"]) <= 50, "CloudWatch reads no more at once"


def test_the_names_of_saved_queries_begin_with_their_stack() -> None:
    names = {query["Name"]["Fn::Sub"] for query in QUERIES.values()}
    assert all(name.startswith("${AWS::StackName}/") for name in names) and len(names) == len(QUERIES)
