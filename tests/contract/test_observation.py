"""What operators are shown of a stack: the ports by one suite, fakes and adapters, and what a look at it costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import boto3
import pytest
import time_machine

from darkroom.domain.images.image import DUE_PARTITIONS, waiting_shards_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.capacity.prices import cost
from darkroom_cli.operator.aws.alarms import CloudWatchAlarms
from darkroom_cli.operator.aws.measurements import CloudWatchMeasurements
from darkroom_cli.operator.aws.queue_counts import SqsQueueCounts
from darkroom_cli.operator.domain.budgets import Budget
from darkroom_cli.operator.domain.observation import HISTORY_MINUTES, Flow, Measured
from darkroom_cli.operator.operations.dead_letters.list_given_up import KINDS
from darkroom_cli.operator.operations.observation.observe_stack import (
    BUDGET_SECONDS,
    ERRORS_SECONDS,
    MEASURED_SECONDS,
    SLOW_SECONDS,
    ObserveStackPorts,
    observe_stack,
)
from darkroom_cli.operator.ports import QueueCounts
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal.at_once import at_once
from darkroom_cli.top.work import DEPLOYED_SECONDS, ports_of
from repository.expand_template import resources
from repository.report import ROOT
from tests.contract.conftest import REGION, Aws
from tests.contract.stores import spy
from tests.support.fakes.observation import EMPTY, FakeQueueCounts, count
from tests.support.faults import refuse

NOW = 1_795_251_640_000  # 09:00:40
MINUTE = 60_000
WARNINGS, CRITICAL = "arn:aws:sns:us-east-1:1:warnings", "arn:aws:sns:us-east-1:1:critical"


@pytest.fixture(autouse=True)
def at_nine() -> Iterator[None]:
    with time_machine.travel(NOW / 1000, tick=False):
        yield


# ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_queue_is_counted_by_what_its_messages_wait_for(kind: str, aws: Aws) -> None:
    counts: QueueCounts
    if kind == "fake":
        counts = FakeQueueCounts(counts={"fast": count(waiting=1, in_flight=1, delayed=1), "slow": EMPTY})
    else:
        sqs = boto3.client("sqs")
        counts = SqsQueueCounts(sqs, {name: aws.queue_urls[name] for name in ("fast", "slow")})
        for delay in (0, 0, 60):
            sqs.send_message(QueueUrl=aws.fast_queue_url, MessageBody="x", DelaySeconds=delay)
        sqs.receive_message(QueueUrl=aws.fast_queue_url)
    assert counts.queues == ("fast", "slow")
    assert (counts.count("fast"), counts.count("slow")) == (count(waiting=1, in_flight=1, delayed=1), EMPTY)
    assert (counts.count("fast").backlog, counts.count("fast").total) == (2, 3)


def test_a_queue_that_does_not_answer_can_be_asked_again(aws: Aws) -> None:
    sqs = boto3.client("sqs")
    refuse(sqs, code="RequestThrottled", status=400)
    with pytest.raises(Retryable, match="fast"):
        SqsQueueCounts(sqs, aws.queue_urls).count("fast")


# ── Alarms ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def put_alarm(name: str, state: Literal["ALARM", "OK"], *topics: str, minutes_ago: int = 0) -> None:
    cloudwatch = boto3.client("cloudwatch")
    with time_machine.travel((NOW - minutes_ago * MINUTE) / 1000, tick=False):
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            AlarmDescription=f"What {name} means.",
            AlarmActions=topics,
            Namespace="N",
            MetricName="M",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            ComparisonOperator="GreaterThanThreshold",
            Threshold=1,
        )
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason=f"Why {name} is on.")


def test_the_alarms_that_are_on_are_listed_the_longest_first_and_none_of_another_stack(aws: Aws) -> None:
    put_alarm("shop-LateAlarm-X1", "ALARM", WARNINGS, minutes_ago=2)
    put_alarm("shop-StuckAlarm-X2", "ALARM", minutes_ago=3)
    put_alarm("shop-CalmAlarm-X3", "OK", CRITICAL)
    put_alarm("shop-prod-LateAlarm-X4", "ALARM", CRITICAL)
    names = {f"shop-{name}-X{number}": name for number, name in enumerate(("LateAlarm", "StuckAlarm", "CalmAlarm"), 1)}
    stuck, late = CloudWatchAlarms(boto3.client("cloudwatch"), names, warnings=WARNINGS).on()
    assert (stuck.name, stuck.is_critical, stuck.since) == ("StuckAlarm", True, NOW - 3 * MINUTE)
    assert (late.name, late.is_critical, late.since) == ("LateAlarm", False, NOW - 2 * MINUTE)
    assert (late.description, late.reason) == ("What shop-LateAlarm-X1 means.", "Why shop-LateAlarm-X1 is on.")


@pytest.mark.parametrize(
    "rule",
    [
        'ALARM("shop-StuckAlarm-X2") OR ALARM("shop-LateAlarm-X3")',
        "ALARM(shop-StuckAlarm-X2) OR\n  OK ( shop-LateAlarm-X3)",
        "ALARM(arn:aws:cloudwatch:us-east-1:1:alarm:shop-StuckAlarm-X2) AND NOT ALARM(shop-LateAlarm-X3)",
    ],
)
def test_an_incident_is_listed_with_the_alarms_that_it_is_made_of(rule: str, aws: Aws) -> None:
    cloudwatch = boto3.client("cloudwatch")
    at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    incident = {
        "AlarmName": "shop-IncidentAlarm-X1",
        "AlarmDescription": "Somebody is needed.",
        "AlarmActions": [CRITICAL],
        "StateReason": "r",
        "StateValue": "ALARM",
        "StateUpdatedTimestamp": datetime(2026, 11, 21, 9, 0, 30, tzinfo=UTC),
        "StateTransitionedTimestamp": at,
        "AlarmRule": rule,
    }
    asked = spy(cloudwatch, "DescribeAlarms", lambda *_: {"MetricAlarms": [], "CompositeAlarms": [incident]})
    names = {f"shop-{name}-X{number}": name for number, name in enumerate(("IncidentAlarm", "StuckAlarm"), 1)}
    (alarm,) = CloudWatchAlarms(cloudwatch, names, warnings=WARNINGS).on()
    assert alarm.children == {"StuckAlarm", "shop-LateAlarm-X3"}
    assert (alarm.name, alarm.is_critical, alarm.since) == ("IncidentAlarm", True, round(at.timestamp() * 1000))
    assert asked[0]["AlarmTypes"] == ["MetricAlarm", "CompositeAlarm"]


def test_more_alarms_than_one_request_takes_are_asked_for_in_several(aws: Aws) -> None:
    cloudwatch = boto3.client("cloudwatch")
    asked = spy(cloudwatch, "DescribeAlarms", lambda arguments, call: call(arguments))
    names = {f"alarm-{number}": "A" for number in range(101)}
    assert CloudWatchAlarms(cloudwatch, names, warnings=WARNINGS).on() == []
    assert [len(request["AlarmNames"]) for request in asked] == [100, 1]
    assert CloudWatchAlarms(cloudwatch, {}, warnings=WARNINGS).on() == []
    assert len(asked) == 2, "a request without names would list every alarm of the account"


# ── Measurements ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Measuring:
    """CloudWatch with data put minutes before now."""

    def __init__(self) -> None:
        self.client = boto3.client("cloudwatch")
        self.port = CloudWatchMeasurements(
            self.client,
            {"fast": "shop-fast", "slow": "shop-slow"},
            namespace="Darkroom/shop",
            function_names={
                "read_image": "shop-Read-X",
                "submit_image": "shop-Submit-X",
                "transcode_image": "shop-Transcode-X",
                "idle": "shop-Idle-X",
            },
        )

    def put(
        self,
        name: str,
        value: float,
        *,
        minutes_ago: float,
        queue: str | None = None,
        lane: str | None = None,
        function: str | None = None,
    ) -> None:
        dimensions = [{"Name": "service", "Value": "darkroom"}]
        if queue is not None:
            dimensions = [{"Name": "QueueName", "Value": queue}]
        if function is not None:
            dimensions = [{"Name": "FunctionName", "Value": function}]
        if lane is not None:
            dimensions.append({"Name": "lane", "Value": lane})
        at = datetime.fromtimestamp(NOW / 1000 - 60 * minutes_ago, UTC)
        data: Any = [{"MetricName": name, "Dimensions": dimensions, "Timestamp": at, "Value": value}]
        # moto takes the namespaces of AWS's own metrics, which CloudWatch refuses.
        namespace = "Darkroom/shop" if queue is None else "AWS/SQS"
        namespace = namespace if function is None else "AWS/Lambda"
        self.client.put_metric_data(Namespace=namespace, MetricData=data)


def test_nothing_was_measured_of_an_idle_stack(aws: Aws) -> None:
    assert Measuring().port.latest(NOW) == Measured(flows={})


@pytest.mark.guards("top-whole-minutes-only")
def test_the_flow_of_a_lane_is_that_of_its_latest_whole_minute(aws: Aws) -> None:
    cloudwatch = Measuring()
    for name, value in (("NumberOfMessagesSent", 7), ("NumberOfMessagesDeleted", 5)):
        cloudwatch.put(name, value, minutes_ago=2, queue="shop-fast")
        cloudwatch.put(name, value + 90, minutes_ago=3, queue="shop-fast")
        cloudwatch.put(name, 1000, minutes_ago=0.1, queue="shop-fast")  # this minute is not over
        cloudwatch.put(name, 1000, minutes_ago=70, queue="shop-slow")
    cloudwatch.put("NumberOfMessagesSent", 1, minutes_ago=2, queue="shop-fast")
    cloudwatch.put("NumberOfMessagesSent", 500, minutes_ago=1, queue="shop-fast")  # its other half is yet to come
    minute_at = (NOW - 2 * MINUTE) // MINUTE * MINUTE
    assert cloudwatch.port.latest(NOW).flows == {"fast": Flow(minute_at=minute_at, incoming=8, outgoing=5)}


def test_a_half_of_a_flow_counts_if_there_is_no_other(aws: Aws) -> None:
    cloudwatch = Measuring()
    cloudwatch.put("NumberOfMessagesSent", 3, minutes_ago=2, queue="shop-slow")
    (flow,) = cloudwatch.port.latest(NOW).flows.values()
    assert (flow.incoming, flow.outgoing) == (3, 0)


def test_releases_were_as_late_as_the_latest_of_the_last_hour(aws: Aws) -> None:
    cloudwatch = Measuring()
    for minutes_ago, seconds in ((50, 90.0), (20, 3.0), (70, 900.0)):
        cloudwatch.put("ReleaseLatenessSeconds", seconds, minutes_ago=minutes_ago)
    assert cloudwatch.port.latest(NOW).release_lateness_seconds == 90.0


def test_accepting_receives_and_first_attempts_are_what_they_were_in_the_worst_minutes_of_the_last_hour(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudwatch = Measuring()
    asked: list[Any] = []
    answer = cloudwatch.client.get_metric_data

    def without_percentiles(*, MetricDataQueries: Any, **others: Any) -> Any:  # noqa: N803 -- as boto3 has it; moto has none
        of_shares = [query for query in MetricDataQueries if query["MetricStat"]["Stat"].startswith("p")]
        asked.extend(query["MetricStat"] for query in of_shares)
        for query in of_shares:
            query["MetricStat"] = query["MetricStat"] | {"Stat": "Maximum"}
        return answer(MetricDataQueries=MetricDataQueries, **others)

    monkeypatch.setattr(cloudwatch.client, "get_metric_data", without_percentiles)
    for minutes_ago, milliseconds in ((70, 7000), (40, 180), (20, 90)):
        cloudwatch.put("Duration", milliseconds, minutes_ago=minutes_ago, function="shop-Submit-X")
    cloudwatch.put("Duration", 9000, minutes_ago=20, function="shop-Transcode-X")
    for minutes_ago, seconds in ((70, 7.0), (40, 1.8), (20, 0.9)):
        cloudwatch.put("FirstAttemptSeconds", seconds, minutes_ago=minutes_ago)
    for minutes_ago, receives in ((70, 5), (40, 2), (20, 1)):
        cloudwatch.put("ReceiveCount", receives, minutes_ago=minutes_ago)
    measured = cloudwatch.port.latest(NOW)
    assert (measured.accept_p99_milliseconds, measured.receives_p99) == (180, 2)
    assert (measured.first_attempt_p50_seconds, measured.first_attempt_p99_seconds) == (1.8, 1.8)
    assert [(query["Stat"], query["Period"]) for query in asked] == [
        ("p99", 300),
        ("p99", 300),
        ("p50", 300),
        ("p99", 300),
    ]


def test_a_history_has_each_whole_minute_of_three_hours_and_says_what_was_not_measured(aws: Aws) -> None:
    cloudwatch, until = Measuring(), NOW // MINUTE * MINUTE
    for name, value in (
        ("ApproximateNumberOfMessagesVisible", 7),
        ("ApproximateNumberOfMessagesNotVisible", 2),
        ("ApproximateAgeOfOldestMessage", 31),
        ("NumberOfMessagesSent", 5),
        ("NumberOfMessagesDeleted", 4),
    ):
        cloudwatch.put(name, value, minutes_ago=2, queue="shop-fast")
        cloudwatch.put(name, 1000, minutes_ago=0.01, queue="shop-fast")  # this minute is not over
        cloudwatch.put(name, 1000, minutes_ago=HISTORY_MINUTES + 2, queue="shop-fast")
    cloudwatch.put("ApproximateNumberOfMessagesVisible", 3, minutes_ago=5, queue="shop-slow")
    past = cloudwatch.port.history(NOW)
    assert list(past.minutes) == list(range(until - 180 * MINUTE, until, MINUTE))
    fast, slow = past.lanes["fast"], past.lanes["slow"]
    at = list(past.minutes).index((NOW - 2 * MINUTE) // MINUTE * MINUTE)
    for values, value in (
        (fast.depth, 9),
        (fast.oldest_seconds, 31),
        (fast.incoming, 5),
        (fast.outgoing, 4),
    ):
        assert [values[at], *{each for place, each in enumerate(values) if place != at}] == [value, None]
        assert len(values) == HISTORY_MINUTES
    assert slow.depth[at - 3] == 3 and set(slow.incoming) == {None}


@pytest.mark.guards("top-budget-window")
def test_an_error_budget_is_what_a_lane_spent_in_28_days_until_this_minute(aws: Aws) -> None:
    cloudwatch, day = Measuring(), 24 * 60
    for minutes_ago, ended, bad in (
        (0.1, 100, 1),
        (10 * day, 20, 0),
        (28 * day - 60, 3, 2),
        (28 * day + 1, 1000, 1000),
    ):
        cloudwatch.put("ImagesEnded", ended, minutes_ago=minutes_ago, lane="slow")
        cloudwatch.put("ImagesBad", bad, minutes_ago=minutes_ago, lane="slow")
    cloudwatch.put("ImagesEnded", 7, minutes_ago=5)  # of no lane
    for burn, minutes_ago in ((-0.006, 5), (0.994, 9), (-0.006, 27 * day), (0.994, 28 * day + 1)):
        cloudwatch.put("FirstAttemptBurn", burn, minutes_ago=minutes_ago)
    cloudwatch.put("DeliveriesRepeated", 2, minutes_ago=9)
    assert cloudwatch.port.budgets(NOW) == {
        "fast": Budget(ended=0, bad=0),
        "slow": Budget(ended=123, bad=3),
        "webhooks": Budget(ended=3, bad=1, repeated=2),
    }


def test_error_budgets_are_asked_for_in_whole_hours_of_which_no_request_is_too_large(aws: Aws) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
    cloudwatch = Measuring()
    asked = spy(cloudwatch.client, "GetMetricData", lambda arguments, call: call(arguments))
    cloudwatch.port.budgets(NOW)
    (request,) = asked
    periods = {query["MetricStat"]["Period"] for query in request["MetricDataQueries"]}
    assert periods == {3600}
    length = request["EndTime"] - request["StartTime"]
    assert length == timedelta(days=28) and request["EndTime"].minute == 0
    assert len(request["MetricDataQueries"]) * length / timedelta(hours=1) <= 100_800


@pytest.mark.guards("top-budget-all-pages")
def test_an_error_budget_that_comes_in_pages_is_added_up(aws: Aws) -> None:
    cloudwatch = Measuring()
    pages = iter(("next", None))

    def paged(_: Any, __: Any) -> Any:
        token = next(pages)
        results = [{"Id": "ended1", "Values": [4.0], "Timestamps": []}, {"Id": "bad1", "Values": [], "Timestamps": []}]
        return {"MetricDataResults": results, "Messages": []} | ({"NextToken": token} if token else {})

    spy(cloudwatch.client, "GetMetricData", paged)
    assert cloudwatch.port.budgets(NOW)["slow"] == Budget(ended=8, bad=0)


def test_the_errors_of_functions_are_those_of_the_last_minutes_the_most_first(aws: Aws) -> None:
    cloudwatch = Measuring()
    for function, minutes_ago, errors in (
        *(("shop-Transcode-X", 0.1, 2), ("shop-Transcode-X", 13, 5), ("shop-Transcode-X", 16, 100)),
        *(("shop-Read-X", 3, 1), ("shop-Idle-X", 3, 0), ("other-Read-X", 1, 9)),
    ):
        cloudwatch.put("Errors", errors, minutes_ago=minutes_ago, function=function)
    counted = cloudwatch.port.function_errors(NOW)
    assert list(counted.items()) == [("transcode_image", 7), ("read_image", 1)]


# ── What it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


class Counting:
    """The stack's clients, which count what is asked of them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.metrics: list[int] = []
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            client = self._clients[service] = boto3.client(service)  # type: ignore[call-overload]
            call = client._make_api_call

            def counted(name: str, arguments: dict[str, Any]) -> Any:
                self.calls[name] += 1
                if "MetricDataQueries" in arguments:
                    self.metrics.append(len(arguments["MetricDataQueries"]))
                return call(name, arguments)

            client._make_api_call = counted
        return self._clients[service]


def deployed(aws: Aws, clients: Counting) -> Stack:
    """The template's stack, with moto's stores: as many queues and alarms as the template has."""
    sqs = boto3.client("sqs")
    tables = {
        "ImagesTable": aws.images_table,
        "ThroughputTable": aws.throughput_table,
        "EndpointsTable": aws.endpoints_table,
        "DeliveriesTable": aws.deliveries_table,
        "PausesTable": aws.pauses_table,
    }
    physical: dict[str, tuple[str, str]] = {
        name: ("AWS::DynamoDB::Table", physical_id) for name, physical_id in tables.items()
    }
    for name in resources("AWS::SQS::Queue").keys() - {"EditsQueue"}:  # by default
        physical[name] = ("AWS::SQS::Queue", sqs.create_queue(QueueName=f"shop-{name}")["QueueUrl"])
    for name in resources("AWS::SNS::Subscription"):
        physical[name] = ("AWS::SNS::Subscription", name)
    for name in resources("AWS::CloudWatch::Alarm").keys() - {"EditsWaitAlarm"}:
        physical[name] = ("AWS::CloudWatch::Alarm", f"shop-{name}")
    for name in resources("AWS::Lambda::Function"):
        physical[name] = ("AWS::Lambda::Function", f"shop-{name}")
    physical["WarningAlarms"] = ("AWS::SNS::Topic", WARNINGS)
    stack = Stack(name="shop", region=REGION, client=clients.client, is_local=False, options="")
    vars(stack)["resources"] = physical
    vars(stack)["parameters"] = {f"{name.capitalize()}Concurrency": "5" for name in LANES}
    return stack


def test_the_queues_of_a_stack_are_told_by_their_names(aws: Aws) -> None:
    stack = deployed(aws, Counting())
    assert set(stack.work_queues) == {*LANES, "hold", "upload", "fetch", "delivery", "usage", "webhooks"}
    assert set(stack.queues_of_given_up) == {*stack.work_queues, "unpublished_events"}
    assert set(stack.dead_letters_of_images.queues) == {*LANES, "hold", "upload", "fetch"}
    assert {lane.concurrency for lane in stack.service.values()} == {5}


def test_an_hour_of_looking_at_a_quiet_stack_costs_what_the_page_of_the_command_line_says(aws: Aws) -> None:
    clients = Counting()
    ports: ObserveStackPorts = ports_of(deployed(aws, clients))
    assert ports.at_once is at_once
    looks = round(3600 / DEPLOYED_SECONDS)
    slow, measured, spent, failed = (
        round(3600 / seconds) for seconds in (SLOW_SECONDS, MEASURED_SECONDS, BUDGET_SECONDS, ERRORS_SECONDS)
    )
    seen = observe_stack(ports)
    assert seen.problems == {}
    first = clients.calls.copy()
    clients.calls.clear()
    observe_stack(ports, seen)  # in the same moment: only what is read at each look
    each = clients.calls.copy()
    now_and_then = first - each
    assert each.keys() == {"DescribeAlarms", "GetQueueAttributes", "Query"}
    given_up = sum(len(DUE_PARTITIONS[kind]) for kind in KINDS)
    assert (each["DescribeAlarms"], each["Query"]) == (
        1,
        sum(len(waiting_shards_of(lane)) for lane in LANES) + given_up,
    )
    of_budgets, of_minutes, of_functions = sorted(clients.metrics)
    assert (of_budgets, of_minutes) == (2 * len(LANES) + 3, 2 * len(LANES) + 5)
    assert of_functions == len(resources("AWS::Lambda::Function"))
    units = looks * each["Query"] / 2 + slow * (now_and_then["Query"] + now_and_then["Scan"]) / 2
    dollars = cost(
        {
            "SQS requests": looks * each["GetQueueAttributes"],
            "CloudWatch requests": looks * each["DescribeAlarms"],
            "CloudWatch metrics read": measured * of_minutes + spent * of_budgets + failed * of_functions,
            "DynamoDB read units": units,
        }
    )
    page = (ROOT / "docs" / "command-line.md").read_text()
    (figures,) = re.findall(
        r"(\d+) requests per look .*?and (\d+) more every (\d+) to (\d+) seconds.*?\$(\d\.\d\d) per hour",
        page,
        re.DOTALL,
    )
    assert tuple(map(int, figures[:4])) == (each.total(), now_and_then.total(), SLOW_SECONDS, BUDGET_SECONDS)
    assert float(figures[4]) == round(dollars, 2)
