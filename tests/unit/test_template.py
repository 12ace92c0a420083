"""The invariants of the expanded template: no configuration error loses a message, a byte or a page."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from darkroom.aws.bulk.batches_table import BATCHES
from darkroom.aws.edge.made_variants import MADE_ON_REQUEST
from darkroom.aws.images.images_table import DUE_INDEX, LISTED_INDEX, NEWEST_INDEX, REFERENCES_INDEX, WAITING_INDEX
from darkroom.aws.usage.usage_table import PARTS
from darkroom.domain.bulk.batches import NO_COUNTS, Stop, close, end, open_batch, stop
from darkroom.domain.edge.instructions import KEPT_DAYS
from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import DUE_SHARDS, LIST_SHARDS, Image
from darkroom.domain.images.limits import MAX_BODY_BYTES, STANDARD_INPUT_FORMATS, Limits
from darkroom.domain.images.transitions import EDIT_DELAY_SECONDS
from darkroom.domain.kernel.lanes import FAST, FETCH_WORKERS, LANE_DELAY_SECONDS, LANES, Lane
from darkroom.domain.kernel.retry import MAX_RECEIVES
from darkroom.domain.kernel.tenants import AUTHORIZER_CACHE_SECONDS, DEFAULT_TENANT
from darkroom.domain.kernel.visibility import PREFIXES, Visibility
from darkroom.domain.schedules.hold import RELEASE
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from darkroom.domain.uploads.upload_notification import upload_key
from darkroom.egress import EgressPolicy
from darkroom.http.kernel.problems import PROBLEMS
from darkroom.settings import AccessSettings, InputSettings, MissingSettings, ReachSettings
from darkroom.wiring.egress.egress_policy import policy_of
from darkroom_cli.doctor.template import Values
from local_aws.event_patterns import passes
from repository.expand_template import (
    OBSERVABILITY,
    Template,
    access_log,
    deployed,
    expanded_template,
    http_api,
    is_optional,
    raw_template,
    referred,
    resources,
    with_all_parts,
)
from repository.openapi.routes import ROUTES
from repository.report import ROOT
from tests.support.template import (
    DELETERS,
    DELIVERY_FOLDERS,
    FUNCTION_FOLDERS,
    LOG_DELIVERIES,
    PAGE_ROUTES,
    statements,
    unless_polled,
)

QUEUES = resources("AWS::SQS::Queue")
FUNCTIONS = resources("AWS::Lambda::Function")
STREAM_SOURCES = {
    name: source
    for name, source in resources("AWS::Lambda::EventSourceMapping").items()
    if source["EventSourceArn"]["Fn::GetAtt"][1] == "StreamArn"
}
SOURCES = {
    name: source for name, source in resources("AWS::Lambda::EventSourceMapping").items() if name not in STREAM_SOURCES
}
CONSUMERS = sorted(
    name.removesuffix("Subscription")
    for name, subscription in resources("AWS::SNS::Subscription").items()
    if subscription["Protocol"] == "sqs"
)
ROLES = resources("AWS::IAM::Role")


OPEN_ROUTES = frozenset({"GET /openapi.json", "HEAD /openapi.json"}) | PAGE_ROUTES
"""Routes that anybody may call in every environment."""


WILDCARDS_WITH_A_REASON: dict[str, str] = {
    "xray:PutTraceSegments": "X-Ray has no resources",
    "xray:PutTelemetryRecords": "X-Ray has no resources",
    "dynamodb:ListStreams": "it has no resources",
    **dict.fromkeys(LOG_DELIVERIES, "log deliveries have no resources"),
}


def dead_letter_queues() -> dict[str, str]:
    """The dead-letter queue of each queue that has one."""
    return {
        name: target
        for name, queue in QUEUES.items()
        if (target := referred(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))) is not None
    }


def concurrency(source: dict[str, Any]) -> tuple[int, ...]:
    """How many workers an event source may have: its own number, or its parameter's maximum and default."""
    limit = unless_polled(source)["MaximumConcurrency"]
    if isinstance(limit, int):
        return (limit,)
    parameter = raw_template()["Parameters"][limit["Ref"]]
    return parameter["MinValue"], parameter["Default"], parameter["MaxValue"]


def source_of(queue: str) -> dict[str, Any]:
    """The one event source that reads a queue."""
    (source,) = [source for source in SOURCES.values() if referred(source["EventSourceArn"]) == queue]
    return source


def told(variable: str) -> dict[str, Any]:
    """What each function is told by a variable, if it is told that."""
    variables = {name: function["Environment"]["Variables"] for name, function in FUNCTIONS.items()}
    return {name: each[variable] for name, each in variables.items() if variable in each}


def permissions_of(function: str) -> list[dict[str, Any]]:
    """Who else may invoke a function."""
    return [
        each for each in resources("AWS::Lambda::Permission").values() if referred(each["FunctionName"]) == function
    ]


def folder_of(logical_id: str) -> str:
    """SubmitImageFunction → submit_image."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", logical_id.removesuffix("Function")).lower()


def given_up_to(source: dict[str, Any]) -> str | None:
    """The queue that gets what a stream's source gave up."""
    return referred(source.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"))


WITHOUT_DEAD_LETTERS = {"EditsQueue"}
"""An edit that fails ends in its lane's dead letters, by its row; a message that kills its worker is forgotten."""


@pytest.mark.parametrize("name", sorted(QUEUES.keys() - WITHOUT_DEAD_LETTERS))
def test_every_queue_has_a_dead_letter_queue_or_is_one(name: str) -> None:
    has, are = dead_letter_queues(), {*dead_letter_queues().values(), *map(given_up_to, STREAM_SOURCES.values())}
    assert (name in has) != (name in are), "exactly one of the two: no dead-letter queue of a dead-letter queue"


@pytest.mark.parametrize("name", SOURCES)
def test_visibility_is_six_timeouts_and_the_batching_window(name: str) -> None:
    source = SOURCES[name]
    queue, function = (
        QUEUES[referred(source["EventSourceArn"]) or ""],
        FUNCTIONS[referred(source["FunctionName"]) or ""],
    )
    window = source.get("MaximumBatchingWindowInSeconds", 0)
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"] + window


def test_the_worker_knows_its_lanes_visibility() -> None:
    seconds = FUNCTIONS["TranscodeImageFunction"]["Environment"]["Variables"]["VISIBILITY_SECONDS"]
    lanes = {QUEUES[f"{lane.capitalize()}Queue"]["VisibilityTimeout"] for lane in LANES}
    assert {int(seconds)} == lanes


def test_a_lanes_queue_keeps_messages_as_long_as_the_lane_says() -> None:
    kept = {lane: QUEUES[f"{lane.capitalize()}Queue"]["MessageRetentionPeriod"] for lane in LANES}
    assert kept == {name: lane.retention_seconds for name, lane in LANES.items()}


def test_whoever_accepts_and_whoever_develops_know_the_same_formats() -> None:
    knowing = ("SubmitImage", "AcceptUpload", "FetchOriginal", "TranscodeImage")
    formats = {"Ref": "ExtraInputFormats"}
    assert told("EXTRA_INPUT_FORMATS") == dict.fromkeys([f"{name}Function" for name in knowing], formats)


def test_whoever_takes_announcements_and_whoever_develops_know_the_same_size() -> None:
    knowing = ("BeginUpload", "FetchOriginal", "ServePage", "SubmitImage", "SweepDueBulk", "TranscodeImage")
    limit = {"Ref": "MaxUploadBytes"}
    assert told("MAX_FILE_BYTES") == dict.fromkeys([f"{name}Function" for name in knowing], limit)
    parameter = raw_template()["Parameters"]["MaxUploadBytes"]
    assert parameter["Default"] == Limits().max_bytes
    assert parameter["MinValue"] == MAX_BODY_BYTES, "what fits into a request fits"
    held = 3 * parameter["MaxValue"] + 200_000_000  # the bytes, what is on the wire, the interpreter with boto3
    for function in ("AcceptUploadFunction", "FetchOriginalFunction"):
        assert held <= FUNCTIONS[function]["MemorySize"] * 1024 * 1024


def allowed_from_outside() -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """The queues and the statement of each policy that lets others send, by the policy's name."""
    return {
        name: (policy["Queues"], statement)
        for name, policy in resources("AWS::SQS::QueuePolicy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    }


def test_these_may_send_to_queues_from_outside() -> None:
    assert allowed_from_outside().keys() == {"UploadQueuePolicy", *(f"{name}QueuesPolicy" for name in CONSUMERS)}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_the_topic_alone_may_send_to_a_consumers_queues(consumer: str) -> None:
    queues, statement = allowed_from_outside()[f"{consumer}QueuesPolicy"]
    assert queues == [{"Ref": f"{consumer}Queue"}, {"Ref": f"{consumer}DeadLetters"}]
    assert (statement["Principal"], statement["Action"]) == ({"Service": "sns.amazonaws.com"}, "sqs:SendMessage")
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": "EventsTopic"}}}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_gets_events_of_known_types_as_they_were_published_and_loses_none(consumer: str) -> None:
    subscription = resources("AWS::SNS::Subscription")[f"{consumer}Subscription"]
    assert subscription["TopicArn"] == {"Ref": "EventsTopic"}
    place, named = subscription["Endpoint"]["Fn::Select"]
    assert (place, named[0]) == (0, {"Fn::GetAtt": [f"{consumer}Queue", "Arn"]})
    assert named[1] == {"Ref": f"{consumer}QueuesPolicy"}, "it is there before: SNS gives up what a queue refuses"
    assert subscription["RawMessageDelivery"] is True
    assert referred(subscription["RedrivePolicy"]["deadLetterTargetArn"]) == f"{consumer}DeadLetters"
    types = subscription["FilterPolicy"]["type"]
    assert types and set(types) <= {kind.value for kind in EventType}
    assert consumer != "Webhooks" or set(types) == {kind.value for kind in EventType}, "they may ask for any"
    changing = {"done", "failed", "expired", "cancelled", "deleted", "variants_added", "redeveloped"}
    assert {f"image.{kind}" for kind in changing} <= set(types), "which change what is stored, or unfinished"


def test_a_batch_is_counted_when_it_is_closed_or_stops_and_no_stream_has_a_third_reader() -> None:
    readers = Counter(source["EventSourceArn"]["Fn::GetAtt"][0] for source in STREAM_SOURCES.values())
    assert max(readers.values()) == 2
    filters = STREAM_SOURCES["CountBatchesFunctionBatchesTable"]["FilterCriteria"]["Filters"]
    opened = open_batch("ba_1p7t6r04aaqprxvrggww5m0fzk", tenant_id="acme", now=0)
    closed, stopped = close(opened, now=1), stop(opened, Stop.CLIENT, now=1)
    ended = end(closed, NO_COUNTS, now=2)
    for before, after, counts in (
        (opened, closed, True),
        (opened, stopped, True),
        (closed, stop(closed, Stop.FAILURE, now=2), True),
        (closed, ended, False),
        (None, opened, False),
    ):
        images = {"OldImage": before, "NewImage": after}
        write = {name: BATCHES.item_of(row) for name, row in images.items() if row is not None}
        assert passes(filters, {"dynamodb": {"Keys": {"part": {"S": "batch"}}, **write}}) is counts
        assert not passes(filters, {"dynamodb": {"Keys": {"part": {"S": "sum#0"}}, **write}})


@pytest.mark.parametrize("name", ["ImagesTable", "EndpointsTable", "BatchesTable"])
def test_a_stream_has_time_to_be_read_again_until_it_forgets(name: str) -> None:
    source = STREAM_SOURCES[f"PublishEventsFunction{name}"]
    assert source["EventSourceArn"] == {"Fn::GetAtt": [name, "StreamArn"]}
    assert source["StartingPosition"] == "TRIM_HORIZON", "what was written while the mapping was made is told, too"
    assert source["BisectBatchOnFunctionError"] is True
    # An outage of hours is survived: the age ends the retries, not their number.
    assert source["MaximumRetryAttempts"] == 10_000
    assert 20 * 3600 <= source["MaximumRecordAgeInSeconds"] < 24 * 3600
    assert given_up_to(source) == "UnpublishedEvents"
    table = resources("AWS::DynamoDB::Table")[name]
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_s3_alone_may_send_to_the_upload_queue_from_outside_and_tells_of_uploads_of_this_stacks_bucket_alone() -> None:
    bucket = expanded_template()["Resources"]["UploadsBucket"]
    queues, statement = allowed_from_outside()["UploadQueuePolicy"]
    assert (queues, statement["Action"]) == ([{"Ref": "UploadQueue"}], "sqs:SendMessage")
    assert statement["Principal"] == {"Service": "s3.amazonaws.com"}
    name, parts = bucket["Properties"]["BucketName"]["Fn::Sub"]
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnEquals": {"aws:SourceArn": {"Fn::Sub": [f"arn:${{AWS::Partition}}:s3:::{name}", parts]}},
    }
    assert bucket["DependsOn"] == "UploadQueuePolicy", "S3 refuses a queue that it may not send to yet"
    (configuration,) = resources("AWS::S3::Bucket")["UploadsBucket"]["NotificationConfiguration"]["QueueConfigurations"]
    assert (configuration["Event"], configuration["Queue"]) == (
        "s3:ObjectCreated:*",
        {"Fn::GetAtt": ["UploadQueue", "Arn"]},
    )
    assert configuration["Filter"]["S3Key"]["Rules"] == [{"Name": "prefix", "Value": upload_key("")}]


def test_the_name_of_the_uploads_bucket_is_one_that_s3_takes_in_every_stack() -> None:
    name, parts = resources("AWS::S3::Bucket")["UploadsBucket"]["BucketName"]["Fn::Sub"]
    # arn:aws:cloudformation:REGION:ACCOUNT:stack/NAME/UUID
    assert parts == {"StackUuid": {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}}
    assert re.fullmatch(r"[a-z0-9-]{3,63}", name.replace("${StackUuid}", "51af3dc0-da77-11e4-872e-1234567db123"))


def test_what_was_uploaded_for_nobody_is_forgotten_but_no_sooner_than_a_dead_letter_of_it() -> None:
    rule = lifecycle("UploadsBucket")["ForgetOrphans"]
    assert rule["ExpirationInDays"] * 86_400 > QUEUES["UploadDeadLetters"]["MessageRetentionPeriod"]


def test_every_choice_of_formats_is_one_that_the_settings_take() -> None:
    parameter = raw_template()["Parameters"]["ExtraInputFormats"]
    accepted = {
        InputSettings.read({"EXTRA_INPUT_FORMATS": value}).input_formats for value in parameter["AllowedValues"]
    }
    assert len(accepted) == 4
    assert InputSettings.read({"EXTRA_INPUT_FORMATS": parameter["Default"]}).input_formats == STANDARD_INPUT_FORMATS


@pytest.mark.guards("retry-lanes-report-failures")
@pytest.mark.parametrize("name", [*SOURCES, *STREAM_SOURCES])
def test_every_source_reports_batch_item_failures(name: str) -> None:
    assert (SOURCES | STREAM_SOURCES)[name]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_one_that_lambda_accepts(name: str) -> None:
    source = SOURCES[name]
    assert source["BatchSize"] <= 10 or source.get("MaximumBatchingWindowInSeconds", 0) >= 1
    assert all(2 <= workers <= 1000 for workers in concurrency(source))


def test_as_many_count_usage_at_once_as_a_tenants_sums_have_parts() -> None:
    source = source_of("UsageQueue")
    assert concurrency(source) == (PARTS,)
    assert 3 * source["BatchSize"] / 100 < 15, "each event of another tenant, and a second for each transaction"


def test_decode_batches_are_small() -> None:
    sizes = [source_of(f"{lane.capitalize()}Queue")["BatchSize"] for lane in LANES]
    assert max(sizes) <= 2, "a timeout or a memory kill costs every image of the batch an attempt"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reserved_concurrency_holds_the_sum_of_the_lanes_maxima_or_is_unset(name: str) -> None:
    maxima = [max(concurrency(source)) for source in SOURCES.values() if referred(source["FunctionName"]) == name]
    reserved = FUNCTIONS[name].get("ReservedConcurrentExecutions", NO_VALUE)
    if reserved != NO_VALUE:
        condition, value, otherwise = reserved["Fn::If"]
        assert (condition, otherwise) == ("CapacityIsReserved", NO_VALUE)
        # The sum cannot be computed in a template: `./darkroom capacity` prints it.
        assert value == {"Ref": "ReservedWorkers"} if maxima else value > 0


def test_workers_releases_and_the_sweeper_can_be_given_capacity_of_their_own() -> None:
    reserved = {name for name, function in FUNCTIONS.items() if "ReservedConcurrentExecutions" in function}
    assert reserved == {"TranscodeImageFunction", "ReleaseImagesFunction", "SweepDueImagesFunction"}


@pytest.mark.parametrize(("name", "dead_letters"), sorted(dead_letter_queues().items()))
def test_dead_letters_are_kept_longer_than_their_source_keeps(name: str, dead_letters: str) -> None:
    assert QUEUES[dead_letters]["MessageRetentionPeriod"] > QUEUES[name]["MessageRetentionPeriod"]
    assert QUEUES[dead_letters]["MessageRetentionPeriod"] == 14 * 86_400
    assert QUEUES[name]["MessageRetentionPeriod"] <= 4 * 86_400


@pytest.mark.parametrize("lane", [*LANES, "upload"])
def test_a_message_is_received_as_often_as_the_worker_believes(lane: str) -> None:
    assert QUEUES[f"{lane.capitalize()}Queue"]["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES


def test_an_outage_of_hours_leaves_what_is_to_be_held_in_its_queue_and_two_crashes_of_its_reader_make_none_late() -> (
    None
):
    queue = QUEUES["HoldQueue"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"] >= 4 * 3600
    # Anything for the hold queue is more than 15 minutes ahead; nearer images go to their lane at once.
    source = source_of("HoldQueue")
    wait_seconds = QUEUES["HoldQueue"]["VisibilityTimeout"]
    assert source["MaximumBatchingWindowInSeconds"] + 2 * wait_seconds <= LANE_DELAY_SECONDS
    assert RELEASE.width_seconds + RELEASE.lead_seconds <= LANE_DELAY_SECONDS


def test_holds_outlive_the_longest_delay() -> None:
    rule = lifecycle("HoldsBucket")["ForgetOrphans"]
    assert rule["ExpirationInDays"] * 86_400 > MAX_DELAY_SECONDS + 14 * 86_400


def test_the_fetch_queue_has_the_workers_whose_rate_the_sweeper_calculates_with() -> None:
    assert concurrency(source_of("FetchQueue")) == (FETCH_WORKERS,)


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_a_lane_has_the_workers_that_the_functions_are_told(lane: Lane) -> None:
    parameter = f"{lane.name.capitalize()}Concurrency"
    source = source_of(f"{lane.name.capitalize()}Queue")
    assert unless_polled(source)["MaximumConcurrency"] == {"Ref": parameter}
    assert raw_template()["Parameters"][parameter]["Default"] == lane.concurrency
    for function in FUNCTIONS.values():
        assert function["Environment"]["Variables"][f"{lane.name.upper()}_CONCURRENCY"] == {"Ref": parameter}


@pytest.mark.parametrize("bulk", ["true", "false"])
@pytest.mark.guards("bulk-lane-served-without-part")
def test_every_lane_is_one_from_whose_queue_workers_take_whether_or_not_there_is_bulk(bulk: str) -> None:
    stack = deployed(Environment="prod", Access="keys", Bulk=bulk)
    taken = [it["Properties"]["EventSourceArn"] for it in stack.values() if it["Type"].endswith("EventSourceMapping")]
    for function in (it["Properties"] for it in stack.values() if it["Type"] == "AWS::Lambda::Function"):
        for lane in LANES:
            queue = function["Environment"]["Variables"][f"{lane.upper()}_QUEUE_URL"]
            assert {"Fn::GetAtt": [queue["Ref"], "Arn"]} in taken
    assert ("TranscodeImageFunctionBulkLane" in stack) == (bulk == "true")


@pytest.mark.guards("bulk-edit-fifo-one-at-a-time", "bulk-edit-fifo-reports-failures")
def test_edits_have_a_fifo_queue_of_high_throughput_only_where_it_is_chosen() -> None:
    usual, ordered = (
        deployed(Environment="prod", Access="keys", EditOrder=order)
        for order in raw_template()["Parameters"]["EditOrder"]["AllowedValues"]
    )
    assert ordered.keys() - usual.keys() == {
        *("EditsQueue", "EditsQueuePolicy", "TranscodeImageFunctionEdits", "EditsWaitAlarm")
    }
    queue, source = ordered["EditsQueue"]["Properties"], ordered["TranscodeImageFunctionEdits"]["Properties"]
    assert (
        queue.items()
        >= {
            "FifoQueue": True,
            "DeduplicationScope": "messageGroup",
            "FifoThroughputLimit": "perMessageGroupId",
            "DelaySeconds": EDIT_DELAY_SECONDS,
            "VisibilityTimeout": usual["SlowQueue"]["Properties"]["VisibilityTimeout"],
            "SqsManagedSseEnabled": True,
        }.items()
    )
    assert queue["MessageRetentionPeriod"] > MAX_RECEIVES * queue["VisibilityTimeout"], "the row gives up before"
    assert (source["BatchSize"], source["FunctionResponseTypes"]) == (1, ["ReportBatchItemFailures"])
    for stack, knowing in ((usual, set()), (ordered, {"SubmitImageFunction", "TranscodeImageFunction"})):
        assert knowing == {
            name
            for name, resource in stack.items()
            if resource["Type"] == "AWS::Lambda::Function"
            and "EDITS_QUEUE_URL" in resource["Properties"]["Environment"]["Variables"]
        }


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_a_lane_has_provisioned_pollers_instead_of_a_bound_and_by_default_none(lane: Lane) -> None:
    name = lane.name.capitalize()
    source = SOURCES[f"TranscodeImageFunction{name}Lane"]
    pollers = {"Ref": f"{name}Pollers"}
    assert source["ScalingConfig"]["Fn::If"][:2] == ["LanesArePolled", {}], "AWS takes one of the two"
    assert source["ProvisionedPollerConfig"] == {
        "Fn::If": ["LanesArePolled", {"MinimumPollers": pollers, "MaximumPollers": pollers}, {"Ref": "AWS::NoValue"}]
    }
    parameter = raw_template()["Parameters"][f"{name}Pollers"]
    assert parameter["Default"] == ("0" if lane == FAST else "2"), "the first lane's number decides for all"
    allowed = [number for number in range(1002) if re.fullmatch(parameter["AllowedPattern"], str(number))]
    assert allowed == [*([0] if lane == FAST else []), *range(2, 101)], (
        "Lambda's least is 2, and a lane has at most 1000 workers"
    )


def test_every_dead_letter_queue_is_one_that_the_sweeper_and_the_archiver_look_after() -> None:
    looked_after = {name: value["Fn::Sub"] for name, value in told("DEAD_LETTER_QUEUES").items()} | {
        "the output": expanded_template()["Outputs"]["DeadLetterQueues"]["Value"]["Fn::Sub"]
    }
    assert {"SweepDueImagesFunction", "ArchiveDeadLettersFunction"} < looked_after.keys()
    for queue, dead_letters in dead_letter_queues().items():  # a receiver sets messages aside that do not verify
        for source in resources("AWS::Lambda::EventSourceMapping").values():
            function = source["FunctionName"]["Ref"]
            if source["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]} and function in looked_after:
                name = queue.removesuffix("Queue")
                name = "events" if name in CONSUMERS else name.lower()
                assert f"{name}=${{{dead_letters}}}" in looked_after[function].split(",")
    consumers = ("CountUsage", "CreateDeliveries", "DeliverEvent")
    for receiver in (*consumers, "AcceptUpload", "FetchOriginal", "HoldImages", "TranscodeImage"):
        del looked_after[f"{receiver}Function"]
    for lane_name, urls in looked_after.items():
        named = dict(pair.split("=") for pair in urls.split(","))
        # Consumers' hold events, which can be published again, and those of deliveries repeat their rows: nobody has to
        # keep them.
        of_others = {*CONSUMERS, "Delivery"}
        of_images = [
            name for name in dead_letter_queues().values() if name.removesuffix("DeadLetters") not in of_others
        ]
        assert sorted(named.values()) == sorted(f"${{{name}}}" for name in of_images), lane_name
        for lane in LANES:  # where the sweeper looks for a lane's dead letters
            assert named[lane] == f"${{{dead_letter_queues()[f'{lane.capitalize()}Queue']}}}", lane_name


def test_every_function_folder_has_a_resource_an_event_and_a_test_and_nothing_else_has() -> None:
    assert sorted(folder_of(name) for name in FUNCTIONS) == FUNCTION_FOLDERS
    folders = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    assert folders == sorted([*FUNCTION_FOLDERS, *DELIVERY_FOLDERS])
    assert sorted(path.stem for path in (ROOT / "events").glob("*.json")) == folders
    for folder in folders:
        assert (ROOT / "tests" / "unit" / f"test_{folder}.py").exists(), folder
        assert len(list(ROOT.glob(f"layers/core/darkroom/operations/*/{folder}.py"))) == 1, folder


@pytest.mark.parametrize("folder", [*FUNCTION_FOLDERS, *DELIVERY_FOLDERS])
def test_a_function_is_one_file(folder: str) -> None:
    assert [path.name for path in (ROOT / "functions" / folder).iterdir() if path.name != "__pycache__"] == ["app.py"]


def policies_of(name: str) -> list[dict[str, Any]]:
    """The statements of the one policy of a bucket, a queue or a topic."""
    policies = [
        policy["PolicyDocument"]["Statement"]
        for kind, attached in (
            ("AWS::S3::BucketPolicy", "Bucket"),
            ("AWS::SQS::QueuePolicy", "Queues"),
            ("AWS::SNS::TopicPolicy", "Topics"),
        )
        for policy in resources(kind).values()
        if name in {referred(reference) for reference in as_list(policy[attached])}
    ]
    assert len(policies) == 1, f"{name} needs one policy: a second one would take the first one's place"
    (statements_of_it,) = policies
    assert isinstance(statements_of_it, list)
    return statements_of_it


NEEDING_TLS = {
    **dict.fromkeys(resources("AWS::S3::Bucket"), "s3:*"),
    **dict.fromkeys(QUEUES, "sqs:*"),
    **dict.fromkeys(resources("AWS::SNS::Topic"), "sns:Publish"),
}
"""The statements that refuse plain http, with the actions that the service's policies can name."""


@pytest.mark.guards("storage-topic-plain-http-refused", case="EventsTopic")
@pytest.mark.parametrize("name", NEEDING_TLS)
def test_buckets_queues_and_topics_refuse_plain_http(name: str) -> None:
    (denied,) = [statement for statement in policies_of(name) if "aws:SecureTransport" in str(statement)]
    bucket_and_objects = [{"Fn::GetAtt": [name, "Arn"]}, {"Fn::Sub": f"${{{name}.Arn}}/*"}]
    assert (denied["Principal"], denied["Action"]) == ("*", NEEDING_TLS[name])
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    if name.endswith("Bucket"):
        assert denied["Resource"] == bucket_and_objects, "the bucket and what lies in it"
    else:
        assert denied["Resource"] in ("*", bucket_and_objects[0])


@pytest.mark.guards("storage-original-deleters-named", case="OriginalsBucket")
@pytest.mark.parametrize("name", DELETERS)
def test_what_was_accepted_and_made_is_written_once_and_deleted_by_few(name: str) -> None:
    refusals = {statement["Sid"]: statement for statement in policies_of(name) if not is_optional(statement)}
    assert {statement["Effect"] for statement in refusals.values()} == {"Deny"}
    every_object = {"Fn::Sub": f"${{{name}.Arn}}/*"}
    write, delete = refusals["RefuseOverwriting"], refusals["RefuseDeletionByOthers"]
    assert (write["Principal"], write["Action"], write["Resource"]) == ("*", "s3:PutObject", every_object)
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
    assert write["Condition"] == {
        "Null": {"s3:if-none-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }
    assert (delete["Principal"], delete["Resource"]) == ("*", every_object)
    assert delete["Action"] == ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    named = delete["Condition"]["ArnNotLike"]["aws:PrincipalArn"]
    assert delete["Condition"].keys() == {"ArnNotLike"}
    assert named == [
        *({"Fn::GetAtt": [role, "Arn"]} for role in DELETERS[name]),
        {"Fn::If": ["HasOperators", {"Ref": "Operators"}, NO_VALUE]},
    ]
    prefix = f"${{{name}.Arn}}/"
    deleting = {
        role
        for role in ROLES
        for statement in statements(role, optional=True)
        if prefix in str(statement["Resource"]) and "Delete" in str(statement["Action"])
    }
    assert deleting == set(DELETERS[name]), "who may delete by its role may do so by the bucket's policy, and no other"


@pytest.mark.guards("storage-edge-reads-no-private")
def test_the_edge_reads_what_is_not_private_and_nothing_else_and_only_the_one_of_the_parameter() -> None:
    prefixes = [PREFIXES[visibility] for visibility in (Visibility.PUBLIC, Visibility.SIGNED)]
    edge = {"Fn::Select": [1, {"Fn::Split": [",", {"Fn::Sub": "${Edge},,,,,"}]}]}
    for statements_of, action, read in (
        (policies_of("OutputsBucket"), "s3:GetObject", [{"Fn::Sub": f"${{OutputsBucket.Arn}}/{p}*"} for p in prefixes]),
        (resources("AWS::KMS::Key")["Key"]["KeyPolicy"]["Statement"], "kms:Decrypt", "*"),
    ):
        (statement,) = [statement["Fn::If"] for statement in statements_of if is_optional(statement)]
        assert statement[0] == "HasEdge"
        assert statement[1] == {
            "Sid": "LetTheEdgeRead",
            "Effect": "Allow",
            "Principal": {"Service": "cloudfront.amazonaws.com"},
            "Action": action,
            "Resource": read,
            "Condition": {"StringEquals": {"aws:SourceArn": edge}},
        }


def test_a_retained_bucket_keeps_its_policy() -> None:
    template = expanded_template()["Resources"]
    for policy in (resource for resource in template.values() if resource["Type"] == "AWS::S3::BucketPolicy"):
        bucket = template[referred(policy["Properties"]["Bucket"])]
        assert policy["DeletionPolicy"] == bucket["DeletionPolicy"] == "RetainExceptOnCreate"


def test_nobody_outside_the_stack_may_publish_events() -> None:
    (refused,) = policies_of("EventsTopic")
    assert (refused["Effect"], refused["Sid"]) == ("Deny", "RefusePlainHttp")


@pytest.mark.parametrize("name", ["WarningAlarms", "CriticalAlarms"])
def test_alarms_of_this_account_alone_may_publish_from_outside(name: str) -> None:
    (allowed,) = [statement for statement in policies_of(name) if statement["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert allowed["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    (source,) = allowed["Condition"]["ArnLike"]["aws:SourceArn"].values()
    assert source == "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_no_statement_has_a_wildcard_action_or_resource_without_a_reason() -> None:
    every = [(role, statement) for role in ROLES for statement in statements(role, optional=True)]
    assert every
    for name, statement in every:
        assert statement["Effect"] == "Allow" and statement.get("Sid"), f"{name}: every statement says what it is for"
        for action in as_list(statement["Action"]):
            assert "*" not in action, f"{name}: {action}"
        for resource in as_list(statement["Resource"]):
            if resource == "*":
                assert set(as_list(statement["Action"])) <= WILDCARDS_WITH_A_REASON.keys(), name
                continue
            text = str(resource)
            assert "*" not in text or re.search(
                r"Arn\}/(uploads|imports|originals|outputs|public|signed|holds)/\*|\{DeadLetterArchiveBucket.Arn\}/\*|\{HoldBatchStateMachine.Name\}:\*|:darkroom-tail-\*",
                text,
            ), text


@pytest.mark.parametrize("name", ROLES)
def test_a_role_has_no_policy_but_its_own_and_the_keys(name: str) -> None:
    keys = [
        if_ours({"Ref": "UseOfTheKey"}, NO_VALUE),
        {"Fn::If": ["HasFormerKeys", {"Ref": "UseOfFormerKeys"}, NO_VALUE]},
    ]
    assert ROLES[name]["ManagedPolicyArns"] == keys, "AWS's are wider"
    assert len(ROLES[name]["Policies"]) == 1


@pytest.mark.parametrize("snap_start", ["None", "PublishedVersions"])
def test_every_role_has_the_permissions_boundary_and_the_path_of_the_deployment(snap_start: str) -> None:
    # All that are deployed: SAM makes a role of its own for what names none.
    deployed = expanded_template(snap_start=snap_start)["Resources"]
    roles = {
        name: resource["Properties"] for name, resource in deployed.items() if resource["Type"] == "AWS::IAM::Role"
    }
    assert roles.keys() == ROLES.keys() and len(roles) >= 20
    wanted = {
        "PermissionsBoundary": {"Fn::If": ["HasPermissionsBoundary", {"Ref": "PermissionsBoundary"}, NO_VALUE]},
        "Path": {"Fn::If": ["HasRolePath", {"Ref": "RolePath"}, NO_VALUE]},
    }
    lacking = {name for name, properties in roles.items() if any(properties.get(key) != wanted[key] for key in wanted)}
    assert lacking == set()


def test_without_a_boundary_and_a_path_roles_are_what_they_were() -> None:
    # With the default written out, each role of an older stack would be replaced.
    template = raw_template()
    for parameter in ("PermissionsBoundary", "RolePath"):
        (compared,) = template["Conditions"][f"Has{parameter}"]["Fn::Not"]
        assert compared == {"Fn::Equals": [{"Ref": parameter}, template["Parameters"][parameter]["Default"]]}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_role_that_nobody_else_has(name: str) -> None:
    assert FUNCTIONS[name]["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}
    (trust,) = ROLES[f"{name}Role"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust == trusted("lambda")


def test_the_state_machine_has_a_role_of_its_own_and_logs_nothing_of_what_it_carries() -> None:
    (machine,) = resources("AWS::StepFunctions::StateMachine").values()
    assert machine["RoleArn"] == {"Fn::GetAtt": ["HoldBatchStateMachineRole", "Arn"]}
    assert ROLES["HoldBatchStateMachineRole"]["AssumeRolePolicyDocument"]["Statement"] == [trusted("states")]
    (machine,) = resources("AWS::StepFunctions::StateMachine").values()
    logging = machine["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)
    (to,) = logging["Destinations"]
    assert to == {"CloudWatchLogsLogGroup": {"LogGroupArn": {"Fn::GetAtt": ["HoldBatchLogs", "Arn"]}}}


def trusted(service: str) -> dict[str, Any]:
    """The trust of a role that a service takes on behalf of this account alone
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html)."""
    return {
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }


def test_object_events_are_recorded_only_by_parameter_and_only_of_pictures() -> None:
    template = expanded_template()["Resources"]
    for name in ("ObjectEventsBucket", "ObjectEventsBucketPolicy", "ObjectEventsTrail"):
        assert template[name]["Condition"] == "ObjectEventsAreKept"
    trail = template["ObjectEventsTrail"]["Properties"]
    assert (trail["IsLogging"], trail["S3BucketName"]) == (True, {"Ref": "ObjectEventsBucket"})
    (selector,) = trail["AdvancedEventSelectors"]
    category, kind, arn, read_only = selector["FieldSelectors"]
    assert (category["Equals"], kind["Equals"]) == (["Data"], ["AWS::S3::Object"])
    buckets = [{"Fn::Sub": "${OriginalsBucket.Arn}/"}, {"Fn::Sub": "${OutputsBucket.Arn}/"}]
    assert arn == {"Field": "resources.ARN", "StartsWith": buckets}
    assert read_only == {"Fn::If": ["ReadsAreKept", NO_VALUE, {"Field": "readOnly", "Equals": ["false"]}]}


# ── Encryption at rest: by AWS's keys, or by one of ours ─────────────────────────────────────────────────────────────

NO_VALUE = {"Ref": "AWS::NoValue"}
KEY = {"Fn::GetAtt": ["Key", "Arn"]}


def if_ours(then: Any, otherwise: Any) -> Any:
    return {"Fn::If": ["KeyIsOurs", then, otherwise]}


def test_aws_keys_encrypt_unless_one_of_the_customers_is_asked_for() -> None:
    parameter = raw_template()["Parameters"]["Encryption"]
    assert (parameter["Default"], parameter["AllowedValues"]) == ("aws", ["aws", "customer"])
    assert raw_template()["Conditions"]["KeyIsOurs"] == {"Fn::Equals": [{"Ref": "Encryption"}, "customer"]}
    conditional = {name for name, it in expanded_template()["Resources"].items() if it.get("Condition") == "KeyIsOurs"}
    assert conditional == {"Key", "UseOfTheKey"}


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_every_object_is_encrypted_with_the_key_that_is_asked_for(name: str) -> None:
    (rule,) = resources("AWS::S3::Bucket")[name]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    ours = {
        "BucketKeyEnabled": True,  # or S3 asks KMS for every object, at $0.03 for ten thousand
        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
    }
    assert rule == if_ours(ours, {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}})


@pytest.mark.parametrize("name", QUEUES)
def test_every_message_is_encrypted_with_the_key_that_is_asked_for(name: str) -> None:
    assert QUEUES[name]["KmsMasterKeyId"] == if_ours(KEY, NO_VALUE)
    assert QUEUES[name]["SqsManagedSseEnabled"] == if_ours(NO_VALUE, True), "SQS takes one of them"


@pytest.mark.guards("storage-rows-customer-key", case="ImagesTable")
@pytest.mark.parametrize("name", resources("AWS::DynamoDB::Table"))
def test_every_row_is_encrypted_with_the_key_that_is_asked_for(name: str) -> None:
    ours = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}
    assert resources("AWS::DynamoDB::Table")[name]["SSESpecification"] == if_ours(ours, NO_VALUE)


@pytest.mark.parametrize(
    ("kind", "name", "attribute"),
    [("AWS::SNS::Topic", name, "KmsMasterKeyId") for name in resources("AWS::SNS::Topic")]
    + [("AWS::Logs::LogGroup", name, "KmsKeyId") for name in resources("AWS::Logs::LogGroup")],
)
def test_every_alarm_and_every_log_is_encrypted_with_the_customers_key_where_there_is_one(
    kind: str, name: str, attribute: str
) -> None:
    assert resources(kind)[name][attribute] == if_ours(KEY, NO_VALUE)


def test_the_key_outlives_the_stack_as_what_it_encrypts_does_and_is_rotated() -> None:
    key = expanded_template()["Resources"]["Key"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert key["Properties"]["EnableKeyRotation"] is True


def services_that_need_the_key() -> set[str]:
    """The services that use something encrypted in their own name, by what the template connects."""
    needing = {"logs.${AWS::Region}.${AWS::URLSuffix}"}  # its own name in each partition
    if any("AlarmActions" in alarm for alarm in resources("AWS::CloudWatch::Alarm").values()):
        needing.add("cloudwatch.amazonaws.com")
    for bucket in resources("AWS::S3::Bucket").values():
        if {"QueueConfigurations", "TopicConfigurations"} & bucket.get("NotificationConfiguration", {}).keys():
            needing.add("s3.amazonaws.com")
    if {subscription["Protocol"] for subscription in resources("AWS::SNS::Subscription").values()} - {"email"}:
        needing.add("sns.amazonaws.com")
    if any("KMSKeyId" in trail for trail in resources("AWS::CloudTrail::Trail").values()):
        needing.add("cloudtrail.amazonaws.com")
    for rule in resources("AWS::Events::Rule").values():
        if {referred(target["Arn"]) for target in rule["Targets"]} - FUNCTIONS.keys():
            needing.add("events.amazonaws.com")
    return needing


def test_the_key_is_for_this_accounts_policies_and_for_the_services_that_need_it_alone() -> None:
    account, *others = resources("AWS::KMS::Key")["Key"]["KeyPolicy"]["Statement"]
    services = [statement for statement in others if not is_optional(statement)]
    assert account["Principal"] == {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}
    named = [statement["Principal"]["Service"] for statement in services]
    assert {service["Fn::Sub"] if isinstance(service, dict) else service for service in named} == (
        services_that_need_the_key()
    )
    for statement in services:
        assert statement["Effect"] == "Allow" and {"kms:Decrypt", "kms:GenerateDataKey"} <= set(statement["Action"])
        assert statement["Condition"] in (
            {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
            {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": {
                        "Fn::Sub": "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:*"
                    }
                }
            },
        )


def test_roles_use_the_key_by_way_of_the_stores_alone() -> None:
    policy = resources("AWS::IAM::ManagedPolicy")["UseOfTheKey"]["PolicyDocument"]
    by_way_of: dict[str, set[str]] = {}
    for statement in policy["Statement"]:
        assert (statement["Effect"], statement["Resource"]) == ("Allow", KEY)
        (services,) = statement["Condition"]["StringEquals"].values()
        assert statement["Condition"]["StringEquals"].keys() == {"kms:ViaService"}
        for service in as_list(services):
            by_way_of[service["Fn::Sub"].partition(".")[0]] = set(statement["Action"])
    assert by_way_of.keys() == {"s3", "sqs", "sns", "secretsmanager", "dynamodb"}
    assert all(by_way_of[name] == {"kms:GenerateDataKey", "kms:Decrypt"} for name in by_way_of.keys() - {"dynamodb"})
    assert not {action for actions in by_way_of.values() for action in actions if "*" in action or "Grant" in action}


def test_what_a_former_key_encrypted_stays_readable_whatever_key_comes_after_it() -> None:
    template = expanded_template()
    assert template["Resources"]["UseOfFormerKeys"]["Condition"] == "HasFormerKeys", "with no key of our own, too"
    none = {"Fn::Equals": [{"Fn::Join": ["", {"Ref": "FormerKeys"}]}, ""]}
    assert (template["Conditions"]["HasFormerKeys"], template["Parameters"]["FormerKeys"]["Default"]) == (
        {"Fn::Not": [none]},
        "",
    )
    (statement,) = resources("AWS::IAM::ManagedPolicy")["UseOfFormerKeys"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "kms:Decrypt"), "nothing new is encrypted with it"
    assert statement["Resource"] == {"Ref": "FormerKeys"}
    services = {
        service["Fn::Sub"].partition(".")[0] for service in statement["Condition"]["StringEquals"]["kms:ViaService"]
    }
    assert services == {"s3", "sqs", "secretsmanager", "dynamodb"}, "all stores; a topic keeps nothing"
    pattern = re.compile(template["Parameters"]["FormerKeys"]["AllowedPattern"])
    arn = "arn:aws-cn:kms:cn-north-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    assert all(map(pattern.search, ["", arn]))
    assert not any(map(pattern.search, ["*", "alias/darkroom", arn.replace("1234abcd", "*"), f"{arn},*"]))


def routes(access: str) -> dict[str, Any]:
    """The `security` of each route, by "METHOD /path"."""
    return {
        f"{'ANY' if method.startswith('x-') else method.upper()} {path}": operation.get("security")
        for path, operations in http_api(access)["paths"].items()
        for method, operation in operations.items()
    }


ASKING = pytest.mark.parametrize("access", ["keys", "jwt", "iam"])


def test_keys_are_the_usual_way_to_call_the_api_and_staging_and_prod_ask_for_them() -> None:
    parameter = raw_template()["Parameters"]["Access"]
    assert parameter["AllowedValues"] == ["keys", "jwt", "iam", "anonymous"]
    assert parameter["Default"] == "keys"
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    for environment in ("staging", "prod"):
        overrides = config[environment]["global"]["parameters"]["parameter_overrides"]
        assert f"Environment={environment}" in overrides and "Access=keys" in overrides


@pytest.mark.guards("api-credential-required", case="keys")
@ASKING
def test_every_route_but_the_open_ones_asks_for_a_credential(access: str) -> None:
    assert {route for route, security in routes(access).items() if not security} == OPEN_ROUTES
    assert all(security == [{"caller": []}] for route, security in routes(access).items() if route not in OPEN_ROUTES)
    assert len(routes(access)) >= 5


@ASKING
def test_head_goes_where_get_goes_and_asks_for_the_same_credential(access: str) -> None:
    for path, operations in http_api(access)["paths"].items():
        if "get" in operations:
            assert operations["head"] == operations["get"], path


def test_what_is_open_to_everybody_is_let_through_a_few_times_a_second_and_the_rest_by_parameter() -> None:
    (stage,) = resources("AWS::ApiGatewayV2::Stage").values()
    limits = {route: stage["RouteSettings"][route]["ThrottlingRateLimit"] for route in OPEN_ROUTES}
    for method in ("GET", "HEAD"):
        assert 0 < limits.pop(f"{method} /app/{{path+}}") <= 50, "about ten for a first visit, one for each later one"
    assert all(0 < limit <= 10 for limit in limits.values())
    (stage,) = resources("AWS::ApiGatewayV2::Stage").values()
    uploads = {"ThrottlingRateLimit": {"Ref": "UploadsPerSecond"}, "ThrottlingBurstLimit": {"Ref": "UploadsAtOnce"}}
    others = {"ThrottlingRateLimit": {"Ref": "RequestsPerSecond"}, "ThrottlingBurstLimit": {"Ref": "RequestsAtOnce"}}
    assert stage["DefaultRouteSettings"] == others
    named = {route: settings for route, settings in stage["RouteSettings"].items() if route not in OPEN_ROUTES}
    assert named == dict.fromkeys(
        ("POST /images", "POST /uploads", "POST /images/{id}/variants", "POST /images/{id}/edits"), uploads
    )


def test_the_credential_of_each_way_is_what_it_says_and_the_gateway_may_invoke_the_authorizer() -> None:
    assert AUTHORIZER_CACHE_SECONDS <= 60
    schemes = {access: http_api(access)["components"]["securitySchemes"]["caller"] for access in ("keys", "jwt", "iam")}
    assert schemes["iam"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    keys = schemes["keys"]["x-amazon-apigateway-authorizer"]
    uri = keys.pop("authorizerUri")["Fn::Sub"]
    assert uri.endswith(":lambda:path/2015-03-31/functions/${AuthorizeRequestFunction.Arn}/invocations")
    assert keys == {
        "type": "request",
        "identitySource": "$request.header.Authorization",
        "authorizerPayloadFormatVersion": "2.0",
        "enableSimpleResponses": True,
        "authorizerResultTtlInSeconds": AUTHORIZER_CACHE_SECONDS,
    }
    assert schemes["jwt"]["x-amazon-apigateway-authorizer"] == {
        "type": "jwt",
        "identitySource": "$request.header.Authorization",
        "jwtConfiguration": {
            "issuer": {"Ref": "JwtIssuer"},
            "audience": {"Fn::Split": [",", {"Ref": "JwtAudience"}]},
        },
    }
    (permission,) = permissions_of("AuthorizeRequestFunction")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["SourceArn"]["Fn::Sub"].endswith(":${Api}/authorizers/*")
    assert FUNCTIONS["AuthorizeRequestFunction"]["Timeout"] <= 10, "the gateway's own limit for authorizers"


def test_every_function_behind_the_api_knows_by_which_credential_callers_are_let_in() -> None:
    for variable, parameter in {
        "ACCESS": "Access",
        "JWT_TENANT_CLAIM": "JwtTenantClaim",
        "JWT_TIER_CLAIM": "JwtTierClaim",
    }.items():
        assert told(variable) == {name: {"Ref": parameter} for name in FUNCTIONS}
    for access in raw_template()["Parameters"]["Access"]["AllowedValues"]:
        assert AccessSettings.read({"ACCESS": access}).access == access


@ASKING
def test_no_route_stands_in_the_way_of_a_browsers_preflight_request(access: str) -> None:
    # If no route takes OPTIONS the gateway answers it itself; one that does, by name or ANY, requires the credential
    # (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html).
    assert not [route for route in routes(access) if route.split()[0] in ("OPTIONS", "ANY") or "$default" in route]


EDGE = ",".join(
    (
        "https://d1.cloudfront.net",
        "arn:aws:cloudfront::123456789012:distribution/E1",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/edge",
        "arn:aws:sqs:eu-west-1:123456789012:edge",
        "arn:aws:lambda:eu-west-1:123456789012:function:sign",
        "86400",
    )
)

PATTERNS: dict[str, tuple[list[str], list[str]]] = {
    "Edge": (
        ["", EDGE],
        [EDGE.replace("net", "net/"), EDGE.removesuffix(",86400"), EDGE + ",", EDGE.replace("://", ":")],
    ),
    "PermissionsBoundary": (
        ["", "arn:aws:iam::123456789012:policy/teams/Boundary", "arn:aws-cn:iam::aws:policy/PowerUserAccess"],
        ["Boundary", "arn:aws:iam::123456789012:role/Boundary"],
    ),
    # The buckets' policies compare roles by patterns.
    "RolePath": (["/", "/teams/images/"], ["", "teams/", "/teams", "//", "/*/"]),
    "JwtIssuer": (
        ["", "https://issuer.example/pool", "http://127.0.0.1:8080", "http://localhost/realm"],
        [
            *("http://issuer.example", "http://localhost.issuer.example", "http://127.0.0.1.issuer.example"),
            *("issuer.example", "https://issuer.example https://another.example"),
        ],
    ),
    # It is put into the page's Content-Security-Policy.
    "JwtSignInOrigin": (
        ["", "https://shop.auth.eu-west-1.amazoncognito.com", "http://127.0.0.1:8080"],
        [
            *("http://shop.example", "https://shop.example/oauth2", "https://*.example"),
            "https://shop.example; script-src *",
        ],
    ),
    # It is put into the gateway's log.
    "JwtTenantClaim": (
        ["sub", "custom:tenant", "https://shop.example/tenant"],
        ["", "a tenant", 'tenant","key":"', "sub$context.identity.userAgent"],
    ),
}
"""Parameters with values that their patterns accept, and others that they refuse."""


@pytest.mark.parametrize("parameter", PATTERNS)
def test_a_parameter_takes_nothing_but_what_it_is_for(parameter: str) -> None:
    accepted, refused = PATTERNS[parameter]
    declared = raw_template()["Parameters"][parameter]
    pattern = re.compile(declared["AllowedPattern"], re.ASCII)
    assert [value for value in [*accepted, *refused] if pattern.search(value)] == accepted
    assert parameter not in ("PermissionsBoundary", "RolePath") or declared["ConstraintDescription"]


@pytest.mark.guards("api-no-website-by-default")
def test_no_website_may_call_the_api_unless_it_is_named() -> None:
    template = expanded_template()
    parameter = template["Parameters"]["AllowedOrigins"]
    assert parameter["Default"] == ""
    decides, cors, otherwise = template["Resources"]["Api"]["Properties"]["Body"]["x-amazon-apigateway-cors"]["Fn::If"]
    empty = {"Fn::Equals": [{"Fn::Join": ["", {"Ref": "AllowedOrigins"}]}, ""]}
    assert template["Conditions"][decides] == {"Fn::Not": [empty]}
    assert cors["allowOrigins"] == {"Ref": "AllowedOrigins"} and otherwise == {"Ref": "AWS::NoValue"}
    for bucket in PAGES_BUCKETS:
        condition, rule, nothing = cors_rules(bucket)[1]["Fn::If"]
        assert (condition, rule["AllowedOrigins"], nothing) == (decides, {"Ref": "AllowedOrigins"}, otherwise)
    pattern = re.compile(parameter["AllowedPattern"])
    assert all(map(pattern.search, ["", "*", "https://app.example.com", "http://localhost:5173"]))
    assert not any(map(pattern.search, ["app.example.com", "https://*.example.com", "https://a.example/", "https://"]))


PAGES_BUCKETS = {"UploadsBucket": ["POST"], "OutputsBucket": ["GET", "HEAD"]}
"""The buckets that the page's scripts call, with the methods of a form and of a presigned URL."""


def cors_rules(bucket: str) -> list[dict[str, Any]]:
    """What the bucket answers to scripts of which origins."""
    rules: list[dict[str, Any]] = resources("AWS::S3::Bucket")[bucket]["CorsConfiguration"]["CorsRules"]
    return rules


def test_scripts_of_no_page_may_call_a_bucket_that_the_page_does_not_call() -> None:
    answering = {name for name, bucket in resources("AWS::S3::Bucket").items() if "CorsConfiguration" in bucket}
    assert answering == PAGES_BUCKETS.keys()


@pytest.mark.parametrize("bucket", PAGES_BUCKETS)
def test_a_bucket_answers_the_page_and_on_no_other_machine_one_of_this_machine(bucket: str) -> None:
    own, named = cors_rules(bucket)
    locally = [{"Fn::If": ["IsLocal", f"http://{host}:*", NO_VALUE]} for host in ("127.0.0.1", "localhost")]
    # S3 takes one * in an origin (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ManageCorsUsing.html).
    deployed = {"Fn::Sub": "https://*.execute-api.${AWS::Region}.${AWS::URLSuffix}"}
    of_its_own = {"Fn::If": ["HasApiDomain", {"Fn::Sub": "https://${ApiDomainName}"}, NO_VALUE]}
    assert own["AllowedOrigins"] == [deployed, of_its_own, *locally]
    for rule in (own, named["Fn::If"][1]):
        assert rule["AllowedMethods"] == PAGES_BUCKETS[bucket]
    assert expanded_template()["Outputs"]["ApiUrl"]["Value"] == {
        "Fn::If": ["HasApiDomain", of_its_own["Fn::If"][1], {"Fn::Sub": deployed["Fn::Sub"].replace("*", "${Api}")}]
    }


def test_scripts_of_a_website_may_send_and_see_what_the_api_takes_and_tells() -> None:
    cors = expanded_template()["Resources"]["Api"]["Properties"]["Body"]["x-amazon-apigateway-cors"]["Fn::If"][1]
    assert set(cors["allowMethods"]) == {method for route in ROUTES for method in route.methods}
    sent = {parameter.name.lower() for route in ROUTES for parameter in route.parameters if parameter.place == "header"}
    assert set(cors["allowHeaders"]) == {"authorization", "content-type", *sent}
    headers = {header.name.lower() for route in ROUTES for answer in route.answers for header in answer.headers}
    headers |= {header.name.lower() for route in ROUTES for header in route.headers}
    headers |= {header.name.lower() for problem in PROBLEMS.values() for header in problem.headers}
    assert set(cors["exposeHeaders"]) == headers


def test_anonymous_access_is_what_it_says_and_refused_outside_the_local_environment() -> None:
    assert not any(routes("anonymous").values())
    rule = raw_template()["Rules"]["AnonymousOnlyLocally"]
    assert rule["RuleCondition"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "Environment"}, "local"]}]}
    assert rule["Assertions"][0]["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "Access"}, "anonymous"]}]}


def test_every_route_has_its_function() -> None:
    body = with_all_parts(expanded_template()["Resources"]["Api"]["Properties"]["Body"])
    for path, operations in body["paths"].items():
        for method, operation in operations.items():
            integration = operation["x-amazon-apigateway-integration"]
            assert integration["payloadFormatVersion"] == "2.0", (path, method)


def test_tokens_of_anybody_are_refused() -> None:
    rule = raw_template()["Rules"]["TokensHaveAnIssuer"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "Access"}, "jwt"]}
    assert rule["Assertions"][0]["Assert"] == {
        "Fn::And": [{"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]} for name in ("JwtIssuer", "JwtAudience")]
    }


def test_a_domain_of_its_own_leads_to_the_whole_api_and_can_be_the_only_one() -> None:
    template = expanded_template()
    domain, mapping, record = (template["Resources"][f"ApiDomain{part}"] for part in ("", "Mapping", "Record"))
    assert (domain["Condition"], mapping["Condition"], record["Condition"]) == (*["HasApiDomain"] * 2, "HasApiRecords")
    (configuration,) = domain["Properties"]["DomainNameConfigurations"]
    assert configuration["SecurityPolicy"] == "TLS_1_2"
    assert mapping["Properties"] == {
        "ApiId": {"Ref": "Api"},
        "DomainName": {"Ref": "ApiDomain"},
        "Stage": {"Ref": "ApiApiGatewayDefaultStage"},
    }
    assert record["Properties"]["AliasTarget"] == {
        "DNSName": {"Fn::GetAtt": ["ApiDomain", "RegionalDomainName"]},
        "HostedZoneId": {"Fn::GetAtt": ["ApiDomain", "RegionalHostedZoneId"]},
    }
    body = template["Resources"]["Api"]["Properties"]["Body"]
    closed = {"Fn::If": ["ExecuteApiIsClosed", {"disableExecuteApiEndpoint": True}, NO_VALUE]}
    assert body["x-amazon-apigateway-endpoint-configuration"] == closed


def test_what_services_write_by_the_accounts_policy_is_below_the_names_that_it_has_as_one() -> None:
    (stage,) = resources("AWS::ApiGatewayV2::Stage").values()
    machine = resources("AWS::StepFunctions::StateMachine")["HoldBatchStateMachine"]
    (logged,) = machine["LoggingConfiguration"]["Destinations"]
    destinations = stage["AccessLogSettings"]["DestinationArn"], logged["CloudWatchLogsLogGroup"]["LogGroupArn"]
    names = {
        resources("AWS::Logs::LogGroup")[destination["Fn::GetAtt"][0]]["LogGroupName"]["Fn::Sub"]
        for destination in destinations
    }
    assert names == {f"/aws/vendedlogs/{service}/${{AWS::StackName}}" for service in ("apis", "states")}


def test_webhooks_lead_to_the_functions_own_machine_in_the_local_environment_alone() -> None:
    # In AWS that would be Lambda's runtime API.
    assert expanded_template()["Conditions"]["IsLocal"] == {"Fn::Equals": [{"Ref": "Environment"}, "local"]}
    policies = told("WEBHOOK_HOSTS")
    fetching = {"SubmitImageFunction", "FetchOriginalFunction", "SweepDueBulkFunction"}
    assert policies.keys() == {"DeliverEventFunction", "ManageWebhooksFunction", *fetching}
    assert all(value == {"Fn::If": ["IsLocal", "loopback", "public"]} for value in policies.values())
    for hosts, allows_loopback in (("loopback", True), ("public", False)):
        ports = raw_template()["Parameters"]["WebhookPorts"]["Default"]
        settings = ReachSettings.read({"WEBHOOK_HOSTS": hosts, "WEBHOOK_PORTS": ports})
        assert policy_of(settings) == EgressPolicy(ports=frozenset({443, 8443}), allows_loopback=allows_loopback)
    with pytest.raises(MissingSettings):
        ReachSettings.read({"WEBHOOK_HOSTS": "everything", "WEBHOOK_PORTS": "443"})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_behind_the_api_answers_before_the_gateway_gives_up(name: str) -> None:
    behind_api = "apigateway.amazonaws.com" in {permission["Principal"] for permission in permissions_of(name)}
    assert not behind_api or FUNCTIONS[name]["Timeout"] <= 29


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_logs_to_a_group_that_forgets(name: str) -> None:
    group = referred(FUNCTIONS[name]["LoggingConfig"]["LogGroup"])
    assert resources("AWS::Logs::LogGroup")[group or ""]["RetentionInDays"] == 30


@pytest.mark.parametrize(
    ("access", "tenant"),
    [
        ("keys", "$context.authorizer.tenant_id"),
        ("jwt", "$context.authorizer.claims.${JwtTenantClaim}"),
        ("iam", DEFAULT_TENANT),
        ("anonymous", DEFAULT_TENANT),
    ],
)
def test_the_gateways_log_names_the_tenant_and_has_no_header_no_query_and_no_path_that_a_client_sent(
    access: str, tenant: str
) -> None:
    logged = access_log(access)
    assert json.loads(logged) == {
        "correlation_id": "$context.requestId",
        "time": "$context.requestTime",
        "ip": "$context.identity.sourceIp",
        "tenant": tenant,
        "key": "$context.authorizer.key_id",  # not a secret: keys are listed and revoked by it
        "method": "$context.httpMethod",
        "route": "$context.routeKey",
        "status": "$context.status",
        "latency_ms": "$context.responseLatency",
        "bytes": "$context.responseLength",
        "error": "$context.error.message",
    }
    assert "\n" not in logged, "one line per request"


def test_no_function_is_told_to_log_its_events() -> None:
    variables = {name for function in FUNCTIONS.values() for name in function["Environment"]["Variables"]}
    assert variables & {"POWERTOOLS_LOGGER_LOG_EVENT", "POWERTOOLS_DEV", "POWERTOOLS_DEBUG"} == set()


def test_only_the_transcoder_has_the_imaging_layer() -> None:
    layers = {name: {referred(layer) or "" for layer in function["Layers"]} for name, function in FUNCTIONS.items()}
    with_imaging = {name for name, ids in layers.items() if any(layer.startswith("ImagingLayer") for layer in ids)}
    assert with_imaging == {"TranscodeImageFunction"}


@pytest.mark.guards("storage-table-kept-if-replaced")
def test_uploads_and_their_rows_outlive_the_stack() -> None:
    for name in (
        "UploadsBucket",
        "OriginalsBucket",
        "OutputsBucket",
        "ImagesTable",
        "TenantsTable",
        "DeadLetterArchiveBucket",
    ):
        resource = expanded_template()["Resources"][name]
        is_table = resource["Type"] == "AWS::DynamoDB::Table"
        # A table that cannot be deleted would stop the rollback of its own creation.
        assert resource["DeletionPolicy"] == ("Retain" if is_table else "RetainExceptOnCreate"), name
        assert resource["UpdateReplacePolicy"] == "Retain", name
        assert resource["Properties"].get("DeletionProtectionEnabled", False) == is_table, name


@pytest.mark.guards("storage-small-originals-stay", case="infrequent-moved1")
@pytest.mark.parametrize(
    ("storage", "moved"),
    [("standard", None), ("infrequent", ("STANDARD_IA", 30)), ("intelligent", ("INTELLIGENT_TIERING", 0))],
)
def test_originals_of_128_kb_move_to_the_storage_class_that_is_asked_for(
    storage: str, moved: tuple[str, int] | None
) -> None:
    rules = rules_of("OriginalsBucket", OriginalsStorage=storage)
    assert rules.keys() - {"MoveOriginals"} == rules_of("OriginalsBucket").keys(), "nothing else changes"
    assert "MoveOriginals" not in rules_of("OriginalsBucket"), "the default"
    if moved is None:
        assert "MoveOriginals" not in rules
        return
    rule = rules["MoveOriginals"]
    assert (rule["Prefix"], int(rule["ObjectSizeGreaterThan"])) == ("originals/", 128 * 1024 - 1)
    (transition,) = rule["Transitions"]
    assert (transition["StorageClass"], int(transition["TransitionInDays"])) == moved
    assert rule.keys() == {"Id", "Status", "Prefix", "ObjectSizeGreaterThan", "Transitions"}, "it expires nothing"


@pytest.mark.parametrize(
    ("parameters", "mode", "level", "share"),
    [
        ({}, "PassThrough", "WARN", "0.1"),
        ({"Tracing": "Active"}, "Active", "WARN", "0.1"),
        ({"InvocationLogs": "all"}, "PassThrough", "INFO", "1"),
        ({"Environment": "local"}, "PassThrough", "INFO", "1"),
    ],
)
def test_traces_and_lines_of_every_invocation_are_for_those_who_ask(
    parameters: dict[str, str], mode: str, level: str, share: str
) -> None:
    for name, function in deployed_with("AWS::Lambda::Function", **parameters).items():
        assert function["TracingConfig"] == {"Mode": mode}, name
        assert function["LoggingConfig"]["SystemLogLevel"] == level, name
        assert function["Environment"]["Variables"]["TIMING_SHARE"] == share, name


def deployed_with(kind: str, **parameters: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of a type, as they are deployed with these parameters."""
    given = {"Environment": "prod", "Access": "keys"} | parameters
    values = Values(expanded_template(), parameters=given, names={}, attributes={})
    return {name: values.of(properties) for name, properties in resources(kind).items()}


def rules_of(bucket: str, **parameters: str) -> dict[str, dict[str, Any]]:
    """A bucket's rules of lifecycle by their names, with these parameters."""
    rules = deployed_with("AWS::S3::Bucket", **parameters)[bucket]["LifecycleConfiguration"]["Rules"]
    return {rule["Id"]: rule for rule in rules}


def test_originals_are_versioned_because_rows_pin_a_version() -> None:
    assert resources("AWS::S3::Bucket")["OriginalsBucket"]["VersioningConfiguration"]["Status"] == "Enabled"


ON_REQUEST_RULE = "RemoveVariantsMadeOnRequest"


def lifecycle(bucket: str) -> dict[str, dict[str, Any]]:
    """A bucket's rules by their names; all of them are in force, for the whole bucket, but that for what was made on
    request, which is left out."""
    rules = {name: rule for name, rule in rules_of(bucket).items() if name != ON_REQUEST_RULE}
    assert all(rule["Status"] == "Enabled" and not {"Prefix", "TagFilters"} & rule.keys() for rule in rules.values())
    return rules


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_half_an_upload_is_paid_for_a_day_at_most(name: str) -> None:
    rule = lifecycle(name)["AbortAbandonedUploads"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


@pytest.mark.parametrize("name", ["OriginalsBucket", "OutputsBucket"])
def test_what_a_row_vouches_for_never_expires_by_itself(name: str) -> None:
    done = {key for rule in lifecycle(name).values() for key in rule} - {"Id", "Status"}
    assert done <= {"AbortIncompleteMultipartUpload", "ExpiredObjectDeleteMarker"}


def test_what_was_made_on_request_expires_by_its_tag() -> None:
    tag, _, value = MADE_ON_REQUEST.partition("=")
    rule = rules_of("OutputsBucket")[ON_REQUEST_RULE]
    assert rule.items() >= {"Status": "Enabled", "ExpirationInDays": KEPT_DAYS}.items()
    assert rule["TagFilters"] == [{"Key": tag, "Value": value}]


@pytest.mark.parametrize("name", resources("AWS::S3::Bucket"))
def test_no_bucket_is_public(name: str) -> None:
    blocked = resources("AWS::S3::Bucket")[name]["PublicAccessBlockConfiguration"]
    assert (len(blocked), set(blocked.values())) == (4, {True})
    assert resources("AWS::S3::Bucket")[name]["OwnershipControls"] == {
        "Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]
    }


def test_the_indexes_are_those_that_the_code_reads_and_no_partition_is_a_tenant_alone() -> None:
    table = resources("AWS::DynamoDB::Table")["ImagesTable"]
    keys = {
        DUE_INDEX: ["due_shard", "due_at"],
        WAITING_INDEX: ["waiting_shard", "waiting_since"],
        LISTED_INDEX: ["list_shard", "created_at"],
        REFERENCES_INDEX: ["reference_key", "created_at"],
        NEWEST_INDEX: ["tenant_id", "created_at"],
    }
    indexes = table["GlobalSecondaryIndexes"]
    usual = [index for index in indexes if not is_optional(index)]
    (kept,) = [index["Fn::If"][1] for index in indexes if is_optional(index)]
    assert {
        index["IndexName"]: [key["AttributeName"] for key in index["KeySchema"]] for index in [*usual, kept]
    } == keys
    assert kept["IndexName"] == NEWEST_INDEX
    # DynamoDB refuses a table that defines an attribute which no key has.
    attributes = [attribute for attribute in table["AttributeDefinitions"] if not is_optional(attribute)]
    used = {"image_id", *(name for index in usual for name in keys[index["IndexName"]])}
    assert {attribute["AttributeName"] for attribute in attributes} == used
    assert (DUE_SHARDS, LIST_SHARDS) == (16, 4)
    for name, table in resources("AWS::DynamoDB::Table").items():
        for index in table.get("GlobalSecondaryIndexes", []):
            if not is_optional(index):
                assert index["KeySchema"][0]["AttributeName"] != "tenant_id", name


def test_rows_that_say_when_to_be_forgotten_are() -> None:
    tables = resources("AWS::DynamoDB::Table")
    assert tables["ImagesTable"]["TimeToLiveSpecification"] == {"AttributeName": "forget_at", "Enabled": True}
    assert "forget_at" in {field.name for field in dataclasses.fields(Image)}


@pytest.mark.parametrize(
    ("sweeper", "period"),
    [
        ("SweepDueImagesFunction", "1 minute"),
        ("SweepDueEndpointsFunction", "1 minute"),
        ("SweepDueBulkFunction", "1 minute"),
    ],
)
def test_sweeps_do_not_overlap(sweeper: str, period: str) -> None:
    assert FUNCTIONS[sweeper]["Timeout"] < 60 * int(period[0])
    (rule,) = [
        rule
        for rule in resources("AWS::Events::Rule").values()
        if sweeper in {referred(target["Arn"]) for target in rule["Targets"]}
    ]
    assert rule["ScheduleExpression"] == f"rate({period})"
    (retries,) = [
        config
        for config in resources("AWS::Lambda::EventInvokeConfig").values()
        if referred(config["FunctionName"]) == sweeper
    ]
    assert (retries["MaximumRetryAttempts"], retries["MaximumEventAgeInSeconds"]) == (0, 60)


def test_layers_are_built_for_the_functions_architecture() -> None:
    for name in ("DependenciesLayer", "ImagingLayer"):
        metadata = raw_template()["Resources"][name]["Metadata"]
        assert metadata == {"BuildMethod": "python3.13", "BuildArchitecture": {"Ref": "Architecture"}}


TELEMETRY = {"Fn::If": ["HasTelemetryLayer", {"Ref": "TelemetryLayer"}, {"Ref": "AWS::NoValue"}]}


def test_each_function_may_have_a_layer_for_telemetry_under_ours_and_is_started_by_its_wrapper() -> None:
    """Lambda takes five, and a later one's files replace those of an earlier one.

    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    https://docs.aws.amazon.com/lambda/latest/dg/adding-layers.html
    """
    wrapper = {"Fn::If": ["HasTelemetryLayer", "/opt/otel-instrument", {"Ref": "AWS::NoValue"}]}
    for name, function in FUNCTIONS.items():
        assert (function["Layers"][0], len(function["Layers"]) <= 5) == (TELEMETRY, True), name
        variables = function["Environment"]["Variables"]
        assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == wrapper, name
        endpoint = {"Fn::If": ["HasTelemetryEndpoint", {"Fn::Sub": "${TelemetryEndpoint}/v1/traces"}, NO_VALUE]}
        assert variables["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == endpoint, name


# ── SnapStart: the API runs published versions, and every change publishes one ───────────────────────────────────────

API_FUNCTIONS = sorted(
    {
        referred(permission["FunctionName"]) or ""
        for permission in resources("AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    }
    - {"ServePageFunction"}  # it loads no SDK, and no client of the API waits for it
)
WITHOUT_ALIAS = {"Fn::GetAtt": ["AuthorizeRequestFunction", "Arn"]}


def with_snap_start() -> Template:
    """The resources of the template with SnapStart."""
    template: Template = expanded_template(snap_start="PublishedVersions")["Resources"]
    return template


def version_of(function: str, template: Template) -> str:
    """The logical id of a function's one version."""
    (version,) = (
        name
        for name, resource in template.items()
        if resource["Type"] == "AWS::Lambda::Version" and referred(resource["Properties"]["FunctionName"]) == function
    )
    return version


def test_without_snap_start_nothing_is_published_and_the_gateway_invokes_the_functions_themselves() -> None:
    assert raw_template()["Parameters"]["SnapStart"]["Default"] == "None"
    template = expanded_template()["Resources"]
    assert not {resource["Type"] for resource in template.values()} & {"AWS::Lambda::Version", "AWS::Lambda::Alias"}
    assert "Alias" not in str(http_api("keys"))


def loops(value: Any) -> Iterator[tuple[str, str]]:
    """The name and the identifier of each loop."""
    match value:
        case dict():
            for key, inner in value.items():
                if key.startswith("Fn::ForEach::"):
                    yield key.removeprefix("Fn::ForEach::"), inner[0]
                yield from loops(inner)
        case list():
            for inner in value:
                yield from loops(inner)


def test_no_loop_and_no_identifier_has_the_name_of_a_resource_or_a_parameter() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-foreach.html"""
    names, identifiers = zip(*loops(yaml_parse((ROOT / "template.yaml").read_text())), strict=True)
    taken = expanded_template()["Resources"].keys() | with_snap_start().keys() | raw_template()["Parameters"].keys()
    assert len(set(names)) == len(names) > 10
    assert not taken & {*names, *identifiers}


def test_no_loop_goes_over_an_empty_list() -> None:
    """No guide of CloudFormation says what becomes of one."""
    mappings = yaml_parse((ROOT / "template.yaml").read_text())["Mappings"]
    assert [] not in [value for rows in mappings.values() for row in rows.values() for value in row.values()]


def test_with_snap_start_the_gateway_invokes_the_aliases_alone_and_may() -> None:
    template = with_snap_start()
    aliases = {f"{function}Aliaslive" for function in API_FUNCTIONS}
    assert {name for name, it in template.items() if it["Type"] == "AWS::Lambda::Alias"} == aliases
    uris = re.findall(
        r"functions/\$\{([\w.]+)\}/invocations", json.dumps(template["Api"]["Properties"]["Body"]["paths"])
    )
    assert {*uris} == aliases - {"AuthorizeRequestFunctionAliaslive"} | {"ServePageFunction.Arn"}
    authorizer = {"Fn::If": ["HasSnapshots", {"Ref": "AuthorizeRequestFunctionAliaslive"}, WITHOUT_ALIAS]}
    assert f'"Authorizer": {json.dumps(authorizer)}' in json.dumps(template["Api"]["Properties"]["Body"])
    assert {
        referred(it["Properties"]["FunctionName"])
        for it in template.values()
        if it["Type"] == "AWS::Lambda::Permission" and it["Properties"]["Principal"] == "apigateway.amazonaws.com"
    } == aliases | {"ServePageFunction"}


@pytest.mark.parametrize("name", API_FUNCTIONS)
def test_a_function_of_the_api_has_a_snapshot_only_with_snap_start_and_no_version_outlives_the_next(name: str) -> None:
    template = with_snap_start()
    assert template[name]["Properties"]["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert expanded_template()["Resources"][name]["Properties"]["SnapStart"] == {"ApplyOn": "None"}, "the default"
    version = version_of(name, template)
    assert template[version]["DeletionPolicy"] == "Delete", "each that is kept costs as much as the one in use"
    assert template[f"{name}Aliaslive"]["Properties"]["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}


@pytest.mark.guards("snapshots-changed-value", case="BeginUploadFunction")
@pytest.mark.parametrize("name", API_FUNCTIONS)
def test_a_version_is_replaced_when_a_value_changes_that_its_function_is_told_and_only_then(name: str) -> None:
    # CloudFormation replaces a version with another description; a version of an unchanged function fails.
    template = with_snap_start()
    parameters = {name for name in referred_in(template[name]["Properties"]) if name in raw_template()["Parameters"]}
    in_text = re.findall(r"\$\{(\w+)\}", json.dumps(template[name]["Properties"]["Environment"]))
    parameters |= raw_template()["Parameters"].keys() & {*in_text}
    parameters.discard("Environment")  # no stack becomes another one's
    description = template[version_of(name, template)]["Properties"]["Description"]["Fn::Sub"]
    if isinstance(description, list):
        text, items = description
        # Of what is told as one item of the edge, that item alone: all of them are longer than a description.
        told = {_written(value) for value in template[name]["Properties"]["Environment"]["Variables"].values()}
        ours = {_written(_signer_of(value)) for variable, value in items.items() if variable in ("Edge", "Signer")}
        assert ours == {value for value in told if "Fn::Select" in value}
        description = re.sub(r"\$\{(Signer|Values)\}", "", text) + json.dumps(items.get("Values", ""))
    # A parameter that makes the function need not be told: another value of it removes the function.
    making = referred_in({"Condition": template[name]["Condition"]}) if "Condition" in template[name] else set()
    assert parameters <= set(re.findall(r"\$\{(\w+)\}", description)) <= parameters | making


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _signer_of(value: Any) -> Any:
    """The function's ARN of which the value is the name, or the value."""
    match value:
        case {"Fn::Select": [6, {"Fn::Split": [":", {"Fn::Join": ["", [arn, "::::::"]]}]}]}:
            return arn
    return value


def referred_in(value: Any) -> set[str]:
    """The names in its references, those of its conditions included."""
    text = json.dumps(value)
    conditions = {*re.findall(r'"Fn::If": \["(\w+)"', text), *re.findall(r'"Condition": "(\w+)"', text)}
    known = raw_template()["Conditions"] if conditions else {}
    return {*re.findall(r'"Ref": "(\w+)"', text)}.union(*(referred_in(known[name]) for name in conditions))


@pytest.mark.guards("snapshots-changed-layer")
def test_a_version_is_replaced_when_its_function_or_a_layer_of_it_changes(tmp_path: Path) -> None:
    def versions(before: str, after: str) -> set[str]:
        changed = tmp_path / f"{after}.yaml"
        text = (ROOT / "template.yaml").read_text()
        assert before in text
        changed.write_text(text.replace(before, after, 1))
        template = expanded_template(path=changed, snap_start="PublishedVersions")["Resources"]
        return {version_of(name, template) for name in API_FUNCTIONS}

    now = {version_of(name, with_snap_start()) for name in API_FUNCTIONS}
    assert len(now - versions("Timeout: 29", "Timeout: 28")) == 1
    assert not now & versions("Darkroom's own package", "Another package"), "all of them have this layer"


def test_the_template_includes_one_stack_which_has_no_function_no_state_and_no_route() -> None:
    text = (ROOT / "template.yaml").read_text()
    for refused in ("AWS::Include", "AWS::Serverless::Application"):
        assert refused not in text
    nested = [each for each in raw_template()["Resources"].values() if each["Type"] == "AWS::CloudFormation::Stack"]
    assert [each["Properties"]["TemplateURL"] for each in nested] == [str(OBSERVABILITY.relative_to(ROOT))]
    template = yaml_parse(OBSERVABILITY.read_text())
    assert "Transform" not in template and "Fn::ForEach" not in OBSERVABILITY.read_text()
    assert {resource["Type"] for resource in template["Resources"].values()} == {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Logs::QueryDefinition",
    }
