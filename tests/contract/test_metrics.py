"""The alarms watch what the functions emit: an alarm on a misspelt name or dimension would never go off."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from aws_lambda_powertools.metrics.provider.cold_start import reset_cold_start_flag

from benchmarks.calls.__main__ import SWEEP_UNITS
from checks.idle_cost import IDLE_METRICS, SWEEP_QUERIES
from darkroom.aws.kernel import clients
from darkroom.domain.webhooks import endpoint
from darkroom.domain.webhooks.first_attempts import FirstAttempt
from darkroom.operations.webhooks.deliver_event import Delivered
from repository.expand_template import resources
from repository.report import ROOT
from tests.contract.conftest import Aws
from tests.contract.functions import Measure, call, emitted, load
from tests.support.fakes.webhooks import OK


def watched() -> set[Measure]:
    """Our own metrics that the templates' alarms watch."""
    alarms = resources("AWS::CloudWatch::Alarm").values()
    return {
        (alarm["MetricName"], frozenset((item["Name"], item["Value"]) for item in alarm.get("Dimensions", ())))
        for alarm in alarms
        if not str(alarm.get("Namespace", "AWS/")).startswith("AWS/")  # a sum is of metrics of AWS
    }


@pytest.mark.guards("metrics-zero-not-emitted")
def test_an_idle_stack_emits_what_the_bill_says_and_nothing_else(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARCHIVE_BUCKET", "archive")  # without dead letters it is not used
    for name in ("sweep_due_images", "sweep_due_endpoints", "archive_dead_letters"):
        call(load(name, aws, monkeypatch), {})
    every_time = {name for name, _ in emitted(capsys.readouterr().out)} - {"ColdStart"}
    assert every_time == IDLE_METRICS.keys()


def test_each_first_attempt_that_counts_is_a_value_and_repeated_ones_are_counted_if_there_are_any(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function = load("deliver_event", aws, monkeypatch)

    def counted(*sent: Delivered) -> dict[str, list[float]]:
        capsys.readouterr()
        function.count(sent)
        function.metrics.flush_metrics()
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
        return {name: values for line in lines for name, values in line.items() if isinstance(values, list)}

    good, bad = FirstAttempt(seconds=0.4, is_bad=False), FirstAttempt(seconds=90.0, is_bad=True)
    later = Delivered(outcome="delivered", answer=OK, may_repeat=True)
    first = [Delivered(outcome="delivered", answer=OK, first=attempt) for attempt in (good, bad)]
    sent_alone = {"DeliveriesSent": [1.0], "DeliveriesFailed": [0.0]}
    assert counted(replace(later, may_repeat=False)) == sent_alone
    assert counted(later) == {**sent_alone, "DeliveriesRepeated": [1.0]}
    assert counted(first[0]) == {**sent_alone, "FirstAttemptSeconds": [0.4], "FirstAttemptBurn": [-0.006]}
    assert counted(*first) == {
        "DeliveriesSent": [2.0],
        "DeliveriesFailed": [0.0],
        "FirstAttemptSeconds": [0.4, 90.0],
        "FirstAttemptBurn": [-0.006, 0.994],
    }


@pytest.mark.guards("metrics-cold-starts-in-one")
def test_cold_starts_of_all_functions_are_one_metric(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARCHIVE_BUCKET", "archive")
    reset_cold_start_flag()  # type: ignore[no-untyped-call]
    call(load("archive_dead_letters", aws, monkeypatch), {})
    dimensions = [dimensions for name, dimensions in emitted(capsys.readouterr().out) if name == "ColdStart"]
    assert dimensions == [frozenset({("function_name", "all"), ("service", "darkroom")})]


def test_an_idle_sweep_makes_the_calls_that_the_bill_says(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeper = load("sweep_due_images", aws, monkeypatch)
    of_endpoints = load("sweep_due_endpoints", aws, monkeypatch)
    calls: Counter[str] = Counter()
    monkeypatch.setattr(clients, "count_call", lambda operation, seconds: calls.update([operation]))
    call(sweeper, {})
    call(of_endpoints, {})
    assert calls["dynamodb:Query"] == SWEEP_QUERIES + endpoint.DUE_SHARDS
    queues = [*sweeper.measuring.dead_letters.queues, *of_endpoints.dead_letters.queues]
    assert calls["sqs:GetQueueAttributes"] == len(queues) + 1  # and the fetch queue
    assert calls.pop("dynamodb:Scan") == 1  # of the pauses, by the sweeper of images
    assert calls.keys() == SWEEP_UNITS.keys()


def test_every_watched_metric_is_one_that_is_emitted_somewhere() -> None:
    names = {name for name, _ in watched() if name != "FunctionErrors"}  # which the log groups' filters emit
    modules = [*ROOT.glob("functions/*/app.py"), *ROOT.glob("layers/core/darkroom/**/*.py")]
    code = "".join(path.read_text() for path in modules)
    assert {name for name in names if f'"{name}"' not in code} == set()
    assert {dimensions for _, dimensions in watched()} == {frozenset({("service", "darkroom")}), frozenset()}
