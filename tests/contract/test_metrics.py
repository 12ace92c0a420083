"""The alarms watch what the functions emit: an alarm on a misspelt name or dimension would never go off."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from darkroom.domain.lanes import LANES
from tests.contract.conftest import TEMPLATE, Aws
from tests.contract.functions import call, load

type Measure = tuple[str, frozenset[tuple[str, str]]]
"""A metric's name and its dimensions."""


def emitted(output: str) -> Iterator[Measure]:
    """The metrics in a function's log, in the embedded metric format."""
    for line in output.splitlines():
        entry = json.loads(line) if line.startswith("{") else {}
        for directive in entry.get("_aws", {}).get("CloudWatchMetrics", ()):
            for names in directive["Dimensions"]:
                for metric in directive["Metrics"]:
                    yield metric["Name"], frozenset((name, entry[name]) for name in names)


def watched() -> set[Measure]:
    """Our own metrics that the template's alarms watch."""
    resources = TEMPLATE["Resources"].values()
    alarms = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::CloudWatch::Alarm"]
    return {
        (alarm["MetricName"], frozenset((item["Name"], item["Value"]) for item in alarm["Dimensions"]))
        for alarm in alarms
        if not str(alarm["Namespace"]).startswith("AWS/")
    }


def test_each_run_of_the_watching_functions_emits_every_watched_metric_even_if_nothing_is_wrong(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only submit_image refuses uploads (tests/contract/test_load_shedding.py).
    of_watchmen = {measure for measure in watched() if measure[0] != "PayingTenantsShed"}
    monkeypatch.setenv("ARCHIVE_BUCKET", "archive")  # without dead letters it is not used
    for name in ("sweep_due_images", "archive_dead_letters"):
        call(load(name, aws, monkeypatch), {})
    assert of_watchmen <= set(emitted(capsys.readouterr().out))
    # For each lane its oldest image; for each queue how many dead letters it has, and how old; and unreadable rows.
    assert len(of_watchmen) == len(LANES) + 2 * len([*LANES, "hold", "upload"]) + 1
