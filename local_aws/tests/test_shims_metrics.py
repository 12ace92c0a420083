"""The emulator does what CloudWatch does: metrics without PutMetricData, and alarms without SetAlarmState."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local_aws.shims.alarm_evaluation import Datapoint, Rule, Verdict, evaluate, periods
from local_aws.shims.embedded_metrics import embedded_metrics
from local_aws.shims.queue_metrics import oldest_age_seconds
from local_aws.tests.alarms import alarm, await_state, described, next_notification, topic_with_queue
from local_aws.tests.emulator_server import (
    EmulatorServer,
    create_function,
    invoke,
    physical_ids,
    reasons_for_failed_stack,
    stack,
    wait_until,
)
from local_aws.tests.http_apis import echo_api
from local_aws.tests.metrics import statistic
from local_aws.tests.queues import Queue, dead_letter, queue, queue_with_dead_letters

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

DEPTH = "ApproximateNumberOfMessagesVisible"


def dimension_sets(server: EmulatorServer, namespace: str, metric: str) -> list[dict[str, str]]:
    """Return the sets of dimensions with which a metric was emitted."""
    listed = server.client("cloudwatch").list_metrics(Namespace=namespace, MetricName=metric)["Metrics"]
    return [{each["Name"]: each["Value"] for each in metric["Dimensions"]} for metric in listed]


# queue_metrics


def of(some: Queue, metric: str, name: str = "Maximum") -> list[float]:
    return statistic(some.server, "AWS/SQS", metric, {"QueueName": some.name}, name)


def test_gap_stock_measures_no_queue(stock: EmulatorServer) -> None:
    queue(stock).send("unseen")
    assert stock.client("cloudwatch").list_metrics(Namespace="AWS/SQS")["Metrics"] == []


def test_a_queue_is_measured_by_itself_in_one_datum_a_minute(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    for number in range(4):
        some.send(str(number))
    taken = some.receive(limit=2, VisibilityTimeout=600)
    some.delete(taken[0]["ReceiptHandle"])
    hidden = "ApproximateNumberOfMessagesNotVisible"
    # It may have been measured between the receive and the deletion, and is measured again.
    wait_until(
        lambda: (of(some, DEPTH)[-1:], of(some, hidden)[-1:]) == ([2], [1]), "what is visible and hidden is seen"
    )
    wait_until(lambda: of(some, "ApproximateAgeOfOldestMessage")[-1] >= 1, "the oldest message has an age")
    sums = {name: sum(of(some, f"NumberOfMessages{name}", "Sum")) for name in ("Sent", "Received", "Deleted")}
    assert sums == {"Sent": 4, "Received": 2, "Deleted": 1}
    assert set(of(some, DEPTH, "SampleCount")) == {1}


def test_an_age_counts_neither_often_received_messages_nor_a_dead_letters_time_before_its_move() -> None:
    def message(sent_at: float, receives: int = 0, **further: float) -> dict[str, Any]:
        return {"sent_at": sent_at, "receive_count": receives, **further}

    assert oldest_age_seconds([], now=100) == 0
    assert oldest_age_seconds([message(40), message(10, receives=2)], now=100) == 90
    assert oldest_age_seconds([message(40), message(10, receives=3)], now=100) == 60
    assert oldest_age_seconds([message(40), message(10, receives=3)], now=100, is_fifo=True) == 90
    assert oldest_age_seconds([message(10, receives=5, receives_before_move=5, moved_at=70)], now=100) == 30


def test_a_dead_letters_age_begins_with_its_move(emulator: EmulatorServer) -> None:
    source, dead_letters = queue_with_dead_letters(emulator)
    source.send("old")
    wait_until(lambda: (of(source, "ApproximateAgeOfOldestMessage") or [0])[-1] >= 3, "the message is old")
    source.receive(VisibilityTimeout=0)
    moved_after = time.time()
    source.receive()
    wait_until(lambda: (of(dead_letters, DEPTH) or [0])[-1] == 1, "the dead letter is seen")
    assert of(dead_letters, "ApproximateAgeOfOldestMessage")[-1] <= time.time() - moved_after


# alarm_evaluation: the result for given datapoints

VALUES = {"X": 2.0, "0": 0.0, "-": None}  # AWS's symbols for a breaching datapoint, a non-breaching one, and none


def rule(**changes: Any) -> Rule:
    settings = {
        "statistic": "Maximum",
        "period_seconds": 60,
        "evaluation_periods": 1,
        "datapoints_to_alarm": None,
        "comparison": "GreaterThanThreshold",
        "threshold": 1.0,
        "missing_data": "missing",
    }
    return Rule(**{**settings, **changes})


def verdict(alarm: Rule, signs: str) -> Verdict | None:
    """Evaluate these periods, oldest first, the last one unfinished."""
    points = [Datapoint(begins_at=60.0 * number, value=VALUES[sign]) for number, sign in enumerate(signs)]
    return evaluate(alarm, points[::-1])


def state(alarm: Rule, signs: str) -> str:
    decided = verdict(alarm, signs)
    return decided.state if decided else "kept"


@pytest.mark.parametrize(
    ("needed", "signs", "outcomes"),
    [
        # The tables of https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html:
        # with missing data as missing, ignore, breaching and notBreaching
        (3, "0-X-X", ("OK", "OK", "OK", "OK")),
        (3, "0----", ("OK", "OK", "OK", "OK")),
        (3, "-----", ("INSUFFICIENT_DATA", "kept", "ALARM", "OK")),
        (3, "0XX-X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (3, "----X", ("INSUFFICIENT_DATA", "kept", "ALARM", "OK")),
        (3, "X----", ("ALARM", "kept", "ALARM", "OK")),
        (2, "0-X-X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "00X0X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0-X--", ("OK", "OK", "ALARM", "OK")),
        (2, "----0", ("OK", "OK", "ALARM", "OK")),
        (2, "----X", ("INSUFFICIENT_DATA", "kept", "ALARM", "OK")),
    ],
)
def test_missing_data_are_treated_as_aws_documents_it(needed: int, signs: str, outcomes: tuple[str, ...]) -> None:
    treatments = ("missing", "ignore", "breaching", "notBreaching")
    alarms = [rule(evaluation_periods=3, datapoints_to_alarm=needed, missing_data=each) for each in treatments]
    assert tuple(state(alarm, f"{signs}-") for alarm in alarms) == outcomes


@pytest.mark.parametrize(
    ("comparison", "below", "equal", "above"),
    [
        ("GreaterThanThreshold", "OK", "OK", "ALARM"),
        ("GreaterThanOrEqualToThreshold", "OK", "ALARM", "ALARM"),
        ("LessThanThreshold", "ALARM", "OK", "OK"),
        ("LessThanOrEqualToThreshold", "ALARM", "ALARM", "OK"),
    ],
)
def test_every_comparison_is_strict_or_not_as_its_name_says(
    comparison: str, below: str, equal: str, above: str
) -> None:
    alarm = rule(comparison=comparison)
    points = [Datapoint(begins_at=0, value=value) for value in (0.5, 1.0, 1.5)]
    verdicts = [evaluate(alarm, [point, Datapoint(begins_at=-60, value=None)]) for point in points]
    assert [decided.state for decided in verdicts if decided] == [below, equal, above]


def test_an_unfinished_period_counts_unless_it_is_a_count_that_could_still_grow() -> None:
    assert state(rule(), "X0") == "OK"
    assert state(rule(), "0X") == "ALARM"
    assert state(rule(statistic="Sum"), "0X") == "ALARM"
    assert state(rule(statistic="Sum"), "X0") == "ALARM"
    assert state(rule(statistic="Sum"), "X00") == "OK"
    assert state(rule(statistic="Sum", comparison="LessThanThreshold"), "X0") == "OK"


def test_a_change_of_state_ends_a_period_of_a_level_but_not_of_a_count_or_of_several_periods() -> None:
    cut, uncut = [(190, 200), (180, 190), (120, 180)], [(180, 200), (120, 180), (60, 120)]
    assert periods(rule(), now=200, changes=[190])[:3] == cut
    assert periods(rule(statistic="Sum"), now=200, changes=[190])[:3] == uncut
    assert periods(rule(evaluation_periods=2), now=200, changes=[190])[:3] == uncut


@pytest.mark.parametrize(
    ("changes", "signs", "reason"),
    [
        ({}, "0X", "1 datapoint [2.0 (01/01/70 00:01:00)] was greater than the threshold (1.0)."),
        (
            {"evaluation_periods": 3, "datapoints_to_alarm": 2},
            "00X",
            "2 out of the last 3 datapoints [0.0 (01/01/70 00:01:00), 0.0 (01/01/70 00:00:00)] were not greater than "
            "the threshold (1.0) (minimum 2 datapoints for ALARM -> OK transition).",
        ),
        (
            {"evaluation_periods": 2, "missing_data": "breaching"},
            "X----",
            "1 datapoint [2.0 (01/01/70 00:00:00)] was greater than the threshold (1.0) "
            "and 1 missing datapoint was treated as [Breaching].",
        ),
    ],
)
def test_a_reason_is_worded_as_cloudwatch_words_it(changes: dict[str, Any], signs: str, reason: str) -> None:
    decided = verdict(rule(**changes), signs)
    assert decided
    assert decided.reason == f"Threshold Crossed: {reason}"


# alarm_evaluation: alarms of the emulator


def on_depth(some: Queue) -> dict[str, Any]:
    dimensions = [{"Name": "QueueName", "Value": some.name}]
    return {"Namespace": "AWS/SQS", "MetricName": DEPTH, "Dimensions": dimensions}


def on_errors(function_name: str) -> dict[str, Any]:
    dimensions = [{"Name": "FunctionName", "Value": function_name}]
    return {"Namespace": "AWS/Lambda", "MetricName": "Errors", "Dimensions": dimensions, "Statistic": "Sum"}


FAIL_OR_NOT = "def handler(event, context):\n    return 1 / 0 if event.get('fail') else 'good'"


def test_gap_stock_gives_an_alarm_the_data_of_other_dimensions(stock: EmulatorServer) -> None:
    create_function(stock, "failing", FAIL_OR_NOT)
    invoke(stock, "failing", {"fail": True})
    assert described(stock, alarm(stock, **on_errors("another")))["StateValue"] == "ALARM"


def test_an_alarm_on_dead_letters_fires_tells_its_topic_and_clears_when_they_are_moved_back(
    emulator: EmulatorServer,
) -> None:
    cloudwatch, sqs = emulator.client("cloudwatch"), emulator.client("sqs")
    source, dead_letters = queue_with_dead_letters(emulator)
    topic, subscriber = topic_with_queue(emulator)
    name = alarm(
        emulator, **on_depth(dead_letters), AlarmActions=[topic], OKActions=[topic], AlarmDescription="Read the runbook"
    )
    assert next_notification(subscriber)[1]["OldStateValue"] == "INSUFFICIENT_DATA"

    dead_letter(source)
    fired = await_state(emulator, name, "ALARM")
    assert fired["StateReason"].startswith("Threshold Crossed: 1 datapoint [1.0 (")
    assert fired["StateReason"].endswith(")] was greater than the threshold (0.0).")
    reason_data = json.loads(fired["StateReasonData"])
    assert (reason_data["recentDatapoints"], reason_data["statistic"], reason_data["period"]) == ([1.0], "Maximum", 60)
    subject, notification = next_notification(subscriber)
    assert subject == f'ALARM: "{name}" in US East (N. Virginia)'
    assert datetime.strptime(notification["StateChangeTime"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert (notification["AlarmName"], notification["AlarmDescription"]) == (name, "Read the runbook")
    assert (notification["OldStateValue"], notification["NewStateValue"]) == ("OK", "ALARM")
    assert (notification["NewStateReason"], notification["AlarmArn"]) == (fired["StateReason"], fired["AlarmArn"])
    assert (notification["AlarmActions"], notification["OKActions"]) == ([topic], [topic])
    trigger = notification["Trigger"]
    assert (trigger["Namespace"], trigger["MetricName"]) == ("AWS/SQS", DEPTH)
    assert trigger["Dimensions"] == [{"value": dead_letters.name, "name": "QueueName"}]

    sqs.start_message_move_task(SourceArn=dead_letters.arn)
    await_state(emulator, name, "OK")
    subject, notification = next_notification(subscriber)
    assert subject == f'OK: "{name}" in US East (N. Virginia)'
    assert (notification["OldStateValue"], notification["NewStateValue"]) == ("ALARM", "OK")
    history = cloudwatch.describe_alarm_history(AlarmName=name, ScanBy="TimestampAscending")["AlarmHistoryItems"]
    summaries = [item["HistorySummary"] for item in history if item["HistoryItemType"] in ("StateUpdate", "Action")]
    assert summaries[-4:] == [
        "Alarm updated from OK to ALARM",
        f"Successfully executed action {topic}",
        "Alarm updated from ALARM to OK",
        f"Successfully executed action {topic}",
    ]


def test_an_alarm_hears_of_its_own_queue_only_and_keeps_quiet_where_its_actions_are_disabled(
    emulator: EmulatorServer,
) -> None:
    full, empty = queue(emulator), queue(emulator)
    topic, subscriber = topic_with_queue(emulator)
    of_full = alarm(emulator, **on_depth(full), AlarmActions=[topic], ActionsEnabled=False)
    of_empty = alarm(emulator, **on_depth(empty))
    full.send("one")
    await_state(emulator, of_full, "ALARM")
    assert await_state(emulator, of_empty, "OK")
    assert subscriber.counts() == (0, 0)


# metric_math


def on_sum(*queues: Queue, expression: str = "q0 + q1") -> dict[str, Any]:
    """Settings of an alarm on messages of several queues."""
    metrics = [
        {
            "Id": f"q{number}",
            "MetricStat": {"Metric": on_depth(watched), "Period": 60, "Stat": "Maximum"},
            "ReturnData": False,
        }
        for number, watched in enumerate(queues)
    ]
    return {
        "Metrics": [*metrics, {"Id": "all", "Expression": expression, "ReturnData": True}],
        "EvaluationPeriods": 3,
        "DatapointsToAlarm": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
    }


def alarm_of_stack(**properties: Any) -> dict[str, Any]:
    return {"Watched": {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}}


def test_gap_stock_refuses_an_alarm_on_a_calculation_in_a_stack(stock: EmulatorServer) -> None:
    reasons = reasons_for_failed_stack(stock, alarm_of_stack(**on_sum(queue(stock), queue(stock))))
    assert "metric math" in reasons


def test_an_alarm_of_a_stack_watches_the_sum_of_two_queues_of_which_one_is_not_measured(
    emulator: EmulatorServer,
) -> None:
    topic, subscriber = topic_with_queue(emulator)
    some = queue(emulator)
    gone = replace(some, name="never-made")
    settings = on_sum(gone, some)
    with stack(emulator, alarm_of_stack(**settings, AlarmActions=[topic])) as name:
        watched = physical_ids(emulator, name)["Watched"]
        await_state(emulator, watched, "OK")
        some.send("one")
        fired = await_state(emulator, watched, "ALARM")
        assert "1 out of the last 3 datapoints [1.0 (" in fired["StateReason"]
        assert fired["Metrics"] == settings["Metrics"]
        assert not {"MetricName", "Namespace", "Statistic", "Period"} & fired.keys(), "as CloudWatch describes it"
        trigger = next_notification(subscriber)[1]["Trigger"]
        assert (trigger["Metrics"], trigger["Period"]) == (settings["Metrics"], 60)


def test_an_alarm_on_a_calculation_that_is_put_itself_stays_one_when_it_is_put_again(emulator: EmulatorServer) -> None:
    cloudwatch, some = emulator.client("cloudwatch"), queue(emulator)
    settings = {"AlarmName": f"sum-{uuid4().hex[:8]}", **on_sum(some, queue(emulator), expression="(q0 + q1) / 2")}
    for threshold in (9, 1):
        cloudwatch.put_metric_alarm(**settings | {"Threshold": threshold})
    await_state(emulator, settings["AlarmName"], "OK")
    some.send("one")
    some.send("two")
    await_state(emulator, settings["AlarmName"], "ALARM")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Metrics": []}, "are required"),
        ({"expression": "MAX(METRICS())"}, r"cannot calculate MAX\(METRICS\(\)\)"),
        ({"expression": "q0 + q7"}, "cannot calculate q7"),
        ({"expression": "q0 +"}, "invalid syntax"),
        ({"count": 11}, "10 metrics at most"),
    ],
)
def test_a_calculation_that_cloudwatch_or_the_embedded_aws_does_not_take_fails_the_stack_with_the_reason(
    emulator: EmulatorServer, changes: dict[str, Any], reason: str
) -> None:
    some = queue(emulator)
    metrics = {"Metrics": changes["Metrics"]} if "Metrics" in changes else {}
    settings = on_sum(*[some] * changes.get("count", 2), expression=changes.get("expression", "q0")) | metrics
    assert re.search(reason, reasons_for_failed_stack(emulator, alarm_of_stack(**settings)))


def test_an_alarm_on_errors_fires_whoever_invokes_the_function(emulator: EmulatorServer) -> None:
    source = queue(emulator, VisibilityTimeout="30")
    name = f"failing-{uuid4().hex[:8]}"
    create_function(emulator, name, "def handler(event, context):\n    return 1 / 0")
    errors = alarm(emulator, **on_errors(name))
    emulator.client("lambda").create_event_source_mapping(EventSourceArn=source.arn, FunctionName=name)
    source.send("poison")
    fired = await_state(emulator, errors, "ALARM")
    assert "[1.0 (" in fired["StateReason"]


# embedded_metrics

EMITTER = """
import json, time

def handler(event, context):
    metrics = [{"Name": name, "Unit": unit} for name, unit in event["units"].items()]
    directive = {"Namespace": event["namespace"], "Dimensions": event["dimensions"], "Metrics": metrics}
    document = {"_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}, **event["members"]}
    print(json.dumps(document))
"""


@pytest.fixture
def emit(emulator: EmulatorServer) -> Callable[..., str]:
    """Let a function write a document in the embedded metric format, and return the metrics' namespace."""
    return emitter(emulator)


def emitter(server: EmulatorServer) -> Callable[..., str]:
    name = f"emitter-{uuid4().hex[:8]}"
    create_function(server, name, EMITTER)

    def emit(dimensions: list[list[str]], units: dict[str, str], **members: Any) -> str:
        event = {"namespace": f"Own/{name}", "dimensions": dimensions, "units": units, "members": members}
        invoke(server, name, event)
        return f"Own/{name}"

    return emit


def test_gap_stock_leaves_embedded_metrics_in_the_log(stock: EmulatorServer) -> None:
    namespace = emitter(stock)([["service"]], {"Age": "Seconds"}, service="example", Age=1)
    assert dimension_sets(stock, namespace, "Age") == []


def test_metrics_that_a_function_logs_are_emitted_with_each_set_of_dimensions(
    emulator: EmulatorServer, emit: Callable[..., str]
) -> None:
    units = {"Age": "Seconds", "Sizes": "Bytes"}
    namespace = emit([["service"], ["service", "lane"]], units, service="example", lane="fast", Age=7, Sizes=[1, 2, 6])
    sets = [{"service": "example"}, {"service": "example", "lane": "fast"}]
    for metric in units:
        logged = dimension_sets(emulator, namespace, metric)
        assert sorted(logged, key=len) == sets
    assert statistic(emulator, namespace, "Age", sets[1], "Maximum") == [7]
    of_sizes = [
        statistic(emulator, namespace, "Sizes", sets[0], name) for name in ("SampleCount", "Sum", "Minimum", "Maximum")
    ]
    assert of_sizes == [[3], [9], [1], [6]]


def test_an_alarm_on_a_logged_level_misses_it_fires_and_clears_with_the_next_one(
    emulator: EmulatorServer, emit: Callable[..., str]
) -> None:
    def log(age: float) -> str:
        return emit([["service", "lane"]], {"Age": "Seconds"}, service="example", lane="fast", Age=age)

    lane = [{"Name": "service", "Value": "example"}, {"Name": "lane", "Value": "fast"}]
    metric = {"Namespace": log(1), "MetricName": "Age", "Dimensions": lane, "Threshold": 30}
    of_level = alarm(emulator, **metric, TreatMissingData="breaching")
    of_another_unit = alarm(emulator, **metric, Unit="Count", TreatMissingData="breaching")
    of_another_set = alarm(emulator, **{**metric, "Dimensions": lane[:1]}, TreatMissingData="breaching")
    await_state(emulator, of_level, "OK")
    for missing in (of_another_unit, of_another_set):
        assert "1 missing datapoint was treated as" in await_state(emulator, missing, "ALARM")["StateReason"]
    log(31)
    await_state(emulator, of_level, "ALARM")
    log(30)
    await_state(emulator, of_level, "OK")


def test_an_alarm_on_a_percentile_looks_at_every_value(emulator: EmulatorServer, emit: Callable[..., str]) -> None:
    namespace = emit([[]], {"Age": "Seconds"}, Age=[1, 2, 100])
    metric = {"Namespace": namespace, "MetricName": "Age", "Threshold": 30}
    median, p90 = (alarm(emulator, **metric, ExtendedStatistic=each) for each in ("p50", "p90"))
    await_state(emulator, p90, "ALARM")
    assert "[2.0 (" in await_state(emulator, median, "OK")["StateReason"]


@pytest.mark.parametrize(
    "broken",
    [
        "no JSON {",
        '{"_aws": {"CloudWatchMetrics": "none"}}',
        {"service": 1},
        {"Age": "old"},
        {"Age": True},
        {"Age": list(range(101))},
        {"Age": {"nested": 1}},
    ],
)
def test_a_document_that_breaks_the_format_has_no_metrics(broken: str | dict[str, Any]) -> None:
    directive = {"Namespace": "Own", "Dimensions": [["service"]], "Metrics": [{"Name": "Age"}]}
    good = {"_aws": {"Timestamp": 1, "CloudWatchMetrics": [directive]}, "service": "example", "Age": 1}
    assert [metric.unit for metric in embedded_metrics(f"2026\trequest\t{json.dumps(good)}", now_ms=2)] == ["None"]
    message = broken if isinstance(broken, str) else json.dumps({**good, **broken})
    assert embedded_metrics(message, now_ms=2) == []


# function_metrics


def of_function(server: EmulatorServer, name: str) -> dict[str, float]:
    metrics = ("Invocations", "Errors", "Throttles")
    return {metric: sum(statistic(server, "AWS/Lambda", metric, {"FunctionName": name})) for metric in metrics}


def throttled_once(server: EmulatorServer) -> str:
    """Create a function that may not run, invoke it once, and return its name."""
    name, lambda_ = f"throttled-{uuid4().hex[:8]}", server.client("lambda")
    create_function(server, name, FAIL_OR_NOT)
    lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    with pytest.raises(lambda_.exceptions.TooManyRequestsException):
        invoke(server, name)
    return name


def consumed_once(server: EmulatorServer) -> str:
    """Create a function that a queue invokes once, and return its name afterwards."""
    name, source = f"consumer-{uuid4().hex[:8]}", queue(server)
    create_function(server, name, FAIL_OR_NOT)
    server.client("lambda").create_event_source_mapping(EventSourceArn=source.arn, FunctionName=name)
    source.send("once")
    wait_until(lambda: source.counts() == (0, 0), "the message is processed")
    return name


def test_gap_stock_counts_a_throttled_request_as_invocations_and_none_by_a_queue(stock: EmulatorServer) -> None:
    assert of_function(stock, throttled_once(stock)) == {"Invocations": 2, "Errors": 1, "Throttles": 2}
    assert of_function(stock, consumed_once(stock))["Invocations"] == 0


def test_every_invocation_counts_once_and_a_throttled_request_only_as_such(emulator: EmulatorServer) -> None:
    assert of_function(emulator, throttled_once(emulator)) == {"Invocations": 0, "Errors": 0, "Throttles": 1}
    consumer = consumed_once(emulator)
    assert of_function(emulator, consumer) == {"Invocations": 1, "Errors": 0, "Throttles": 0}
    invoke(emulator, consumer)
    invoke(emulator, consumer, {"fail": True})
    assert of_function(emulator, consumer) == {"Invocations": 3, "Errors": 1, "Throttles": 0}
    assert sum(statistic(emulator, "AWS/Lambda", "Duration", {"FunctionName": consumer}, "SampleCount")) == 3


# http_api_metrics


def test_gap_stock_counts_no_requests(stock: EmulatorServer, http: httpx.Client) -> None:
    api_id = stock.client("apigatewayv2").create_api(Name="counted", ProtocolType="HTTP")["ApiId"]
    http.get(f"{stock.gateway_url}/_aws/execute-api/{api_id}/$default/nowhere")
    assert stock.client("cloudwatch").list_metrics(Namespace="AWS/ApiGateway")["Metrics"] == []


def test_every_answer_of_an_api_counts_with_its_status(emulator: EmulatorServer, http: httpx.Client) -> None:
    with stack(emulator, echo_api({"GET /images": {}})):
        api_id = emulator.client("apigatewayv2").get_apis()["Items"][0]["ApiId"]
        for query in ("", "?status=404", "?status=404", "?fail"):
            http.get(f"{emulator.front_url}/images{query}")
        for dimensions in ({"ApiId": api_id}, {"ApiId": api_id, "Stage": "$default"}):
            sums = {
                metric: sum(statistic(emulator, "AWS/ApiGateway", metric, dimensions))
                for metric in ("Count", "4xx", "5xx")
            }
            assert sums == {"Count": 4, "4xx": 2, "5xx": 1}
        assert sum(statistic(emulator, "AWS/ApiGateway", "Latency", {"ApiId": api_id}, "SampleCount")) == 4
