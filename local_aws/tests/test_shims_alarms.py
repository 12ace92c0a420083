"""The emulator does what CloudWatch does with composite alarms: one notification for an incident of many alarms."""

import re
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from local_aws.tests.alarms import alarm, await_state, next_notification, topic_with_queue
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    REGION,
    EmulatorServer,
    physical_ids,
    reasons_for_failed_stack,
    stack,
    update_stack,
)
from local_aws.tests.queues import Queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

TYPE = "AWS::CloudWatch::CompositeAlarm"


def child(server: EmulatorServer, **settings: Any) -> str:
    """Create an alarm that keeps the state that it is set to, since its metric has no data."""
    return alarm(server, Namespace="Own", MetricName="Silent", TreatMissingData="ignore", **settings)


def set_state(server: EmulatorServer, name: str, state: str) -> None:
    server.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


def composite(server: EmulatorServer, rule: str, **settings: Any) -> str:
    """Create a composite alarm, and return its name."""
    name = f"composite-{uuid4().hex[:8]}"
    server.client("cloudwatch").put_composite_alarm(AlarmName=name, AlarmRule=rule, **settings)
    return name


def described(server: EmulatorServer, name: str) -> dict[str, Any]:
    answer = server.client("cloudwatch").describe_alarms(AlarmNames=[name], AlarmTypes=["CompositeAlarm"])
    only: dict[str, Any]
    [only] = answer["CompositeAlarms"]
    return only


def state_of(server: EmulatorServer, name: str) -> str:
    return str(described(server, name)["StateValue"])


def arn(name: str) -> str:
    return f"arn:aws:cloudwatch:{REGION}:{ACCOUNT_ID}:alarm:{name}"


def quiet(subscriber: Queue) -> bool:
    return subscriber.counts() == (0, 0)


# In a stack


def metric_alarm(**properties: Any) -> dict[str, Any]:
    defaults = {
        "Namespace": "Own",
        "MetricName": "Silent",
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "ignore",
    }
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": defaults | properties}


def composite_alarm(rule: Any, **properties: Any) -> dict[str, Any]:
    return {"Type": TYPE, "Properties": {"AlarmRule": rule, **properties}}


OF_TWO = {"Fn::Sub": 'ALARM("${First}") OR ALARM("${Second}")'}


def test_gap_stock_refuses_composite_alarms_in_a_stack(stock: EmulatorServer) -> None:
    with pytest.raises(ClientError, match="Unrecognized resource types"):
        reasons_for_failed_stack(stock, {"Incident": composite_alarm("FALSE")})


def test_a_composite_alarm_of_a_stack_is_named_like_its_other_resources_and_watches_them(
    emulator: EmulatorServer,
) -> None:
    topic, subscriber = topic_with_queue(emulator)
    settings = {"AlarmActions": [topic], "AlarmDescription": "Read the runbook"}
    resources = {
        "Incident": composite_alarm(OF_TWO, **settings, Tags=[{"Key": "team", "Value": "own"}]),
        "First": metric_alarm(),
        "Second": metric_alarm(),
        "Above": composite_alarm({"Fn::Sub": "ALARM(${Incident.Arn})"}),
    }
    with stack(emulator, resources) as name:
        ids = physical_ids(emulator, name)
        assert re.fullmatch(rf"{name}-Incident-[0-9A-Z]{{12,13}}", ids["Incident"])
        set_state(emulator, ids["Second"], "ALARM")
        assert next_notification(subscriber)[1]["AlarmDescription"] == "Read the runbook"
        assert state_of(emulator, ids["Incident"]) == state_of(emulator, ids["Above"]) == "ALARM"
        tags = emulator.client("cloudwatch").list_tags_for_resource(ResourceARN=arn(ids["Incident"]))["Tags"]
        assert {"Key": "team", "Value": "own"} in tags
    left = emulator.client("cloudwatch").describe_alarms(
        AlarmNamePrefix=name, AlarmTypes=["CompositeAlarm", "MetricAlarm"]
    )
    assert (left["CompositeAlarms"], left["MetricAlarms"]) == ([], [])


def test_an_update_changes_a_composite_alarm_in_place_and_another_name_replaces_it(emulator: EmulatorServer) -> None:
    alarms = {"First": metric_alarm(), "Second": metric_alarm()}
    own_name = f"incident-{uuid4().hex[:8]}"
    with stack(emulator, {"Incident": composite_alarm(OF_TWO), **alarms}) as name:
        before = physical_ids(emulator, name)
        set_state(emulator, before["Second"], "ALARM")
        of_first = composite_alarm({"Fn::Sub": "ALARM(${First})"}, ActionsEnabled=False)
        update_stack(emulator, name, {"Incident": of_first, "First": alarms["First"]})
        assert physical_ids(emulator, name) == {key: before[key] for key in ("Incident", "First")}
        alarm = described(emulator, before["Incident"])
        assert (alarm["StateValue"], alarm["ActionsEnabled"]) == ("OK", False)

        update_stack(
            emulator, name, {"Incident": composite_alarm("FALSE", AlarmName=own_name), "First": alarms["First"]}
        )
        assert physical_ids(emulator, name)["Incident"] == own_name
        with pytest.raises(ValueError, match="not enough values"):
            described(emulator, before["Incident"])


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"AlarmRule": "ALARM(nowhere)"}, f"alarms [{arn('nowhere')}] in the alarm rule do not exist"),
        ({"AlarmRule": "ALARM("}, "Error in AlarmRule"),
        ({"AlarmRule": "FALSE", "ActionsSuppressor": "some"}, "leave out ActionsSuppressor"),
    ],
)
def test_a_stack_with_a_composite_alarm_that_cannot_be_made_fails_with_the_reason(
    emulator: EmulatorServer, properties: dict[str, Any], reason: str
) -> None:
    assert reason in reasons_for_failed_stack(emulator, {"Incident": {"Type": TYPE, "Properties": properties}})


# Its state


@pytest.mark.parametrize(
    ("rule", "outcomes"),
    [
        # with the children off and off, on and off, off and on, on and on
        ('ALARM("{0}") OR ALARM("{1}")', "0111"),
        ("ALARM({0}) AND ALARM({1})", "0001"),
        ("ALARM({0}) AND NOT ALARM({1})", "0100"),
        ("NOT (ALARM({0}) OR OK({1}))", "0010"),
        ("ALARM({0}) OR ALARM({0}) AND FALSE", "0101"),
        ("TRUE AND INSUFFICIENT_DATA({1})", "0000"),
        ("ALARM(arn:aws:cloudwatch:us-east-1:000000000000:alarm:{1})", "0011"),
    ],
)
def test_a_rule_combines_the_states_of_alarms(emulator: EmulatorServer, rule: str, outcomes: str) -> None:
    children = [child(emulator) for _ in range(2)]
    name = composite(emulator, rule.format(*children))
    seen = []
    for first, second in (("OK", "OK"), ("ALARM", "OK"), ("OK", "ALARM"), ("ALARM", "ALARM")):
        set_state(emulator, children[0], first)
        set_state(emulator, children[1], second)
        seen.append("1" if state_of(emulator, name) == "ALARM" else "0")
    assert "".join(seen) == outcomes


@pytest.mark.guards("emulator-composite-alarm-children")
def test_an_incident_of_two_alarms_notifies_once_when_the_first_fires_and_once_when_the_last_clears(
    emulator: EmulatorServer,
) -> None:
    topic, subscriber = topic_with_queue(emulator)
    own_topic, told_itself = topic_with_queue(emulator)
    metric = f"Level-{uuid4().hex[:8]}"

    def put(which: str, value: int) -> None:
        dimensions = [{"Name": "which", "Value": which}]
        datum = {"MetricName": metric, "Dimensions": dimensions, "Value": value}
        emulator.client("cloudwatch").put_metric_data(Namespace="Own", MetricData=[datum])

    def on(which: str, **settings: Any) -> str:
        dimensions = [{"Name": "which", "Value": which}]
        return alarm(emulator, Namespace="Own", MetricName=metric, Dimensions=dimensions, **settings)

    first, second = on("first"), on("second", AlarmActions=[own_topic])
    rule = f'ALARM("{first}") OR ALARM("{second}")'
    name = composite(emulator, rule, AlarmActions=[topic], OKActions=[topic])
    assert next_notification(subscriber)[1]["OldStateValue"] == "INSUFFICIENT_DATA"

    put("first", 1)
    subject, fired = next_notification(subscriber)
    assert subject == f'ALARM: "{name}" in US East (N. Virginia)'
    assert "Trigger" not in fired
    [triggering] = fired["TriggeringChildren"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0000", triggering["State"].pop("Timestamp"))
    assert triggering == {"Arn": arn(first), "State": {"Value": "ALARM"}}
    assert (fired["AlarmRule"], fired["OldStateValue"], fired["NewStateValue"]) == (rule, "OK", "ALARM")
    assert fired["NewStateReason"].startswith(f"{arn(first)} transitioned to ALARM at ")

    put("second", 1)
    assert next_notification(told_itself)[1]["AlarmName"] == second
    put("first", 0)
    await_state(emulator, first, "OK")
    assert quiet(subscriber)

    put("second", 0)
    cleared = next_notification(subscriber)[1]
    assert (cleared["OldStateValue"], cleared["NewStateValue"]) == ("ALARM", "OK")
    assert [each["Arn"] for each in cleared["TriggeringChildren"]] == [arn(second), arn(first)]
    history = emulator.client("cloudwatch").describe_alarm_history(
        AlarmName=name, AlarmTypes=["CompositeAlarm"], HistoryItemType="StateUpdate", ScanBy="TimestampAscending"
    )["AlarmHistoryItems"]
    assert [item["HistorySummary"] for item in history] == [
        "Alarm updated from INSUFFICIENT_DATA to OK",
        "Alarm updated from OK to ALARM",
        "Alarm updated from ALARM to OK",
    ]


def test_a_composite_alarm_whose_actions_are_disabled_changes_its_state_and_keeps_quiet(
    emulator: EmulatorServer,
) -> None:
    topic, subscriber = topic_with_queue(emulator)
    first = child(emulator)
    name = composite(emulator, f"ALARM({first})", AlarmActions=[topic], OKActions=[topic], ActionsEnabled=False)
    set_state(emulator, first, "ALARM")
    assert state_of(emulator, name) == "ALARM"
    assert quiet(subscriber)
    emulator.client("cloudwatch").enable_alarm_actions(AlarmNames=[name])
    set_state(emulator, first, "OK")
    assert next_notification(subscriber)[1]["NewStateValue"] == "OK"


# DescribeAlarms


def test_composite_alarms_are_described_only_where_their_type_is_asked_for(emulator: EmulatorServer) -> None:
    name = composite(emulator, "FALSE")
    describe = emulator.client("cloudwatch").describe_alarms
    assert describe(AlarmNames=[name])["CompositeAlarms"] == []
    both = describe(AlarmNames=[name], AlarmTypes=["CompositeAlarm", "MetricAlarm"])
    assert [each["AlarmName"] for each in both["CompositeAlarms"]] == [name]


def test_the_children_and_the_parents_of_an_alarm_are_described_in_short(emulator: EmulatorServer) -> None:
    describe = emulator.client("cloudwatch").describe_alarms
    first, second = sorted([child(emulator), child(emulator)])
    below = composite(emulator, f"ALARM({second})")
    name = composite(emulator, f"ALARM({first}) OR OK({second}) AND ALARM({below})")
    set_state(emulator, first, "ALARM")

    children = describe(ChildrenOfAlarmName=name)
    assert {each["AlarmName"]: each["StateValue"] for each in children["MetricAlarms"]} == {
        first: "ALARM",
        second: "INSUFFICIENT_DATA",
    }
    short = {"AlarmName", "AlarmArn", "StateValue", "StateUpdatedTimestamp"}
    assert [each.keys() for each in children["CompositeAlarms"]] == [short]

    parents = describe(ParentsOfAlarmName=second)
    assert parents["MetricAlarms"] == []
    expected = [{"AlarmName": each, "AlarmArn": arn(each)} for each in sorted([below, name])]
    assert parents["CompositeAlarms"] == expected

    pages = emulator.client("cloudwatch").get_paginator("describe_alarms")
    listed = list(pages.paginate(ChildrenOfAlarmName=name, PaginationConfig={"PageSize": 2}))
    assert [len(page["MetricAlarms"]) + len(page["CompositeAlarms"]) for page in listed] == [2, 1]


@pytest.mark.guards("emulator-alarm-relations-alone")
@pytest.mark.parametrize("further", [{"StateValue": "OK"}, {"ParentsOfAlarmName": "other"}, {"MaxRecords": 101}])
def test_relations_stand_alone(emulator: EmulatorServer, further: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as refused:
        emulator.client("cloudwatch").describe_alarms(ChildrenOfAlarmName="some", **further)
    assert refused.value.response["Error"]["Code"] == "ValidationError"
