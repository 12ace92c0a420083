"""Events on their way through AWS: the stream's records, the topic, and the tables in which usage is counted."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from darkroom import telemetry
from darkroom.aws.events.events_topic import SnsTopic, SqsUnpublished
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.usage.usage_table import PARTS, UsageTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.events.event import body_of
from darkroom.domain.images.transitions import complete, delete
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.signature import read_signature
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.domain.usage.usage import Count, Usage, transactions_of
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable
from darkroom.domain.webhooks.row_events import event_of, events_of
from darkroom.ports.events import Unpublishable
from darkroom.ports.images import Images
from darkroom.ports.usage import DayOfUsage, UsageCounts
from darkroom.wiring.events.publish_events import read_changes
from darkroom_cli.operator.domain.next_run import redo
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, load, written
from tests.contract.functions import received as batch_of
from tests.contract.stores import numbered_event
from tests.support.fakes import FakeImages
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.messages import KEYS, SIGNER, keys_of
from tests.support.fakes.secrets import FakeSecret
from tests.support.faults import raising
from tests.support.images import NOW, pending, processing
from tests.support.webhooks import endpoint

# ── Versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("events-true-version-in-row")
def test_a_row_knows_the_true_versions_of_its_events_although_others_write_in_between(kind: str, aws: Aws) -> None:
    images: Images = FakeImages() if kind == "fake" else ImagesTable(boto3.client("dynamodb"), aws.images_table)
    read = images.create(replace(processing(), accepted_at=NOW, accepted_version=1))
    images.change(read, replace(read, rescues=4))  # the sweeper, whom the worker knows nothing of
    done = images.change(read, complete(read, (), notices=(), now=NOW + 5))
    assert (done.version, done.completed_version) == (read.version + 2, read.version + 2)
    images.change(done, replace(done, rescues=5))
    again = images.change(done, redo(done, now=NOW + 6))
    assert (again.completed_version, again.earlier_ends) == (done.version, ())
    images.change(again, replace(again, rescues=6))
    deleted = images.change(again, delete(again, now=NOW + 7))
    assert (deleted.deleted_version, deleted.completed_version) == (deleted.version, done.version)
    assert [event.sequence for event in events_of(deleted)] == [1, done.version, deleted.version]


@pytest.mark.guards("events-lost-answer-recognised")
def test_a_terminal_write_whose_answer_was_lost_is_known_by_everything_but_its_version(aws: Aws) -> None:
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    read = images.create(processing())
    images.change(read, replace(read, rescues=4))
    done = complete(read, (), notices=(), now=NOW + 5)
    written = images.change(read, done)
    assert images.change(read, done) == written  # the SDK's second attempt


# ── The stream ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_streams_records_are_read_as_the_rows_were_written(aws: Aws) -> None:
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    first = images.create(processing())
    second = images.change(first, complete(first, (), notices=(), now=NOW + 5))
    boto3.client("dynamodb").delete_item(TableName=aws.images_table, Key={"image_id": {"S": first.image_id}})
    records = written(aws.images_table)
    changes = read_changes({"Records": records})
    assert [(change.before, change.after) for change in changes] == [(None, first), (first, second), (second, None)]
    assert [change.place for change in changes] == [record["dynamodb"]["SequenceNumber"] for record in records]
    assert [change.version for change in changes] == [first.version, second.version, None]
    assert [event_of(change.before, change.after) is not None for change in changes] == [False, True, False]


@pytest.mark.guards("logs-tombstone-keeps-request")
def test_a_published_event_is_one_line_with_the_request_that_accepted_its_image(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", log)
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    row = images.create(pending(accepted_at=NOW))
    tombstone = images.change(row, delete(row, now=NOW + 5))
    assert (row.correlation_id, tombstone.correlation_id) == ("c", "")
    call(load("publish_events", aws, monkeypatch), {"Records": written(aws.images_table)})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    published = [line for line in lines if line["message"] == "event published"]
    assert [(line["type"], line["event_id"]) for line in published] == [
        ("image.accepted", f"{row.image_id}-{row.version}"),
        ("image.cancelled", f"{row.image_id}-{tombstone.version}"),
    ]
    assert {(line["image_id"], line["correlation_id"]) for line in published} == {(row.image_id, "c")}


@pytest.mark.guards("isolated-stream-record-id")
def test_the_records_of_endpoints_are_read_as_the_rows_were_written(aws: Aws) -> None:
    endpoints = EndpointsTable(boto3.client("dynamodb"), aws.endpoints_table)
    row = Endpoint(tenant_id="acme", endpoint_id="we_3000000000000001", url="https://x", events=("*",), created_at=NOW)
    endpoints.create(row)
    disabled = endpoints.change(row, disable(row, DisabledBy.CLIENT, now=NOW))
    endpoints.remove(disabled.tenant_id, disabled.endpoint_id)
    records = written(aws.endpoints_table)
    changes = read_changes({"Records": records})
    assert [(change.before, change.after) for change in changes] == [(None, row), (row, disabled), (disabled, None)]
    assert {change.subject for change in changes} == {row.endpoint_id}
    events = [event_of(change.before, change.after) for change in changes]
    assert [event and event.event_id for event in events] == [None, f"{row.endpoint_id}-2", None]
    records[1]["dynamodb"]["NewImage"]["state"] = {"S": "pondering"}
    unreadable = read_changes({"Records": records})[1]
    assert (unreadable.subject, unreadable.version, unreadable.after) == (row.endpoint_id, 2, None)
    assert "pondering" in str(unreadable.unreadable)
    del records[1]["dynamodb"]["NewImage"]["endpoint_id"]
    readable, nameless = read_changes({"Records": records[:2]})
    assert (readable.unreadable, nameless.subject) == (None, "acme/3"), "it holds up no other of its batch"


@pytest.mark.parametrize("which", ["OldImage", "NewImage"])
def test_a_row_of_a_later_version_is_told_apart_from_the_others(aws: Aws, which: str) -> None:
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    first = images.create(processing())
    images.change(first, complete(first, (), notices=(), now=NOW + 5))
    records = written(aws.images_table)
    records[1]["dynamodb"][which]["status"] = {"S": "pondering"}
    readable, unreadable = read_changes({"Records": records})
    assert readable.unreadable is None
    assert unreadable.unreadable is not None and "pondering" in str(unreadable.unreadable)
    assert (unreadable.subject, unreadable.before, unreadable.after) == (first.image_id, None, None)
    assert unreadable.version == first.version + 1


def test_a_version_that_is_no_whole_number_holds_up_nothing(aws: Aws) -> None:
    images = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    images.create(processing())
    records = written(aws.images_table)
    records[0]["dynamodb"]["NewImage"]["version"] = {"N": "1.5"}
    (change,) = read_changes({"Records": records})
    assert (change.version, change.unreadable is not None) == (None, True)


@pytest.mark.parametrize("event", [{}, {"Records": [{}]}, {"Records": [{"body": "{}"}]}, {"Records": None}])
def test_no_other_event_is_taken_for_writes(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="stream"):
        read_changes(event)


# ── The topic ────────────────────────────────────────────────────────────────────────────────────────────────────────


def received(url: str) -> list[Any]:
    sqs, bodies = boto3.client("sqs"), []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    ).get("Messages", []):
        bodies += messages
    return bodies


def topic(aws: Aws, client: Any = None) -> SnsTopic:
    return SnsTopic(client or boto3.client("sns"), aws.events_topic, SIGNER, source="/darkroom/contract")


def test_events_reach_a_queue_as_they_are_with_what_filters_ask_for(aws: Aws) -> None:
    events = [numbered_event(number, tenant_id="acme", lane="fast") for number in range(23)]
    assert topic(aws).publish_all(events) == {}
    messages = received(aws.usage_queue_url)
    assert sorted(message["Body"] for message in messages) == sorted(
        body_of(event, source="/darkroom/contract") for event in events
    )
    for message in messages:
        attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
        signature = read_signature(attributes.pop("signature"))
        group = message["Attributes"]["MessageGroupId"]
        assert signature.covers(secret=KEYS.current().text, queue="events", group=group, body=message["Body"])
        assert attributes == {
            "type": "image.accepted",
            "tenant_id": "acme",
            "lane": "fast",
            "preset": "standard",
        }


def test_an_image_with_its_own_recipe_has_no_attribute_preset(aws: Aws) -> None:
    topic(aws).publish_all([replace(numbered_event(), preset=None)])
    (message,) = received(aws.usage_queue_url)
    assert "preset" not in message["MessageAttributes"]


class Sns:
    """A client whose answers a test gives; it keeps what was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.sent = list(answers), list[Any]()

    def publish_batch(self, **request: Any) -> Any:
        self.sent.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def throttled() -> ClientError:
    return ClientError({"Error": {"Code": "Throttled"}, "ResponseMetadata": {"HTTPStatusCode": 429}}, "PublishBatch")  # type: ignore[typeddict-item]


@pytest.mark.guards("signatures-no-key-events")
def test_without_a_key_no_event_is_published_and_all_are_told(aws: Aws) -> None:
    sns: Any = Sns()
    unsigned = SnsTopic(sns, aws.events_topic, keys_of(FakeSecret(is_down=True)), source="/")
    problems = unsigned.publish_all([numbered_event(n) for n in range(12)])
    assert sorted(problems) == list(range(12))
    assert all(isinstance(problem, Retryable) for problem in problems.values())


@pytest.mark.guards("events-topic-partial-failure")
def test_part_of_a_batch_may_fail_although_the_call_succeeds(aws: Aws) -> None:
    failed = [
        {"Id": "1", "Code": "InternalError", "SenderFault": False},
        {"Id": "2", "Code": "InvalidParameter", "SenderFault": True},
        {"Id": "3", "Code": "ThrottledException", "SenderFault": True},
    ]
    problems = topic(aws, Sns({"Successful": [], "Failed": failed})).publish_all([numbered_event(n) for n in range(5)])
    assert {place: type(problem) for place, problem in problems.items()} == {
        1: Retryable,
        2: Unpublishable,
        3: Retryable,
    }


def test_once_the_topic_does_not_answer_the_rest_is_not_tried(aws: Aws) -> None:
    sns = Sns({"Successful": []}, throttled())
    problems = topic(aws, sns).publish_all([numbered_event(n) for n in range(35)])
    assert (len(sns.sent), sorted(problems)) == (2, list(range(10, 35)))
    assert all(isinstance(problem, Retryable) for problem in problems.values())


@pytest.mark.guards("events-topic-batch-bytes")
def test_no_call_publishes_more_bytes_than_the_topic_takes(aws: Aws) -> None:
    sns = Sns(*[{"Successful": []}] * 6)
    events = [replace(numbered_event(n), data={"of an image with many variants": "v" * 49_000}) for n in range(12)]
    assert topic(aws, sns).publish_all([*events, *map(numbered_event, range(12))]) == {}
    batches = [request["PublishBatchRequestEntries"] for request in sns.sent]
    assert [entry["Id"] for batch in batches for entry in batch] == [str(place) for place in range(24)]
    assert all(len(json.dumps(batch)) < 262_144 and 0 < len(batch) <= 10 for batch in batches)


def test_a_refused_event_keeps_no_later_batch_from_being_published(aws: Aws) -> None:
    refused = {"Failed": [{"Id": "0", "Code": "InvalidParameter", "SenderFault": True}]}
    sns = Sns(refused, {"Successful": []})
    assert sorted(topic(aws, sns).publish_all([numbered_event(n) for n in range(12)])) == [0]
    assert len(sns.sent) == 2


def test_an_event_that_cannot_be_published_is_noted_for_people(aws: Aws) -> None:
    SqsUnpublished(boto3.client("sqs"), aws.unpublished_events_url).put("0" * 26, 7, "it is refused")
    (note,) = received(aws.unpublished_events_url)
    assert json.loads(note["Body"]) == {"v": 1, "subject": "0" * 26, "version": 7, "reason": "it is refused"}


# ── Usage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def usage(kind: str, aws: Aws) -> UsageCounts:
    if kind == "fake":
        return FakeUsage()
    return UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table)


def count(
    number: int, tenant_id: str = "acme", day: str = "2026-11-21", *, stored: Stored = NOTHING, **figures: int
) -> Count:
    usage = Usage(**figures)
    return Count(event_id=f"e-{number}", tenant_id=tenant_id, day=day, usage=usage, stored=stored, forget_at=NOW)


def days(
    usage: UsageCounts, tenant_id: str | None = None, *, since: str = "0000", until: str = "9999"
) -> Mapping[tuple[str, str], Usage]:
    listed = usage.days(since=since, until=until)
    if tenant_id is not None:
        listed = usage.days_of(tenant_id, since=since, until=until)
    return {(day.tenant_id, day.day): day.usage for day in listed if isinstance(day, DayOfUsage)}


def test_counts_add_up_by_tenant_and_day(usage: UsageCounts) -> None:
    assert len(usage.add([count(1, images=1, image_bytes=5), count(2, images=1), count(3, "b", images=1)])) == 3
    another_day = count(5, day="2026-11-22", images=1)
    assert len(usage.add([count(4, runs=1, variant_bytes=8, variant_pixels=9), another_day])) == 2
    assert days(usage) == {
        ("acme", "2026-11-21"): Usage(images=2, image_bytes=5, runs=1, variant_bytes=8, variant_pixels=9),
        ("b", "2026-11-21"): Usage(images=1),
        ("acme", "2026-11-22"): Usage(images=1),
    }
    assert days(usage, "acme", since="2026-11-22") == {("acme", "2026-11-22"): Usage(images=1)}
    assert days(usage, "b", until="2026-11-21") == {("b", "2026-11-21"): Usage(images=1)}
    assert DayOfUsage("b", "2026-11-21", Usage(images=1)) in list(usage.days(since="2026-11-21", until="2026-11-21"))


def test_of_a_tenant_that_is_forgotten_every_item_goes_and_none_of_its_events_counts_again(usage: UsageCounts) -> None:
    counts = [count(number, day=day, images=1) for number, day in enumerate(("2026-11-21", "2026-11-22", "stored"))]
    usage.add([*counts, count(9, "b", images=1)])
    assert [usage.forget("acme"), usage.forget("acme")] == [3, 0]
    assert list(usage.add(counts)) == []
    assert days(usage, until="~") == {("b", "2026-11-21"): Usage(images=1)}


@pytest.mark.guards("usage-event-counted-once")
def test_an_event_counts_once_however_often_it_comes_and_keeps_no_other_from_counting(usage: UsageCounts) -> None:
    assert len(usage.add([count(1, images=1), count(1, images=1)])) == 1
    assert len(usage.add([count(1, images=1), count(2, images=1), count(3, images=1)])) == 2
    assert len(usage.add([count(2, images=1), count(3, images=1)])) == 0
    assert days(usage) == {("acme", "2026-11-21"): Usage(images=3)}


ONE = Stored(size_bytes=500, images=1, unfinished=1)


@pytest.mark.guards("quotas-stored-counted-once", case="aws")
def test_what_is_stored_is_one_sum_for_each_tenant_that_falls_again(usage: UsageCounts) -> None:
    assert (usage.stored("acme"), usage.all_stored()) == (NOTHING, {})
    grown = Stored(size_bytes=30)
    usage.add([count(1, images=1, stored=ONE), count(2, runs=1, stored=grown), count(3, "b", images=1, stored=ONE)])
    assert (usage.stored("acme"), usage.stored("b")) == (ONE + grown, ONE)
    added = usage.add([count(4, stored=NOTHING - ONE - grown), count(4, stored=NOTHING - ONE - grown)])
    assert [event.event_id for event in added] == ["e-4"]
    usage.add([count(4, stored=NOTHING - ONE), count(5, "b", stored=NOTHING - ONE - ONE)])
    assert usage.all_stored() == {"acme": NOTHING, "b": NOTHING - ONE}, "one that began late falls below zero"
    assert days(usage).keys() == {("acme", "2026-11-21"), ("b", "2026-11-21")}, "it is no day"
    assert days(usage)["b", "2026-11-21"] == Usage(images=1)


@pytest.mark.guards("quotas-no-day-for-deletion", case="aws")
def test_a_deletion_alone_makes_no_day(usage: UsageCounts) -> None:
    usage.add([count(1, stored=NOTHING - ONE)])
    assert days(usage) == {}


def test_a_sum_is_corrected_only_if_nothing_was_counted_meanwhile(usage: UsageCounts) -> None:
    assert usage.correct("acme", NOTHING, ONE)
    assert not usage.correct("acme", NOTHING, ONE + ONE)
    usage.add([count(1, stored=ONE)])
    assert not usage.correct("acme", ONE, NOTHING)
    assert usage.stored("acme") == ONE + ONE
    assert usage.correct("acme", ONE + ONE, NOTHING)
    assert usage.correct("acme", NOTHING, NOTHING)
    assert usage.all_stored() == {"acme": NOTHING}


def test_a_whole_transaction_of_each_kind_is_counted(usage: UsageCounts) -> None:
    many = [count(number, f"tenant-{number}", images=1, stored=ONE) for number in range(70)]
    of_one = [count(number, images=1, stored=ONE) for number in range(100, 300)]
    batches = list(transactions_of([*many, *of_one]))
    assert [len(usage.add(batch)) for batch in batches] == list(map(len, batches))
    assert (len(days(usage)), days(usage)["acme", "2026-11-21"]) == (71, Usage(images=200))


class Cancelled:
    """A client whose first transactions are cancelled for these reasons; `sums` are the items that each adds to."""

    def __init__(self, *reasons: list[str]) -> None:
        self.reasons, self.client = list(reasons), boto3.client("dynamodb")
        self.sums: list[list[str]] = []

    def transact_write_items(self, **request: Any) -> Any:
        updates = [change["Update"]["Key"] for change in request["TransactItems"] if "Update" in change]
        self.sums.append([f"{key['tenant_id']['S']}/{key['day']['S']}" for key in updates])
        if self.reasons:
            codes = [{"Code": code} for code in self.reasons.pop(0)]
            answer: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": codes}
            raise ClientError(answer, "TransactWriteItems")
        return self.client.transact_write_items(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_was_throttled_may_be_tried_again(aws: Aws, reason: str) -> None:
    client: Any = Cancelled(["ConditionalCheckFailed", reason])
    with pytest.raises(Retryable, match=reason):
        UsageTable(client, aws.usage_table, aws.counted_events_table).add([count(1, images=1)])


@pytest.mark.guards("usage-conflict-next-part", "usage-conflict-not-written")
def test_who_meets_another_at_a_tenants_sum_goes_on_with_the_next_part_of_that_tenants_alone(aws: Aws) -> None:
    met = ["None", "None", "None", "TransactionConflict", "None"]  # two events, the days of two tenants, a sum
    client: Any = Cancelled(met, met)
    usage = UsageTable(client, aws.usage_table, aws.counted_events_table)
    assert len(usage.add([count(1, "b", images=1), count(2, images=1, stored=ONE)])) == 2
    assert len(usage.add([count(3, images=1), count(4, images=1, stored=ONE)])) == 2
    assert client.sums == [
        ["b/2026-11-21", "acme/2026-11-21", "acme/stored"],
        ["b/2026-11-21", "acme/2026-11-21#1", "acme/stored#1"],
        ["b/2026-11-21", "acme/2026-11-21#2", "acme/stored#2"],
        ["acme/2026-11-21#2", "acme/stored#2"],
    ]
    assert days(usage) == {("acme", "2026-11-21"): Usage(images=3), ("b", "2026-11-21"): Usage(images=1)}
    assert usage.stored("acme") == ONE + ONE


def test_who_meets_others_again_and_again_tries_later(aws: Aws) -> None:
    client: Any = Cancelled(*[["TransactionConflict", "None"]] * 6)
    usage = UsageTable(client, aws.usage_table, aws.counted_events_table)
    with pytest.raises(Retryable, match="TransactionConflict"):
        usage.add([count(1, images=1)])
    assert {*map(tuple, client.sums)} == {("acme/2026-11-21",)}, "another had the same event, and not the same sum"
    assert len(usage.add([count(1, images=1)])) == 1


def test_what_was_counted_before_stays_so_when_its_transaction_met_another(aws: Aws) -> None:
    client: Any = Cancelled()
    usage = UsageTable(client, aws.usage_table, aws.counted_events_table)
    usage.add([count(1, images=1)])
    client.reasons = [["ConditionalCheckFailed", "None", "TransactionConflict"]]
    assert [event.event_id for event in usage.add([count(1, images=1), count(2, images=1)])] == ["e-2"]
    assert days(usage) == {("acme", "2026-11-21"): Usage(images=2)}


def in_parts(aws: Aws) -> UsageTable:
    """A day of `acme` and what it stores, each in all parts; with a neighbour whose name begins with its."""
    usage = UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table)
    for number in range(PARTS):
        usage.add([count(number, images=1, stored=ONE), count(10 + number, "acme2", day="2026-11-22", images=1)])
        usage._go_on(["acme"])
    return usage


@pytest.mark.guards("usage-last-day-all-parts")
def test_the_parts_of_a_day_and_of_a_sum_are_told_as_one(aws: Aws) -> None:
    usage = in_parts(aws)
    complete = {("acme", "2026-11-21"): Usage(images=PARTS)}
    assert days(usage, until="2026-11-21") == days(usage, "acme", since="2026-11-21", until="2026-11-21") == complete
    assert len(list(usage.days_of("acme", since="2026", until="2027"))) == 1
    assert days(usage, "acme", since="2026-11-22") == days(usage, "acme", until="2026-11-20") == {}
    assert (
        usage.stored("acme")
        == usage.all_stored()["acme"]
        == Stored(size_bytes=500 * PARTS, images=PARTS, unfinished=PARTS)
    )
    assert (usage.forget("acme"), usage.forget("acme")) == (2 * PARTS, 0)
    assert days(usage) == {("acme2", "2026-11-22"): Usage(images=PARTS)}


def test_a_sum_in_parts_is_corrected_only_as_a_whole(aws: Aws) -> None:
    usage = in_parts(aws)
    stored = usage.stored("acme")
    assert not usage.correct("acme", NOTHING, ONE)
    assert usage.correct("acme", stored, ONE)
    assert usage.stored("acme") == ONE


def corrected_meanwhile(aws: Aws, usage: UsageTable, part: int) -> bool:
    """Whether a sum is corrected although an event of another process is added to that part meanwhile."""
    stored, other = (
        usage.stored("acme"),
        UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table),
    )
    other._parts["acme"] = part
    read = usage._stored_parts

    def and_then_one_more(*about: Any, **how: Any) -> Mapping[str, Stored]:
        parts = read(*about, **how)
        other.add([count(99, stored=ONE)])
        return parts

    usage._stored_parts = and_then_one_more  # type: ignore[method-assign]
    is_corrected = usage.correct("acme", stored, NOTHING)
    assert usage.stored("acme") == (ONE if is_corrected else stored + ONE)
    return is_corrected


@pytest.mark.guards("quotas-unchanged-sum-only", case="0")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_sum_is_not_corrected_while_any_part_of_it_changes(aws: Aws, part: int) -> None:
    assert not corrected_meanwhile(aws, in_parts(aws), part)


@pytest.mark.guards("quotas-no-new-part")
def test_a_sum_is_not_corrected_while_a_further_part_of_it_begins(aws: Aws) -> None:
    usage = UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table)
    usage.add([count(1, stored=ONE)])
    assert not corrected_meanwhile(aws, usage, PARTS - 1)


@pytest.mark.guards("usage-other-cancellation-raised")
@pytest.mark.parametrize("reasons", [[], ["None", "None"], ["ItemCollectionSizeLimitExceeded", "None"]])
def test_a_transaction_that_was_cancelled_for_another_reason_is_never_taken_for_counted(
    aws: Aws, reasons: list[str]
) -> None:
    client: Any = Cancelled(reasons)
    with pytest.raises(ClientError):
        UsageTable(client, aws.usage_table, aws.counted_events_table).add([count(1, images=1)])


def test_a_disabled_webhook_reaches_the_topic_of_the_operator_as_its_event(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns, sqs = boto3.client("sns"), boto3.client("sqs")
    notices = sns.create_topic(Name="notices")["TopicArn"]
    url = sqs.create_queue(QueueName="notices")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=notices, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    monkeypatch.setenv("NOTICES_TOPIC", notices)
    endpoints = EndpointsTable(boto3.client("dynamodb"), aws.endpoints_table)
    for place, by in ((3, DisabledBy.GONE), (4, DisabledBy.CLIENT)):
        row = endpoint(place)
        endpoints.create(row)
        endpoints.change(row, disable(row, by, now=NOW))
    call(load("publish_events", aws, monkeypatch), {"Records": written(aws.endpoints_table)})
    (message,) = received(url)
    assert json.loads(message["Body"])["data"]["disabled_by"] == "gone"


# ── Consumers ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("consumers-apart")
@pytest.mark.parametrize("broken", ["count_usage", "create_deliveries"])
def test_a_consumer_keeps_up_while_another_is_broken_and_misses_nothing(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    urls = {"count_usage": functions.aws.usage_queue_url, "create_deliveries": functions.aws.webhooks_queue_url}
    (healthy,) = urls.keys() - {broken}
    kept_up: list[int] = []
    left: list[Any] = []
    published = 0
    with monkeypatch.context() as patch:
        patch.setattr(getattr(functions, broken), broken, raising(RuntimeError("a bug")))
        for _ in range(3):
            functions.post()
            changes = written(functions.aws.images_table)
            assert call(functions.publish_events, {"Records": changes[published:]}) == {"batchItemFailures": []}
            published = len(changes)
            batch = batch_of(urls[broken])
            with pytest.raises((RuntimeError, UserWarning)):  # Powertools warns that there are no metrics
                call(getattr(functions, broken), batch)
            left += batch["Records"]
            event = batch_of(urls[healthy])
            assert call(getattr(functions, healthy), event) == {"batchItemFailures": []}
            kept_up.append(len(event["Records"]))
    assert (kept_up, len(left)) == ([1, 1, 1], 3), "what was not settled comes again"
    assert call(getattr(functions, broken), {"Records": left}) == {"batchItemFailures": []}
