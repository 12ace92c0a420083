"""The emulator does what CloudWatch Logs does: filters that emit metrics, patterns that find what they say, queries."""

import json
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from local_aws.shims.metric_filters import FilteredMetric, filtered_metric
from local_aws.tests.emulator_server import (
    ACCOUNT_ID,
    EmulatorServer,
    create_function,
    invoke,
    reasons_for_failed_stack,
    stack,
    update_stack,
)
from local_aws.tests.metrics import statistic

pytest_plugins = ("local_aws.tests.emulator_fixtures",)


@pytest.fixture
def group(emulator: EmulatorServer) -> str:
    """A log group of the emulator with a stream."""
    return log_group(emulator)


def log_group(server: EmulatorServer, prefix: str = "group") -> str:
    name, logs = f"{prefix}-{uuid4().hex[:8]}", server.client("logs")
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="stream")
    return name


def log(server: EmulatorServer, group: str, *messages: str | dict[str, Any]) -> None:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in messages]
    events = [{"timestamp": int(time.time() * 1000), "message": text} for text in texts]
    server.client("logs").put_log_events(logGroupName=group, logStreamName="stream", logEvents=events)


# metric_filters

ERRORS = '{ $.level = "ERROR" || $.record.status = "error" }'


def count(server: EmulatorServer, group: str, pattern: str = ERRORS, **transformation: Any) -> str:
    """Let a filter of the group emit the metric Found, and return its namespace."""
    namespace = f"Own/{group}"
    defaults = {"metricNamespace": namespace, "metricName": "Found", "metricValue": "1"}
    server.client("logs").put_metric_filter(
        logGroupName=group,
        filterName="found",
        filterPattern=pattern,
        metricTransformations=[{**defaults, **transformation}],
    )
    return namespace


def sum_of(server: EmulatorServer, namespace: str, name: str = "Sum", **dimensions: str) -> float:
    return sum(statistic(server, namespace, "Found", dimensions, name))


def test_gap_stock_emits_no_metric_for_what_a_filter_matches(stock: EmulatorServer) -> None:
    group = log_group(stock)
    namespace = count(stock, group)
    log(stock, group, {"level": "ERROR"})
    assert stock.client("cloudwatch").list_metrics(Namespace=namespace)["Metrics"] == []


@pytest.mark.guards("emulator-metric-filter-own-group")
def test_a_filter_counts_the_events_of_its_own_group_that_match(emulator: EmulatorServer, group: str) -> None:
    namespace = count(emulator, group, unit="Count")
    log(emulator, group, {"level": "ERROR"}, {"level": "INFO"}, {"record": {"status": "error"}}, "ERROR")
    log(emulator, log_group(emulator), {"level": "ERROR"})
    assert sum_of(emulator, namespace) == 2
    assert sum_of(emulator, namespace, "SampleCount") == 2
    listed = emulator.client("cloudwatch").list_metrics(Namespace=namespace)["Metrics"]
    assert [metric["Dimensions"] for metric in listed] == [[]]


def test_a_filter_emits_its_default_for_every_other_event(emulator: EmulatorServer, group: str) -> None:
    namespace = count(emulator, group, defaultValue=0)
    log(emulator, group, {"level": "ERROR"}, {"level": "INFO"}, {"level": "INFO"})
    assert [sum_of(emulator, namespace, name) for name in ("Sum", "SampleCount")] == [1, 3]


def test_a_filter_emits_a_value_of_the_event_with_its_dimensions(emulator: EmulatorServer, group: str) -> None:
    namespace = count(
        emulator, group, "{ $.seconds = * }", metricValue="$.seconds", dimensions={"lane": "$.lane"}, unit="Seconds"
    )
    log(emulator, group, {"seconds": 2.5, "lane": "fast"}, {"seconds": 4, "lane": "fast"}, {"seconds": 1})
    assert sum_of(emulator, namespace, lane="fast") == 6.5
    assert sum_of(emulator, namespace, "Maximum", lane="fast") == 4
    listed = emulator.client("cloudwatch").list_metrics(Namespace=namespace)["Metrics"]
    assert sorted(len(metric["Dimensions"]) for metric in listed) == [0, 1]


def test_a_filter_of_a_stack_sees_what_a_function_logs_and_goes_with_the_stack(emulator: EmulatorServer) -> None:
    name = f"printing-{uuid4().hex[:8]}"
    group = f"/aws/lambda/{name}"
    create_function(emulator, name, "def handler(event, context):\n    print(event['line'])")
    transformation = {"MetricNamespace": f"Own/{name}", "MetricName": "Found", "MetricValue": "1"}
    resources = {
        "Group": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": group}},
        "Filter": {
            "Type": "AWS::Logs::MetricFilter",
            "Properties": {
                "LogGroupName": {"Ref": "Group"},
                "FilterPattern": "?START ?boom",
                "MetricTransformations": [transformation],
            },
        },
    }
    with stack(emulator, resources):
        invoke(emulator, name, {"line": "quiet"})
        invoke(emulator, name, {"line": "it goes boom"})
        assert sum_of(emulator, f"Own/{name}") == 3
    invoke(emulator, name, {"line": "boom"})
    assert sum_of(emulator, f"Own/{name}") == 3


@pytest.mark.parametrize(
    ("pattern", "transformation", "message", "metric"),
    [
        ("ERROR", {"metricValue": "2"}, "ERROR", FilteredMetric(value=2, dimensions={})),
        ("ERROR", {"metricValue": "2"}, "WARN", None),
        (
            "ERROR",
            {"metricValue": "2", "defaultValue": 0},
            "x",
            FilteredMetric(value=0, dimensions={}, is_default=True),
        ),
        ("{ $.a = * }", {"metricValue": "$.b"}, '{"a": 1, "b": "1.5"}', FilteredMetric(value=1.5, dimensions={})),
        ("{ $.a = * }", {"metricValue": "$.b"}, '{"a": 1, "b": "text"}', None),
        ("{ $.a = * }", {"metricValue": "$.b"}, '{"a": 1}', None),
        (
            "[level, size]",
            {"metricValue": "$size", "dimensions": {"level": "$level", "other": "$other"}},
            "WARN 7",
            FilteredMetric(value=7, dimensions={"level": "WARN"}),
        ),
    ],
)
def test_what_a_filter_emits_depends_on_the_event(
    pattern: str, transformation: dict[str, Any], message: str, metric: FilteredMetric | None
) -> None:
    assert filtered_metric(pattern, transformation, message) == metric


@pytest.mark.parametrize(
    ("pattern", "transformation", "complaint"),
    [
        ("{ $.a = ", {}, "Invalid filter pattern"),
        ("ERROR", {"metricValue": "many"}, "metricValue must be a number"),
        ("ERROR", {"metricValue": "$.a"}, "metricValue must be a number"),
        ("ERROR", {"metricName": "a:b"}, "metricName must be there"),
        ("{ $.a = 1 }", {"dimensions": {"lane": "fast"}}, "the value of a dimension"),
        ("{ $.a = 1 }", {"dimensions": {f"d{number}": "$.a" for number in range(4)}}, "3 members at most"),
        ("{ $.a = 1 }", {"dimensions": {"a": "$.a"}, "defaultValue": 0}, "cannot be combined with dimensions"),
    ],
)
def test_a_faulty_filter_is_refused(
    emulator: EmulatorServer, group: str, pattern: str, transformation: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ClientError, match="InvalidParameterException") as refused:
        count(emulator, group, pattern, **transformation)
    assert complaint in refused.value.response["Error"]["Message"]


@pytest.fixture
def find(emulator: EmulatorServer, group: str) -> Callable[[str], list[str]]:
    """Find the messages of a log group with some events by a pattern."""
    return finder(emulator, group)


def finder(server: EmulatorServer, group: str) -> Callable[[str], list[str]]:
    log(server, group, "ERROR of one", '{"level": "ERROR"}', '{"level": "INFO"}')

    def find(pattern: str) -> list[str]:
        events = server.client("logs").filter_log_events(logGroupName=group, filterPattern=pattern)["events"]
        return [event["message"] for event in events]

    return find


def test_gap_stock_finds_all_events_by_a_pattern_for_json_and_terms_of_any_case(stock: EmulatorServer) -> None:
    find = finder(stock, log_group(stock))
    assert len(find('{ $.level = "ERROR" }')) == 3
    assert len(find("error")) == 2


def test_events_are_found_by_the_patterns_that_filters_have(find: Callable[[str], list[str]]) -> None:
    assert find('{ $.level = "ERROR" }') == ['{"level": "ERROR"}']
    assert find("error") == []
    assert find("ERROR -of") == ['{"level": "ERROR"}']
    assert len(find("")) == 3
    with pytest.raises(ClientError, match="Invalid filter pattern"):
        find("{ $.level")


# log_queries


def query(server: EmulatorServer, text: str, *groups: str, **options: Any) -> list[dict[str, str]]:
    """Return the rows of a query over what was logged until now, without pointers."""
    logs, now = server.client("logs"), int(time.time())
    request = {"logGroupNames": list(groups), "startTime": now - 60, "endTime": now + 60, **options}
    query_id = logs.start_query(queryString=text, **request)["queryId"]
    results = logs.get_query_results(queryId=query_id)
    assert results["status"] == "Complete"
    rows = [{each["field"]: each["value"] for each in row} for row in results["results"]]
    return [{name: value for name, value in row.items() if name != "@ptr"} for row in rows]


def test_gap_stock_knows_no_field_of_json_and_ignores_what_it_does_not_know(stock: EmulatorServer) -> None:
    group = log_group(stock)
    log(stock, group, {"level": "INFO"}, {"level": "ERROR"})
    assert len(query(stock, 'fields level | filter level = "ERROR" | nonsense', group)) == 2


def test_a_query_runs_over_the_events_of_several_groups(emulator: EmulatorServer) -> None:
    first, second = log_group(emulator, "first"), log_group(emulator, "second")
    log(emulator, first, {"level": "ERROR", "image": {"id": "a"}}, {"level": "INFO", "image": {"id": "a"}})
    log(emulator, second, {"level": "ERROR", "image": {"id": "a"}}, "no JSON")
    text = 'filter level = "ERROR" | stats count(*) as errors by image.id, @log | sort @log desc'
    expected = [{"image.id": "a", "@log": f"{ACCOUNT_ID}:{group}", "errors": "1"} for group in (second, first)]
    assert query(emulator, text, first, second) == expected
    identifiers = [
        each["logGroupArn"]
        for group in (first, second)
        for each in emulator.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    ]
    now = int(time.time())
    started = emulator.client("logs").start_query(
        queryString=text, logGroupIdentifiers=identifiers, startTime=now - 60, endTime=now + 60
    )
    results = emulator.client("logs").get_query_results(queryId=started["queryId"])
    assert len(results["results"]) == 2
    assert results["statistics"]["recordsMatched"] == 2
    assert results["statistics"]["recordsScanned"] == 4


def test_a_query_sees_its_time_alone_and_returns_no_more_than_asked_for(emulator: EmulatorServer, group: str) -> None:
    log(emulator, group, "one", "two", "three")
    now = int(time.time())
    assert query(emulator, "fields @message", group, startTime=now - 600, endTime=now - 300) == []
    assert len(query(emulator, "fields @message", group, limit=2)) == 2


def test_an_event_of_a_result_is_found_again_by_its_pointer(emulator: EmulatorServer, group: str) -> None:
    log(emulator, group, {"level": "INFO"})
    logs, now = emulator.client("logs"), int(time.time())
    started = logs.start_query(logGroupName=group, queryString="fields level", startTime=now - 60, endTime=now + 60)
    [[level, pointer]] = logs.get_query_results(queryId=started["queryId"])["results"]
    assert level == {"field": "level", "value": "INFO"}
    record = logs.get_log_record(logRecordPointer=pointer["value"])["logRecord"]
    assert record["@message"] == '{"level": "INFO"}'


def test_a_faulty_query_is_refused_with_the_place(emulator: EmulatorServer, group: str) -> None:
    with pytest.raises(ClientError, match="does not know the command 'pattern'") as refused:
        query(emulator, "fields a | pattern @message", group)
    response: Any = refused.value.response
    assert response["Error"]["Code"] == "MalformedQueryException"
    assert response["queryCompileError"]["location"] == {"startCharOffset": 11, "endCharOffset": 18}


@pytest.mark.parametrize(
    ("groups", "options", "code"),
    [
        (["nowhere"], {}, "ResourceNotFoundException"),
        ([], {}, "InvalidParameterException"),
        (["group"], {"startTime": 2, "endTime": 1}, "InvalidParameterException"),
        (["group"], {"limit": 10_001}, "InvalidParameterException"),
    ],
)
def test_a_query_that_cannot_run_is_refused(
    emulator: EmulatorServer, group: str, groups: list[str], options: dict[str, int], code: str
) -> None:
    with pytest.raises(ClientError) as refused:
        query(emulator, "fields a", *[group if each == "group" else each for each in groups], **options)
    assert refused.value.response["Error"]["Code"] == code


def test_a_query_that_has_ended_cannot_be_stopped(emulator: EmulatorServer, group: str) -> None:
    logs = emulator.client("logs")
    query_id = logs.start_query(logGroupName=group, queryString="limit 1", startTime=0, endTime=1)["queryId"]
    with pytest.raises(ClientError, match="is not running"):
        logs.stop_query(queryId=query_id)
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        logs.stop_query(queryId="another")


def saved(server: EmulatorServer, prefix: str) -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = server.client("logs").describe_query_definitions(
        queryDefinitionNamePrefix=prefix
    )["queryDefinitions"]
    return definitions


def test_a_query_is_saved_changed_and_deleted(emulator: EmulatorServer) -> None:
    logs, folder = emulator.client("logs"), uuid4().hex
    query_id = logs.put_query_definition(name=f"{folder}/b", queryString="limit 1")["queryDefinitionId"]
    logs.put_query_definition(name=f"{folder}/a", queryString="limit 2", logGroupNames=["some"])
    assert [each["name"] for each in saved(emulator, folder)] == [f"{folder}/a", f"{folder}/b"]
    logs.put_query_definition(name=f"{folder}/b", queryString="limit 3", queryDefinitionId=query_id)
    [definition] = saved(emulator, f"{folder}/b")
    assert (definition["queryString"], definition["queryDefinitionId"]) == ("limit 3", query_id)
    pages = [logs.describe_query_definitions(queryDefinitionNamePrefix=folder, maxResults=1)]
    pages.append(
        logs.describe_query_definitions(queryDefinitionNamePrefix=folder, maxResults=1, nextToken=pages[0]["nextToken"])
    )
    assert [len(page["queryDefinitions"]) for page in pages] == [1, 1]
    assert "nextToken" not in pages[1]
    assert logs.delete_query_definition(queryDefinitionId=query_id)["success"]
    for refuse in (logs.delete_query_definition, logs.put_query_definition):
        further = {"name": "a", "queryString": "limit 1"} if refuse == logs.put_query_definition else {}
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            refuse(queryDefinitionId=query_id, **further)


def test_a_query_of_a_stack_has_its_id_as_reference_keeps_it_and_goes_with_the_stack(
    emulator: EmulatorServer,
) -> None:
    name = f"own/{uuid4().hex}"

    def resources(text: str) -> dict[str, Any]:
        properties = {"Name": name, "QueryString": text, "LogGroupNames": ["some"]}
        parameter = {
            "Type": "String",
            "Value": {"Fn::Join": [" ", [{"Ref": "Saved"}, {"Fn::GetAtt": ["Saved", "QueryDefinitionId"]}]]},
        }
        return {
            "Saved": {"Type": "AWS::Logs::QueryDefinition", "Properties": properties},
            "Id": {"Type": "AWS::SSM::Parameter", "Properties": {**parameter, "Name": f"/{name}"}},
        }

    with stack(emulator, resources("limit 1")) as stack_name:
        [before] = saved(emulator, name)
        written = emulator.client("ssm").get_parameter(Name=f"/{name}")["Parameter"]["Value"]
        assert written == f"{before['queryDefinitionId']} {before['queryDefinitionId']}"
        update_stack(emulator, stack_name, resources("limit 2"))
        [after] = saved(emulator, name)
        assert (after["queryString"], after["queryDefinitionId"]) == ("limit 2", before["queryDefinitionId"])
        assert after["logGroupNames"] == ["some"]
    assert saved(emulator, name) == []


def test_a_stack_whose_query_is_empty_fails_with_the_reason(emulator: EmulatorServer) -> None:
    resource = {"Type": "AWS::Logs::QueryDefinition", "Properties": {"Name": "empty", "QueryString": ""}}
    assert "queryString must have 1 to 10000 characters" in reasons_for_failed_stack(emulator, {"Saved": resource})
