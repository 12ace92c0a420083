"""The emulator refuses what AWS refuses: each guard next to the gap that it closes in stock MiniStack."""

import base64
import hashlib
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local_aws.tests.batch_reports import UNDERSTOOD_AS_SUCCESS, not_understood
from local_aws.tests.emulator_server import (
    ROLE,
    EmulatorServer,
    create_function,
    function_resource,
    reasons_for_failed_stack,
    refusal,
    stack,
    update_stack,
    wait_until,
)
from local_aws.tests.queues import queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

RETURN_NOTHING = "def handler(event, context):\n    return None"


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex[:8]}"


# message_delay

TOO_LATE = (
    "InvalidParameterValue",
    "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
)


def test_gap_stock_sends_a_message_with_any_delay(stock: EmulatorServer) -> None:
    assert queue(stock).send("late", DelaySeconds=901)


def test_a_message_may_wait_for_15_minutes_and_no_longer(emulator: EmulatorServer) -> None:
    some = queue(emulator)
    assert some.send("in time", DelaySeconds=900)
    assert refusal(some.send, body="late", DelaySeconds=901) == TOO_LATE


def test_a_batch_fails_only_the_entry_that_asks_for_too_long_a_delay(emulator: EmulatorServer) -> None:
    entries = [
        {"Id": "late", "MessageBody": "late", "DelaySeconds": 901},
        {"Id": "in-time", "MessageBody": "in time", "DelaySeconds": 900},
    ]
    answer = emulator.client("sqs").send_message_batch(QueueUrl=queue(emulator).url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["in-time"]
    code, message = TOO_LATE
    assert answer["Failed"] == [{"Id": "late", "SenderFault": True, "Code": code, "Message": message}]


# queue_event_source


def queue_resource(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def event_source_resources(queue: dict[str, Any], timeout: int = 30, **mapping: Any) -> dict[str, Any]:
    """Return the resources of a function with a queue as its event source."""
    source = {"FunctionName": {"Ref": "Worker"}, "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]}}
    return {
        "Queue": queue_resource(**queue),
        "Worker": function_resource(RETURN_NOTHING, Timeout=timeout),
        "Source": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {**source, **mapping}},
    }


def create_event_source(server: EmulatorServer, queue_arn: str, timeout: int = 30, **mapping: Any) -> Any:
    name = unique("worker")
    create_function(server, name, RETURN_NOTHING, Timeout=timeout)
    return server.client("lambda").create_event_source_mapping(FunctionName=name, EventSourceArn=queue_arn, **mapping)


SHORT_VISIBILITY = "Queue visibility timeout: 30 seconds is less than Function timeout: 31 seconds"
NO_WINDOW = "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10"
REFUSED_SOURCES = [
    pytest.param({}, {"timeout": 31}, SHORT_VISIBILITY, id="visibility below the function's timeout"),
    pytest.param({}, {"BatchSize": 11}, NO_WINDOW, id="a batch above 10 without a window"),
    pytest.param(
        {"FifoQueue": "true"},
        {"BatchSize": 11},
        "Batch size must be between 1 and 10 for FIFO queues",
        id="a batch above 10 on a FIFO queue",
    ),
    pytest.param(
        {"FifoQueue": "true"},
        {"MaximumBatchingWindowInSeconds": 1},
        "Batching window is not supported for FIFO queues",
        id="a window on a FIFO queue",
    ),
]


def test_gap_stock_accepts_an_event_source_that_cannot_work(stock: EmulatorServer) -> None:
    assert create_event_source(stock, queue(stock).arn, BatchSize=11)["UUID"]


@pytest.mark.parametrize(("attributes", "mapping", "message"), REFUSED_SOURCES)
def test_an_event_source_that_cannot_work_is_refused(
    emulator: EmulatorServer, attributes: dict[str, str], mapping: dict[str, Any], message: str
) -> None:
    arn = queue(emulator, ".fifo" if attributes.get("FifoQueue") else "", **attributes).arn
    refused = refusal(create_event_source, server=emulator, queue_arn=arn, **mapping)
    assert refused == ("InvalidParameterValueException", message)
    reasons = reasons_for_failed_stack(emulator, event_source_resources(attributes, **mapping))
    assert f"Invalid request provided: {message}" in reasons


def test_an_event_source_within_the_limits_is_accepted(emulator: EmulatorServer) -> None:
    arn = queue(emulator).arn
    assert create_event_source(emulator, arn, BatchSize=100, MaximumBatchingWindowInSeconds=1)["BatchSize"] == 100
    with stack(emulator, event_source_resources({}, BatchSize=10)):
        pass


def test_an_update_of_an_event_source_is_held_to_the_same_limits(emulator: EmulatorServer) -> None:
    mapping_id = create_event_source(emulator, queue(emulator).arn)["UUID"]
    update = emulator.client("lambda").update_event_source_mapping
    assert refusal(update, UUID=mapping_id, BatchSize=11) == ("InvalidParameterValueException", NO_WINDOW)
    assert update(UUID=mapping_id, BatchSize=11, MaximumBatchingWindowInSeconds=1)["BatchSize"] == 11

    with (
        stack(emulator, event_source_resources({}, BatchSize=10)) as name,
        pytest.raises(AssertionError, match=NO_WINDOW),
    ):
        update_stack(emulator, name, event_source_resources({}, BatchSize=11))


# invocation_payload


def event_of(size_bytes: int) -> bytes:
    """Return a JSON string of that many bytes."""
    return b'"' + b"x" * (size_bytes - 2) + b'"'


MEASURE = "def handler(event, context):\n    return len(event)"


def test_gap_stock_invokes_a_function_with_an_event_of_any_size(stock: EmulatorServer) -> None:
    create_function(stock, "measure", MEASURE)
    answer = stock.client("lambda").invoke(FunctionName="measure", Payload=event_of(6 * 1024 * 1024 + 1))
    assert json.loads(answer["Payload"].read()) == 6 * 1024 * 1024 - 1


@pytest.mark.parametrize(
    ("invocation_type", "limit", "message"),
    [
        (
            "RequestResponse",
            6 * 1024 * 1024,
            "Request must be smaller than 6291456 bytes for the InvokeFunction operation",
        ),
        (
            "Event",
            1024 * 1024,
            "1048577 byte payload is too large for the Event invocation type (limit 1048576 bytes)",
        ),
    ],
)
def test_an_event_above_the_limit_is_refused(
    emulator: EmulatorServer, invocation_type: str, limit: int, message: str
) -> None:
    name = unique("measure")
    create_function(emulator, name, MEASURE)
    call = emulator.client("lambda").invoke
    assert call(FunctionName=name, InvocationType=invocation_type, Payload=event_of(limit))["StatusCode"] < 300
    refused = refusal(call, FunctionName=name, InvocationType=invocation_type, Payload=event_of(limit + 1))
    assert refused == ("RequestEntityTooLargeException", message)


# batch_item_failures

# Answers as the message says; `MESSAGE` stands for its identifier.
REPORT = """
import json

def handler(event, context):
    record = event["Records"][0]
    return json.loads(record["body"].replace("MESSAGE", record["messageId"]))
"""
NOT_UNDERSTOOD = not_understood("messageId")


def is_deleted_after(server: EmulatorServer, response: Any) -> bool:
    """Let a function answer like this for a batch of one message; return whether Lambda then deletes the message."""
    lambda_, source, function = server.client("lambda"), queue(server, VisibilityTimeout="43200"), unique("report")
    create_function(server, function, REPORT)
    mapping_id = lambda_.create_event_source_mapping(
        FunctionName=function, EventSourceArn=source.arn, FunctionResponseTypes=["ReportBatchItemFailures"]
    )["UUID"]
    source.send(json.dumps(response))

    def processed() -> bool:
        result = lambda_.get_event_source_mapping(UUID=mapping_id)["LastProcessingResult"]
        return bool(result != "No records processed")

    wait_until(processed, "the message is processed")
    lambda_.delete_event_source_mapping(UUID=mapping_id)
    return source.counts()[1] == 0


def test_gap_stock_deletes_a_message_although_it_does_not_understand_the_report(stock: EmulatorServer) -> None:
    assert is_deleted_after(stock, NOT_UNDERSTOOD["a record that is not of the batch"])


@pytest.mark.parametrize("response", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_a_report_that_is_not_understood_fails_the_whole_batch(emulator: EmulatorServer, response: Any) -> None:
    assert not is_deleted_after(emulator, response)


def test_a_message_that_is_reported_as_failed_stays(emulator: EmulatorServer) -> None:
    assert not is_deleted_after(emulator, {"batchItemFailures": [{"itemIdentifier": "MESSAGE"}]})


@pytest.mark.parametrize("response", UNDERSTOOD_AS_SUCCESS.values(), ids=UNDERSTOOD_AS_SUCCESS)
def test_an_empty_report_is_a_success(emulator: EmulatorServer, response: Any) -> None:
    assert is_deleted_after(emulator, response)


# state_machine_transitions


def machine(**states: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


END: dict[str, Any] = {"Type": "Succeed"}
DANGLING = {
    "/StartAt": {**machine(A=END), "StartAt": "Gone"},
    "/States/A/Next": machine(A={"Type": "Pass", "Next": "Gone"}),
    "/States/A/Default": machine(
        A={"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "B"}], "Default": "Gone"}, B=END
    ),
    "/States/A/Choices[0]/Next": machine(
        A={"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "Gone"}], "Default": "B"}, B=END
    ),
    "/States/A/Catch[0]/Next": machine(
        A={
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Gone"}],
            "End": True,
        }
    ),
    "/States/A/Branches[0]/States/B/Next": machine(
        A={"Type": "Parallel", "Branches": [machine(B={"Type": "Pass", "Next": "Gone"})], "End": True}
    ),
    "/States/A/ItemProcessor/States/B/Next": machine(
        A={"Type": "Map", "ItemProcessor": machine(B={"Type": "Pass", "Next": "A"}), "End": True}
    ),
}


def missing(location: str) -> str:
    target = "A" if "ItemProcessor" in location else "Gone"  # A state outside a Map is no valid target inside it.
    return (
        f"Invalid State Machine Definition: 'MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {location}'"
    )


def create_machine(server: EmulatorServer, definition: dict[str, Any]) -> str:
    arn: str = server.client("stepfunctions").create_state_machine(
        name=unique("machine"), definition=json.dumps(definition), roleArn=ROLE
    )["stateMachineArn"]
    return arn


def machine_resource(definition: dict[str, Any]) -> dict[str, Any]:
    properties = {"RoleArn": ROLE, "DefinitionString": json.dumps(definition)}
    return {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}


def test_gap_stock_creates_a_machine_with_a_dangling_transition(stock: EmulatorServer) -> None:
    assert create_machine(stock, DANGLING["/States/A/Next"])


@pytest.mark.parametrize("location", DANGLING)
def test_a_machine_with_a_dangling_transition_is_refused(emulator: EmulatorServer, location: str) -> None:
    refused = refusal(create_machine, server=emulator, definition=DANGLING[location])
    assert refused == ("InvalidDefinition", missing(location))


def test_an_update_to_a_dangling_transition_is_refused(emulator: EmulatorServer) -> None:
    arn = create_machine(emulator, machine(A=END))
    update = emulator.client("stepfunctions").update_state_machine
    refused = refusal(update, stateMachineArn=arn, definition=json.dumps(DANGLING["/StartAt"]))
    assert refused == ("InvalidDefinition", missing("/StartAt"))


def test_a_stack_with_a_dangling_transition_fails(emulator: EmulatorServer) -> None:
    assert missing("/StartAt") in reasons_for_failed_stack(emulator, machine_resource(DANGLING["/StartAt"]))
    with (
        stack(emulator, machine_resource(machine(A=END))) as name,
        pytest.raises(AssertionError, match="MISSING_TRANSITION_TARGET"),
    ):
        update_stack(emulator, name, machine_resource(DANGLING["/StartAt"]))


# dashboard_body

GRAPH = {
    "type": "metric",
    "x": 0,
    "y": 0,
    "width": 24,
    "height": 6,
    "properties": {"region": "us-east-1", "metrics": [["AWS/SQS", "NumberOfMessagesSent", "QueueName", "some"]]},
}
WIDGETS = [
    GRAPH,
    {
        "type": "metric",
        "properties": {
            "region": "us-east-1",
            "period": 300,
            "metrics": [
                ["Own", "Age", {"id": "age", "stat": "p95"}],
                ["...", {"stat": "p50"}],
                [".", "Count", "lane", "fast"],
                [{"expression": "age / 60", "label": "minutes"}],
            ],
        },
    },
    {"type": "metric", "properties": {"region": "us-east-1", "annotations": {"alarms": ["arn"]}}},
    {"type": "alarm", "properties": {"alarms": ["arn:aws:cloudwatch:us-east-1:000000000000:alarm:some"]}},
    {"type": "log", "properties": {"region": "us-east-1", "query": "SOURCE 'group' | limit 1"}},
    {"type": "text", "properties": {"markdown": "# Title"}},
]


def dashboard(*widgets: Any) -> str:
    return json.dumps({"widgets": widgets})


def changed(**changes: Any) -> dict[str, Any]:
    """The graph with other members, or without those that are None."""
    return {name: value for name, value in {**GRAPH, **changes}.items() if value is not None}


def with_properties(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}


def test_gap_stock_stores_any_text_as_a_dashboard(stock: EmulatorServer) -> None:
    stock.client("cloudwatch").put_dashboard(DashboardName=unique("any"), DashboardBody="no JSON")


def test_a_dashboard_is_stored_as_it_is_written(emulator: EmulatorServer) -> None:
    name, cloudwatch = unique("dashboard"), emulator.client("cloudwatch")
    for body in (dashboard(), dashboard(*WIDGETS)):
        cloudwatch.put_dashboard(DashboardName=name, DashboardBody=body)
        assert cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"] == body
    resource = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": dashboard(*WIDGETS)}}
    with stack(emulator, {"Board": resource}):
        pass


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("no JSON", "", "Should be JSON"),
        ("[]", "", "Should have required property 'widgets'"),
        (dashboard(*[GRAPH] * 501), "/widgets", "not have more than 500 items"),
        (dashboard("text"), "/widgets/0", "Should be object"),
        (dashboard(GRAPH, changed(type=None)), "/widgets/1/type", "Should be one of"),
        (dashboard(changed(x=24)), "/widgets/0/x", "Should be an integer from 0 to 23"),
        (dashboard(changed(y="0")), "/widgets/0/y", "Should be an integer from 0"),
        (dashboard(changed(y=None)), "/widgets/0", "both properties 'x' and 'y', or neither"),
        (dashboard(changed(width=25)), "/widgets/0/width", "Should be an integer from 1 to 24"),
        (dashboard(changed(height=0)), "/widgets/0/height", "Should be an integer from 1 to 1000"),
        (dashboard(changed(properties=None)), "/widgets/0", "required property 'properties'"),
        (dashboard(with_properties("metric", metrics=[["a", "b"]])), "/widgets/0/properties", "property 'region'"),
        (dashboard(with_properties("metric", region="r")), "/widgets/0/properties", "'metrics' or 'annotations'"),
        (dashboard(with_properties("log", region="r")), "/widgets/0/properties", "property 'query'"),
        (dashboard(with_properties("alarm", alarms=[])), "/widgets/0/properties", "property 'alarms'"),
        (dashboard(with_properties("alarm", alarms="arn")), "/widgets/0/properties/alarms", "array of ARNs"),
        (dashboard(with_properties("text")), "/widgets/0/properties", "property 'markdown'"),
    ],
)
def test_a_body_that_is_no_dashboards_is_refused_with_the_place(
    emulator: EmulatorServer, body: str, path: str, message: str
) -> None:
    code, said = refusal(emulator.client("cloudwatch").put_dashboard, DashboardName="board", DashboardBody=body)
    assert code == "InvalidParameterInput"
    assert f'"dataPath": "{path}", "message": "' in said
    assert message in said


@pytest.mark.parametrize(
    "metric", ["text", [], ["Namespace"], ["Namespace", "Metric", "lane"], [1, 2], [{"label": "no expression"}]]
)
def test_a_metric_of_a_dashboard_is_complete(emulator: EmulatorServer, metric: Any) -> None:
    body = dashboard(with_properties("metric", region="r", metrics=[["a", "b"], metric]))
    _, said = refusal(emulator.client("cloudwatch").put_dashboard, DashboardName="board", DashboardBody=body)
    assert '"dataPath": "/widgets/0/properties/metrics/1"' in said


@pytest.mark.parametrize("period", [0, 45, 90, "300"])
def test_a_period_of_a_dashboard_is_one_of_cloudwatch(emulator: EmulatorServer, period: Any) -> None:
    body = dashboard(with_properties("metric", region="r", metrics=[["a", "b"]], period=period))
    _, said = refusal(emulator.client("cloudwatch").put_dashboard, DashboardName="board", DashboardBody=body)
    assert "Should be a multiple of 60" in said


@pytest.mark.guards("emulator-stack-dashboard-check")
def test_a_stack_whose_dashboard_is_none_fails_with_the_reason(emulator: EmulatorServer) -> None:
    resource = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": dashboard(changed(type="pie"))}}
    assert "/widgets/0/type" in reasons_for_failed_stack(emulator, {"Board": resource})


# form_checksum

FILE = b"a file of which the form tells the checksum"


def send_form(
    server: EmulatorServer, http: httpx.Client, *, file: bytes = FILE, seconds: int = 60, **changes: str
) -> httpx.Response:
    """Presign a form for FILE, with everything that a strict form requires, and send it with these changes."""
    s3, bucket = server.client("s3"), unique("bucket")
    s3.create_bucket(Bucket=bucket)
    fields = {
        "Content-Type": "image/jpeg",
        "x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(FILE).digest()).decode(),
    }
    form = s3.generate_presigned_post(
        Bucket=bucket,
        Key="uploads/1",
        Fields=dict(fields),
        Conditions=[*({name: value} for name, value in fields.items()), ["content-length-range", len(FILE), len(FILE)]],
        ExpiresIn=seconds,
    )
    sent = {**form["fields"], **{name.replace("_", "-"): value for name, value in changes.items()}}
    return http.post(form["url"], data={name: value for name, value in sent.items() if value}, files={"file": file})


OTHER = FILE[::-1]


def test_gap_stock_stores_a_file_with_another_checksum_than_its_form_states(
    stock: EmulatorServer, http: httpx.Client
) -> None:
    assert send_form(stock, http, file=OTHER).status_code == 204


def test_a_file_with_another_checksum_than_its_form_states_is_refused(
    emulator: EmulatorServer, http: httpx.Client
) -> None:
    answer = send_form(emulator, http, file=OTHER)
    assert (answer.status_code, "<Code>BadDigest</Code>" in answer.text) == (400, True)
    assert send_form(emulator, http).status_code == 204
