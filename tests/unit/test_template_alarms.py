"""The invariants of the template's alarms: failures are noticed, reported to the right people, and explained."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import typer
from samtranslator.yaml_helper import yaml_parse

from checks.write_lane import with_lane
from darkroom.domain.images.service_level import FAST_MINUTES
from darkroom.domain.images.transitions import SWEEP_INTERVAL_SECONDS
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS, LANES, Lane, retries_of
from darkroom.domain.kernel.retry import RETRIES
from darkroom.domain.webhooks.first_attempts import BURN_SECONDS, MOST_OVER
from darkroom.operations.sweeping.sweep_due_images import POSTPONED_SECONDS
from darkroom_cli.doctor.alarms import OF_THE_CORE
from darkroom_cli.doctor.checkout import runbook_sections
from darkroom_cli.main import whole
from darkroom_cli.operator.domain.observation import Alarm
from local_aws.shims import alarm_evaluation
from repository.expand_template import (
    OBSERVABILITY,
    TEMPLATE,
    deployed,
    expanded_template,
    referred,
    resources,
    with_parameters,
)
from repository.report import ROOT

pytestmark = pytest.mark.promise("alarms-and-runbook")

ALARMS = resources("AWS::CloudWatch::Alarm")
COMPOSITES = resources("AWS::CloudWatch::CompositeAlarm")
FUNCTIONS = resources("AWS::Lambda::Function")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()

OWN = {"Fn::Sub": "Darkroom/${AWS::StackName}"}
"""The namespace of our own metrics."""

AWS_METRICS: dict[tuple[str, str], tuple[str, str, Any]] = {
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): ("QueueName", "AWS::SQS::Queue", "QueueName"),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): ("QueueName", "AWS::SQS::Queue", "QueueName"),
    ("AWS/Lambda", "Errors"): ("FunctionName", "AWS::Lambda::Function", None),
    ("AWS/Lambda", "IteratorAge"): ("FunctionName", "AWS::Lambda::Function", None),
    ("AWS/States", "ExecutionsFailed"): ("StateMachineArn", "AWS::StepFunctions::StateMachine", None),
    ("AWS/ApiGateway", "5xx"): ("ApiId", "AWS::ApiGatewayV2::Api", None),
}
"""Each AWS metric with its one dimension, the resource that this names, and the attribute that gives the name."""


def metrics_of(alarm: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The metrics that an alarm adds up, with their statistic and period, by the id of each; or its one metric."""
    if "Metrics" not in alarm:
        return {"": alarm}
    queries = {query["Id"]: query["MetricStat"] for query in alarm["Metrics"] if "MetricStat" in query}
    return {
        name: {**query["Metric"], "Statistic": query["Stat"], "Period": query["Period"]}
        for name, query in queries.items()
    }


MOST_METRICS = 10
OF_ONE_METRIC = {"MetricName", "Namespace", "Statistic", "Period", "Dimensions"}
"""So many metrics may an alarm add up, and then it may have none of these
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html)."""

COMPARISONS = {"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": ">=", "LessThanThreshold": "<"}


def watching(namespace: Any, metric: str, **dimensions: Any) -> dict[str, dict[str, Any]]:
    """The alarms on one metric with exactly these dimensions."""
    return {
        name: alarm
        for name, alarm in ALARMS.items()
        if (alarm.get("Namespace"), alarm.get("MetricName")) == (namespace, metric)
        and {dimension["Name"]: dimension["Value"] for dimension in alarm.get("Dimensions", ())} == dimensions
    }


def sentence(alarm: dict[str, Any]) -> tuple[Any, ...]:
    """An alarm's rule: "the maximum of 60 s, 3 of 3 times, …"."""
    of = alarm["EvaluationPeriods"]
    ((statistic, period),) = {(query["Statistic"], query["Period"]) for query in metrics_of(alarm).values()}
    return (
        statistic,
        period,
        (alarm.get("DatapointsToAlarm", of), of),
        COMPARISONS[alarm["ComparisonOperator"]],
        alarm["Threshold"],
        alarm["TreatMissingData"],
    )


def conditions(alarms: dict[str, dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Each alarm's rule, by its name."""
    return {name: sentence(alarm) for name, alarm in alarms.items()}


def own(metric: str) -> dict[str, tuple[Any, ...]]:
    """The rules of the alarms on one of our own metrics."""
    return conditions(watching(OWN, metric, service="darkroom"))


def summed(name: str, metric: str) -> set[str]:
    """The queues of which an alarm adds up a metric of SQS."""
    alarm = ALARMS[name]
    (total,) = [query for query in alarm["Metrics"] if "MetricStat" not in query]
    assert total["ReturnData"] is True and all(query["ReturnData"] is (query is total) for query in alarm["Metrics"])
    metrics = metrics_of(alarm)
    # CloudWatch takes a missing value of a sum for 0. It advises against SUM, MAX and, where data come late, FILL.
    assert total["Expression"] == " + ".join(metrics)
    assert {(each["Namespace"], each["MetricName"]) for each in metrics.values()} == {("AWS/SQS", metric)}
    return {str(referred(each["Dimensions"][0]["Value"])) for each in metrics.values()}


COUNTED = (
    ("SweepDueImagesFunction", "DEAD_LETTER_QUEUES"),
    ("SweepDueEndpointsFunction", "EVENT_DEAD_LETTER_QUEUES"),
)
"""The variables that name the queues whose dead letters the sweepers count."""


@pytest.mark.guards("alarms-dead-letters-every-queue")
def test_cloudwatch_itself_watches_how_many_dead_letters_are_in_every_queue() -> None:
    # Not by the sweeper's count: if that is wrong, these still ring.
    watched = [
        summed(name, "ApproximateNumberOfMessagesVisible") for name in ("DeadLettersAlarm", "EventDeadLettersAlarm")
    ]
    for queues, (name, variable) in zip(watched, COUNTED, strict=True):
        variables = FUNCTIONS[name]["Environment"]["Variables"]
        assert queues == set(re.findall(r"\$\{(\w+)\}", variables[variable]["Fn::Sub"]))
    rule = ("Maximum", 60, (1, 3), ">=", 1, "notBreaching")
    assert {sentence(ALARMS[name]) for name in ("DeadLettersAlarm", "EventDeadLettersAlarm")} == {rule}


def test_the_dead_letters_of_a_lane_that_is_added_are_watched_too() -> None:
    model = list(LANES.values())[-1]
    added = with_lane(OBSERVABILITY.read_text(), replace(model, name="urgent"), model)
    watched = added.partition("\n  DeadLettersAlarm:\n")[2].partition("\n  EventDeadLettersAlarm:\n")[0]
    (before,) = re.findall(r"Expression: (fast \+ .*) \+ hold \+ upload \+ fetch}", OBSERVABILITY.read_text())
    after = f"{before} ".replace(f" + {model.name} ", f" + {model.name} + urgent ")
    assert f"Expression: {after}+ hold + upload + fetch}}" in watched and "urgent" in after
    assert "{Id: urgent, " in watched and "!Ref UrgentDeadLetters" in watched
    given = with_lane(TEMPLATE.read_text(), replace(model, name="urgent"), model)
    assert "UrgentDeadLetters: !GetAtt UrgentDeadLetters.QueueName\n" in given
    body = yaml_parse(added)["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    assert "urgent high-water mark" in str(json.loads(body))


def test_dead_letters_are_noticed_before_they_expire() -> None:
    retention_seconds = {
        resource["MessageRetentionPeriod"]
        for name, resource in resources("AWS::SQS::Queue").items()
        if name.endswith("DeadLetters")
    }
    limit = min(retention_seconds) - 2 * 86_400
    expiring = {"DeadLettersExpiringAlarm": ("Maximum", 21_600, (1, 1), ">=", limit, "ignore")}
    assert own("OldestDeadLetterSeconds") == expiring


def test_the_sweepers_count_the_dead_letters_of_every_queue() -> None:
    counted = {
        queue
        for name, variable in COUNTED
        for queue in re.findall(r"\$\{(\w+)\}", FUNCTIONS[name]["Environment"]["Variables"][variable]["Fn::Sub"])
    }
    queues = resources("AWS::SQS::Queue")
    assert counted == {name for name in queues if name.endswith("DeadLetters")} | {"UnpublishedEvents"}


OF_OUR_OWN: dict[str, tuple[str, str, int, tuple[int, int], Any]] = {
    # So that a bug that gives up an image every few minutes is one incident.
    "ImagesGivenUp": ("ImagesGivenUpAlarm", "Sum", 60, (1, 15), 1),
    # Workers write failures at once, and a sweep reads them within a minute.
    "AttemptsFailing": ("AttemptsFailingAlarm", "Maximum", 60, (1, 5), 20),
    "LateRatio": ("ImagesLateAlarm", "Maximum", 60, (3, 3), 1),
    "StuckRatio": ("ImagesStuckAlarm", "Maximum", 60, (3, 5), 1),
    "FetchesUntaken": ("FetchMessagesStuckAlarm", "Maximum", 60, (15, 15), 1),
    "PayingTenantsShed": ("PayingTenantsShedAlarm", "Sum", 60, (1, 15), 1),
    "FreeTenantsShed": ("FreeTenantsShedAlarm", "Sum", 60, (1, 5), 1),
    "PausedSeconds": ("PausedAlarm", "Maximum", 60, (1, 3), 3600),
    "ConfirmedDifferences": ("DifferencesAlarm", "Maximum", 60, (1, 3), 1),
    "FirstAttemptBurn": ("DeliveriesLateAlarm", "Sum", BURN_SECONDS, (1, 1), MOST_OVER),
    "BytesAccepted": ("UnusualDayAlarm", "Sum", 86_400, (1, 1), {"Ref": "UnusualDailyBytes"}),
}
"""The alarm on each of our own metrics that rings from a limit on: statistic, period, how many, and the limit."""


@pytest.mark.parametrize("metric", OF_OUR_OWN)
def test_a_metric_of_our_own_rings_by_its_rule(metric: str) -> None:
    name, *rule, limit = OF_OUR_OWN[metric]
    assert own(metric) == {name: (*rule, ">=", limit, "notBreaching")}


def test_what_burns_the_error_budget_at_once_lasts_long_enough_to_page() -> None:
    assert min(FAST_MINUTES) >= 3, "or what burns the budget at once would not page"


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_the_retries_of_one_failing_image_are_no_reason_to_wake_anybody(lane: Lane) -> None:
    assert lane.stuck_seconds == max(3 * lane.sla_seconds, retries_of(lane.name).least_seconds)
    assert replace(lane, retries="sidekiq").stuck_seconds == RETRIES["sidekiq"].least_seconds


def silent(function: str) -> dict[str, tuple[Any, ...]]:
    """The rules of the alarms on Lambda's count of a function's errors, over all its versions."""
    return conditions(watching("AWS/Lambda", "Errors", FunctionName={"Ref": function}))


@pytest.mark.guards("alarms-sweeper-silence-breaches")
def test_a_silent_sweeper_pages_and_one_of_endpoints_warns() -> None:
    rules = silent("SweepDueImagesFunction") | silent("SweepDueEndpointsFunction")
    assert rules == {
        "SweeperSilentAlarm": ("Minimum", 60, (3, 3), ">=", 1, "breaching"),
        "EndpointSweeperSilentAlarm": ("Minimum", 60, (5, 5), ">=", 1, "breaching"),
    }


@pytest.mark.guards("alarms-sweeper-silence-breaches", case="the schedule is disabled")
@pytest.mark.parametrize(
    ("minutes", "state"),
    [
        pytest.param(". . . . .", "OK", id="every sweep ends well"),
        pytest.param(". . x x x", "ALARM", id="every sweep fails, times out or cannot start"),
        pytest.param(". . . x x", "OK", id="two sweeps fail"),
        pytest.param("x . x . x", "OK", id="every second sweep fails"),
        pytest.param("x x x x .", "OK", id="a sweep ends well again"),
        pytest.param("x x x x. x", "OK", id="one of two sweeps of a minute ends well"),
        pytest.param(". . . - -", "OK", id="data are two minutes late"),
        pytest.param("x x x - -", "ALARM", id="data are two minutes late while sweeps fail"),
        pytest.param(". . - - -", "OK", id="the schedule has just been disabled"),
        pytest.param("- - - - -", "ALARM", id="the schedule is disabled"),
        pytest.param("- - - - -", "ALARM", id="every sweep is throttled, which Lambda counts as no error"),
        pytest.param(". - . - .", "OK", id="every second sweep is throttled"),
        pytest.param("- - - x x", "ALARM", id="throttled sweeps, then failing ones"),
        pytest.param("- - - - .", "OK", id="the first sweep after the deployment"),
    ],
)
def test_the_sweeper_is_silent_if_no_sweep_of_three_minutes_ends_without_an_error(minutes: str, state: str) -> None:
    # A dot is an invocation of which Lambda publishes a 0, an x one of which it publishes a 1, the oldest minute first.
    alarm = ALARMS["SweeperSilentAlarm"]
    least = {"Minimum": min}[alarm["Statistic"]]
    values = [
        None if minute == "-" else float(least(outcome == "x" for outcome in minute)) for minute in minutes.split()
    ]
    rule = alarm_evaluation.Rule(
        statistic=alarm["Statistic"],
        period_seconds=alarm["Period"],
        evaluation_periods=alarm["EvaluationPeriods"],
        datapoints_to_alarm=alarm.get("DatapointsToAlarm"),
        comparison=alarm["ComparisonOperator"],
        threshold=alarm["Threshold"],
        missing_data=alarm.get("TreatMissingData", "missing"),
    )
    newest_first = [None, *reversed(values)]  # the minute that has begun has no data yet
    verdict = alarm_evaluation.evaluate(
        rule, [alarm_evaluation.Datapoint(begins_at=-60 * ago, value=value) for ago, value in enumerate(newest_first)]
    )
    assert verdict and verdict.state == state


def test_what_is_to_be_held_and_what_was_uploaded_may_not_wait_for_long() -> None:
    assert summed("MessagesStuckAlarm", "ApproximateAgeOfOldestMessage") == {"HoldQueue", "UploadQueue"}
    rule = ("Maximum", 60, (5, 5), ">=", LANE_DELAY_SECONDS, "notBreaching")
    assert sentence(ALARMS["MessagesStuckAlarm"]) == rule


def test_edits_may_wait_for_longer_than_the_retries_of_one_that_fails() -> None:
    waiting = watching(
        "AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName={"Fn::GetAtt": ["EditsQueue", "QueueName"]}
    )
    assert conditions(waiting) == {"EditsWaitAlarm": ("Maximum", 60, (5, 5), ">=", 900, "notBreaching")}
    for lane in LANES:
        retries = retries_of(lane)
        assert sum(retries.delay_seconds(attempt, 0.99) for attempt in range(1, retries.attempts)) < 900


def test_unpublished_events_unreleased_batches_and_refused_requests_ring_by_their_rules() -> None:
    late = watching("AWS/Lambda", "IteratorAge", FunctionName={"Ref": "PublishEventsFunction"})
    assert conditions(late) == {"EventsStuckAlarm": ("Maximum", 60, (3, 3), ">", 900_000, "notBreaching")}
    failed = watching("AWS/States", "ExecutionsFailed", StateMachineArn={"Ref": "HoldBatchStateMachine"})
    assert conditions(failed) == {"ReleasesFailingAlarm": ("Sum", 300, (1, 1), ">=", 1, "notBreaching")}
    assert conditions(watching("AWS/ApiGateway", "5xx", ApiId={"Ref": "Api"})) == {
        "ApiErrorsAlarm": ("Sum", 300, (1, 1), ">=", 3, "notBreaching"),
        "ApiFailingAlarm": ("Sum", 60, (5, 5), ">=", 1, "notBreaching"),
    }


def test_rows_that_cannot_be_read_page_for_as_long_as_sweeps_meet_them() -> None:
    (alarm,) = watching(OWN, "RowsUnreadable", service="darkroom").values()
    assert sentence(alarm) == ("Maximum", 60, (1, 15), ">=", 1, "notBreaching")
    between_looks_seconds = POSTPONED_SECONDS + SWEEP_INTERVAL_SECONDS
    assert alarm["Period"] * alarm["EvaluationPeriods"] > between_looks_seconds, "or it would say OK in between"


def test_every_function_tells_lambdas_own_count_of_what_did_not_finish() -> None:
    filters = resources("AWS::Logs::MetricFilter")
    for function in FUNCTIONS.values():
        logging = function["LoggingConfig"]
        assert logging["LogFormat"] == "JSON", "or Lambda's lines would be text, which no filter reads"
        (metric_filter,) = [each for each in filters.values() if each["LogGroupName"] == logging["LogGroup"]]
        raised, reported = '$.level = "ERROR" && $.errorType = "*"', '$.type = "platform.report"'
        ended = " || ".join(f'$.record.status = "{status}"' for status in ("error", "timeout", "failure"))
        assert metric_filter["FilterPattern"] == f"{{ ({raised}) || ({reported} && ({ended})) }}"
        (transformation,) = metric_filter["MetricTransformations"]
        assert transformation == {"MetricNamespace": OWN, "MetricName": "FunctionErrors", "MetricValue": "1"}
    assert len(filters) == len(FUNCTIONS)
    assert conditions(watching(OWN, "FunctionErrors")) == {
        "FunctionErrorsAlarm": ("Sum", 60, (1, 5), ">=", 1, "notBreaching")
    }


def told_to(topic: str) -> list[Any]:
    """That topic, and the deployer's own if there is one."""
    return [{"Ref": topic}, {"Fn::If": ["HasAlarmTopic", {"Ref": "AlarmTopic"}, {"Ref": "AWS::NoValue"}]}]


def test_one_incident_pages_once_and_its_end_is_told_and_every_other_alarm_warns() -> None:
    ((name, incident),) = COMPOSITES.items()
    assert name == "IncidentAlarm"
    assert (incident["AlarmActions"], incident["OKActions"]) == (told_to("CriticalAlarms"),) * 2
    rule = "".join(text["Fn::Sub"] for text in incident["AlarmRule"]["Fn::Join"][1]).strip()
    children = re.findall(r'ALARM\("\$\{(\w+)(?:\.Arn)?\}"\)', rule)
    assert rule.replace(".Arn", "").split() == " OR ".join(f'ALARM("${{{child}}}")' for child in children).split()
    silent = {name for name, alarm in ALARMS.items() if "AlarmActions" not in alarm and "OKActions" not in alarm}
    assert set(children) == silent and len(children) == len(silent), "each alarm warns or belongs to the incident"
    for name, alarm in ALARMS.items():
        if "AlarmActions" in alarm or "OKActions" in alarm:
            assert (alarm["AlarmActions"], alarm["OKActions"]) == (told_to("WarningAlarms"),) * 2, name
    # One that stayed on would hide the next incident: what lies somewhere until it is dealt with only warns.
    watched = {metric["MetricName"] for child in children for metric in metrics_of(ALARMS[child]).values()}
    assert not watched & {"ApproximateNumberOfMessagesVisible", "OldestDeadLetterSeconds"}


def test_a_stack_that_nothing_observes_has_five_alarms_that_page_by_themselves() -> None:
    template = expanded_template()["Resources"]
    alone = {
        name: with_parameters(resource["Properties"], Observability="false")
        for name, resource in template.items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
        and not resource.get("Condition", "").startswith("HasObservability")
    }
    assert alone.keys() == OF_THE_CORE and len(alone) == 5
    assert COMPOSITES.keys() == {
        name
        for name, resource in template.items()
        if resource["Type"] == "AWS::CloudWatch::CompositeAlarm" and "Condition" in resource
    }
    paging = with_parameters(told_to("CriticalAlarms"), AlarmTopic="")
    for name, alarm in alone.items():
        assert (alarm["AlarmActions"], alarm["OKActions"]) == (paging, paging), name
        assert name in str(COMPOSITES["IncidentAlarm"]["AlarmRule"]), "with observability the incident pages for it"


@pytest.mark.parametrize("topic", ["WarningAlarms", "CriticalAlarms"])
def test_every_topic_reaches_the_address_that_the_deployer_gave(topic: str) -> None:
    reached = {
        (subscription["Protocol"], subscription["Endpoint"]["Ref"])
        for subscription in resources("AWS::SNS::Subscription").values()
        if subscription["TopicArn"] == {"Ref": topic}
    }
    # A pager that wakes somebody hears of incidents alone.
    pager = {("https", "PagerEndpoint")} if topic == "CriticalAlarms" else set()
    assert reached == {("email", "AlarmEmail"), *pager}


def test_no_alarm_watches_a_metric_of_aws_that_does_not_exist() -> None:
    for name, metric in ((name, metric) for name, alarm in ALARMS.items() for metric in metrics_of(alarm).values()):
        if metric["Namespace"] != OWN:
            dimension, kind, attribute = AWS_METRICS[metric["Namespace"], metric["MetricName"]]
            (given,) = metric["Dimensions"]
            resource = referred(given["Value"])
            reference = {"Ref": resource} if attribute is None else {"Fn::GetAtt": [resource, attribute]}
            assert given == {"Name": dimension, "Value": reference} and resource in resources(kind), name


def test_our_own_metrics_are_looked_for_where_the_functions_put_them() -> None:
    # tests/contract/test_metrics.py compares their names and dimensions with what is emitted.
    for function in FUNCTIONS.values():
        assert function["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == OWN
        assert function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == "darkroom"


def test_every_alarm_is_one_that_cloudwatch_takes_and_every_stack_can_have() -> None:
    for name, alarm in ALARMS.items():
        ((_, period),) = {(metric["Statistic"], metric["Period"]) for metric in metrics_of(alarm).values()}
        assert period % 60 == 0 and period * alarm["EvaluationPeriods"] <= 86_400, name
        assert len(metrics_of(alarm)) <= MOST_METRICS, name
        assert "Metrics" not in alarm or not OF_ONE_METRIC & alarm.keys(), name
        assert "AlarmName" not in alarm, f"{name}: two stacks in one account could not both have it"
    usual = [resource["Type"] for resource in deployed(Environment="prod", Access="keys").values()]
    assert usual.count("AWS::CloudWatch::Alarm") + usual.count("AWS::CloudWatch::CompositeAlarm") <= 25


def test_every_alarm_names_its_effect_the_first_command_and_the_runbooks_section_which_names_no_other() -> None:
    root = typer.main.get_command(whole())
    for name, alarm in {**ALARMS, **COMPOSITES}.items():
        text = written_out(alarm["AlarmDescription"])
        match = re.fullmatch(r"(.+)\. First: \./darkroom (.+) --stack STACK\. See docs/runbook\.md#([a-z-]+)\.", text)
        assert match, f"{name}: whoever is paged reads the description first"
        assert f"`{name}`" in runbook_sections()[match[3]], name
        assert len(text) <= 1024, "CloudWatch takes no more"
        parsed = Alarm(name=name, description=text, reason="", since=0, is_critical=True)
        shown = f"{parsed.effect} First: {parsed.command} --stack STACK. See {parsed.section}."
        assert shown == text, "darkroom top shows the parts of it"
        words = iter(match[2].split())
        known: Any = root
        while hasattr(known, "commands"):
            known = known.commands[next(words)]
        options = {option for parameter in known.params for option in parameter.opts}
        assert {"--stack", *(word for word in words if word.startswith("--"))} <= options, match[2]
    assert set(re.findall(r"\b[A-Z]\w+Alarm\b", RUNBOOK)) == {*ALARMS, *COMPOSITES, "EdgeStaleAlarm"}  # of delivery's


def written_out(text: Any) -> str:
    """A description as CloudFormation makes it, for the stack STACK."""
    template, values = text["Fn::Sub"] if isinstance(text["Fn::Sub"], list) else (text["Fn::Sub"], {})
    for name, value in {**values, "AWS::StackName": "STACK"}.items():
        template = template.replace(f"${{{name}}}", value)
    return str(template)
