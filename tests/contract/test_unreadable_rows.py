"""Rows of an unknown version, as raw items: whatever one contains, it affects no other row, and stays as it is."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from darkroom.aws.images import images_table
from darkroom.aws.images.images_table import from_item, to_item
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.tenants.token_buckets_table import TokenBucketsTable
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.images.image import Attempt, Failure, Image, Status, Variant, due_shard_of
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.message import read_message
from darkroom.domain.kernel.tenants import Allowance
from darkroom.domain.webhooks.delivery import Delivery
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.ports.images import Due, Waiting
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.usage import DayOfUsage
from darkroom.ports.webhooks import Deliveries, DueDelivery, DueEndpoint, Endpoints
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.erase_tenant import EraseTenantPorts, keys_of
from darkroom_cli.operator.ports import ImageRegistry
from tests.contract.conftest import Aws
from tests.contract.functions import (
    Functions,
    asked,
    call,
    document,
    emitted,
    http_event,
    made,
    problem,
    received,
    written,
)
from tests.contract.stores import ACME, STORED
from tests.support.fakes import FakeImages
from tests.support.fakes.batch_rows import FakeBatches
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.pauses import FakePauses
from tests.support.fakes.tenants import FakeTenants
from tests.support.fakes.webhooks import FakeDeliveries, FakeEndpoints
from tests.support.images import CAUSE, NOW, awaiting, pending
from tests.support.notifications import event
from tests.support.webhooks import delivery, endpoint

RECIPE: dict[str, Any] = json.loads(to_item(pending())["recipe"]["S"])
WHOLE = replace(
    pending(),
    variants=(Variant(name="a", width=1, height=2, format="jpeg", size_bytes=3, sha256="s", key="k"),),
    error=Failure(code="c", message="m", retryable=True),
    attempts=(Attempt(run=1, number=1, request_id="r1", started_at=NOW, cause=CAUSE),),
    placeholder={"color": "#000000"},
)

NEWER: dict[str, dict[str, Any]] = {
    "a recipe with another field": {"recipe": {"S": json.dumps(RECIPE | {"watermark": "©"})}},
    "a recipe that is no text": {"recipe": {"M": {}}},
    "an unknown status": {"status": {"S": "frozen"}},
    "an unknown lane": {"lane": {"S": "newer"}},
    "an unknown verdict of its letter": {"dead_letter": {"S": "burnt"}},
    "an attribute of another type": {"expires_at": {"S": "2026-12-24T08:00:00Z"}},
    "a number that is not whole": {"rescues": {"N": "0.5"}},
    "a set where a list was": {"notices": {"SS": ["Animated."]}},
    "a list where a record was": {"error": {"L": []}},
    "metadata that is no JSON": {"metadata": {"S": "{'shelf': 17}"}},
    "a number among texts": {"placeholder": {"M": {"color": {"N": "0"}}}},
    "a variant with another field": {
        "variants": {"L": [{"M": to_item(WHOLE)["variants"]["L"][0]["M"] | {"x": {"N": "1"}}}]}
    },
    "a source with another field": {"source": {"M": to_item(WHOLE)["source"]["M"] | {"bucket": {"S": "b"}}}},
    "a failure with another field": {"error": {"M": to_item(WHOLE)["error"]["M"] | {"link": {"S": "l"}}}},
    "an attempt with another field": {
        "attempts": {"L": [{"M": to_item(WHOLE)["attempts"]["L"][0]["M"] | {"host": {"S": "h"}}}]}
    },
    "a cause with another field": {
        "attempts": {
            "L": [
                {
                    "M": to_item(WHOLE)["attempts"]["L"][0]["M"]
                    | {"cause": {"M": to_item(WHOLE)["attempts"]["L"][0]["M"]["cause"]["M"] | {"core": {"S": "c"}}}}
                }
            ]
        }
    },
    "a field that is gone": {"fingerprint": {}},
}


def newer(image: Image, change: dict[str, Any] | None = None) -> dict[str, Any]:
    """The item of the image as a newer version might have written it."""
    return {
        name: value
        for name, value in (to_item(image) | (change or NEWER["a recipe with another field"])).items()
        if value
    }


def plant(aws: Aws, image: Image, change: dict[str, Any] | None = None) -> dict[str, Any]:
    item = newer(image, change)
    boto3.client("dynamodb").put_item(TableName=aws.images_table, Item=item)
    return item


def item_of(aws: Aws, image_id: str) -> dict[str, Any]:
    key: Any = {"image_id": {"S": image_id}}
    return dict(boto3.client("dynamodb").get_item(TableName=aws.images_table, Key=key)["Item"])


def images_with(kind: str, aws: Aws, *unreadable: Image) -> ImageRegistry:
    if kind == "fake":
        return FakeImages(unreadable={image.image_id: image for image in unreadable})
    for image in unreadable:
        plant(aws, image)
    return ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)


# ── The form ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("unreadable-unknown-attribute", case="a source with another field")
@pytest.mark.guards("unreadable-mistyped-value", case="an attribute of another type")
@pytest.mark.guards("unreadable-unknown-lane", case="an unknown lane")
@pytest.mark.guards("unreadable-row-any-error", case="an unknown status")
@pytest.mark.guards("unreadable-metadata-no-json", case="metadata that is no JSON")
@pytest.mark.parametrize("change", NEWER.values(), ids=NEWER)
def test_whatever_a_newer_version_may_write_makes_a_row_unreadable_and_is_told(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(UnreadableRow) as unreadable:
        from_item(newer(WHOLE, change))
    row = unreadable.value
    assert name in row.reason
    assert (row.row_id, row.tenant_id) == (WHOLE.image_id, WHOLE.tenant_id)
    assert (row.due_at, row.waiting_since) == (WHOLE.due_at, WHOLE.waiting_since)
    assert "deploy that version again" in str(row)


def test_the_reason_repeats_nothing_of_what_clients_have_written() -> None:
    with pytest.raises(UnreadableRow) as unreadable:
        from_item(newer(WHOLE, NEWER["a recipe with another field"]))
    assert unreadable.value.reason == "recipe: watermark: Extra inputs are not permitted"


# ── The port ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unreadable_row_is_neither_read_nor_written_and_is_there(kind: str, aws: Aws) -> None:
    image = pending()
    images = images_with(kind, aws, image)
    calls: tuple[Callable[[], object], ...] = (
        lambda: images.get(image.image_id),
        lambda: images.create(pending(correlation_id="second")),
        lambda: images.change(replace(image, attempt=7), replace(image, attempt=8)),
    )
    for call_ in calls:
        with pytest.raises(UnreadableRow) as unreadable:
            call_()
        assert unreadable.value.row_id == image.image_id
        assert unreadable.value.tenant_id == image.tenant_id
        assert isinstance(unreadable.value, Retryable), "a version that can read it will"
    assert images.known([image.image_id]) == {image.image_id}


def test_of_many_rows_an_unreadable_one_takes_its_own_place_alone(kind: str, aws: Aws) -> None:
    images = images_with(kind, aws, pending(image_id="0" * 26))
    good = images.create(pending(image_id="1" * 26))
    rows = images.get_all(["0" * 26, good.image_id, "2" * 26])
    assert rows[good.image_id] == good and set(rows) == {"0" * 26, good.image_id}
    bad = rows["0" * 26]
    assert isinstance(bad, UnreadableRow) and (bad.row_id, bad.due_at) == ("0" * 26, pending().due_at)
    everything = list(images.everything())
    assert good in everything and len(everything) == 2
    assert [row.row_id for row in everything if isinstance(row, UnreadableRow)] == ["0" * 26]


def test_the_indexes_list_an_unreadable_row_as_any_other(kind: str, aws: Aws) -> None:
    image = pending(due_at=NOW, waiting_since=NOW)
    images, shard = images_with(kind, aws, image), due_shard_of(image.image_id)
    assert list(images.due(shard, NOW, 9)) == [Due(NOW, image.image_id)]
    assert list(images.waiting("slow", shard, since=NOW, until=NOW + 1, page_size=9)) == [Waiting(NOW, image.image_id)]
    assert [place.image_id for place in images.newest("default", after=None, limit=9).cursors] == [image.image_id]


@pytest.mark.guards("unreadable-postponed-only-if-due", case="aws")
def test_a_look_is_postponed_once_and_nothing_else_of_the_row_is_touched(kind: str, aws: Aws) -> None:
    image = pending(due_at=NOW)
    images, shard = images_with(kind, aws, image), due_shard_of(image.image_id)
    (due,) = images.due(shard, NOW, 9)
    assert images.postpone(due, NOW + 600)
    assert not images.postpone(due, NOW + 700), "it is due at another time by now"
    assert list(images.due(shard, NOW + 10_000, 9)) == [Due(NOW + 600, image.image_id)]
    assert not images.postpone(Due(NOW, "7" * 26), NOW + 600) and images.get("7" * 26) is None
    if kind == "aws":
        assert item_of(aws, image.image_id) == newer(replace(image, due_at=NOW + 600))


def test_a_readable_row_is_postponed_alike(kind: str, aws: Aws) -> None:
    images = images_with(kind, aws)
    image = images.create(pending(due_at=NOW))
    assert images.postpone(Due(NOW, image.image_id), NOW + 600)
    assert images.get(image.image_id) == replace(image, due_at=NOW + 600)


@pytest.mark.guards("unreadable-oldest-looks-behind", case="aws")
def test_unreadable_rows_hide_no_older_image_of_their_lane(kind: str, aws: Aws) -> None:
    ids = [image_id for n in range(300) if due_shard_of(image_id := f"{n:026d}") == "07"]
    bad = [pending(image_id=image_id, waiting_since=NOW - 99) for image_id in ids[:7]]
    images = images_with(kind, aws, *bad)
    assert images.oldest_waiting("slow", "07") is None
    images.create(pending(image_id=ids[7], waiting_since=NOW - 5))
    assert images.oldest_waiting("slow", "07") == NOW - 5


@pytest.mark.guards("unreadable-oldest-looks-behind")
def test_where_too_many_unreadable_rows_come_first_the_oldest_is_told_as_older_than_it_is(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images_table, "_CANDIDATES", 3)
    ids = [image_id for n in range(300) if due_shard_of(image_id := f"{n:026d}") == "07"]
    bad = [pending(image_id=image_id, waiting_since=NOW - 99 + n) for n, image_id in enumerate(ids[:3])]
    images = images_with("aws", aws, *bad)
    images.create(pending(image_id=ids[7], waiting_since=NOW - 5))
    assert images.oldest_waiting("slow", "07") == NOW - 97


# ── The functions ────────────────────────────────────────────────────────────────────────────────────────────────────


def image_of(functions: Functions, **changes: Any) -> Image:
    """An accepted image whose row a newer version has since written."""
    image = replace(functions.row(document(functions.post())["id"]), **changes)
    plant(functions.aws, image)
    return image


def due_image_of(functions: Functions) -> str:
    """An accepted image that was never sent, and is due."""
    row = functions.row(document(functions.post())["id"])
    table = ImageRegistryTable(boto3.client("dynamodb"), functions.aws.images_table)
    table.change(row, replace(row, due_at=2, enqueued_at=None))
    return row.image_id


@pytest.mark.guards("unreadable-row-any-error")
def test_a_sweep_handles_all_others_and_reports_it(
    functions: Functions, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = image_of(functions, due_at=1, waiting_since=1)
    due_image_of(functions)
    capsys.readouterr()
    assert call(functions.sweep_due_images, {})["outcomes"] == {"rescued": 1, "unreadable": 1}
    out = capsys.readouterr().out
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["RowsUnreadable"] for line in lines if "RowsUnreadable" in line] == [[1.0]]
    (error,) = [json.loads(line) for line in log.getvalue().splitlines() if '"ERROR"' in line]
    assert (error["row_id"], error["reason"]) == (bad.image_id, "recipe: watermark: Extra inputs are not permitted")
    assert ("OldestUnfinishedSeconds", frozenset({("service", "darkroom"), ("lane", "slow")})) in set(emitted(out))
    item = item_of(functions.aws, bad.image_id)
    assert item == newer(bad) | {"due_at": item["due_at"]} and int(item["due_at"]["N"]) > bad.created_at


@pytest.mark.guards("sweep-measuring-isolated", "sweep-missed-fails")
def test_a_sweep_whose_measuring_trips_a_bug_sweeps_all_the_same_and_fails(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(functions.sweep_due_images.ports.images, "oldest_waiting", lambda lane, shard: 1 / 0)
    image_id = due_image_of(functions)
    capsys.readouterr()
    with pytest.raises(Retryable, match="the oldest image"):  # or nobody would hear that the alarms are blind
        call(functions.sweep_due_images, {})
    assert functions.row(image_id).rescues == 1
    assert "OldestUnfinishedSeconds" not in {name for name, _ in emitted(capsys.readouterr().out)}
    assert log.getvalue().count("it cannot be measured") == len(LANES) and "ZeroDivisionError" in log.getvalue()


@pytest.mark.guards("sweep-shard-isolated", "sweep-missed-fails")
def test_a_sweep_that_could_not_list_a_shard_fails_once_it_has_seen_to_all_others(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = due_image_of(functions)
    images = functions.sweep_due_images.ports.images
    due, hidden = images.due, f"{(int(due_shard_of(image_id)) + 1) % 16:02d}"

    def fails(shard: str, *arguments: Any) -> Any:
        if shard == hidden:
            raise Retryable("reading the due index: ThrottlingException")
        return due(shard, *arguments)

    monkeypatch.setattr(images, "due", fails)
    with pytest.raises(Retryable, match=hidden):
        call(functions.sweep_due_images, {})
    assert functions.row(image_id).rescues == 1


@pytest.mark.guards("unreadable-left-out-of-list")
def test_a_list_shows_all_others_and_the_row_itself_is_unavailable(
    functions: Functions, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = image_of(functions)
    good = document(functions.post())["id"]
    capsys.readouterr()
    listed = functions.get("/images")
    assert [image["id"] for image in document(listed)["images"]] == [good]
    assert "RowsUnreadable" in capsys.readouterr().out
    for path in ("", "/status", "/variants/thumb"):
        answer = functions.get(f"/images/{bad.image_id}{path}")
        assert "newer" in problem(answer, 503, "unavailable")["detail"]
        assert answer["headers"]["Retry-After"] == "60"
    assert log.getvalue().count("a row cannot be read") == 4
    withdrawn = call(functions.delete_image, http_event("DELETE", f"/images/{bad.image_id}"))
    problem(withdrawn, 503, "unavailable")
    assert item_of(functions.aws, bad.image_id) == newer(bad)


@pytest.mark.guards("unreadable-other-tenant-hidden")
def test_another_tenants_unreadable_row_is_no_different_from_none(functions: Functions) -> None:
    bad = image_of(functions, tenant_id="somebody else")
    for path in ("", "/status", "/variants/thumb"):
        problem(functions.get(f"/images/{bad.image_id}{path}"), 404, "unknown_image")
    problem(call(functions.delete_image, http_event("DELETE", f"/images/{bad.image_id}")), 404, "unknown_image")


def test_a_repeated_upload_whose_row_is_unreadable_is_answered_503_and_changes_nothing(functions: Functions) -> None:
    image = functions.row(document(functions.post(idempotency_key="order-1"))["id"])
    plant(functions.aws, image)
    problem(functions.post(idempotency_key="order-1"), 503, "unavailable")
    assert item_of(functions.aws, image.image_id) == newer(image)


@pytest.mark.guards("unreadable-row-any-error", case="5-False")
@pytest.mark.parametrize(("count", "comes_back"), [(1, True), (4, True), (5, False)])
def test_its_delivery_is_put_off_without_an_attempt_and_never_ends_as_a_dead_letter(
    functions: Functions, count: int, comes_back: bool
) -> None:
    bad = image_of(functions)
    good = document(functions.post())["id"]
    delivered = received(functions.aws.slow_queue_url)
    for record in delivered["Records"]:
        if read_message(record["body"]).image_id == bad.image_id:
            record["attributes"]["ApproximateReceiveCount"] = str(count)
    answer = call(functions.transcode_image, delivered)
    assert len(answer["batchItemFailures"]) == int(comes_back)
    assert functions.row(good).status is Status.DONE
    assert item_of(functions.aws, bad.image_id) == newer(bad)


@pytest.mark.guards("isolated-upload-of-several")
def test_a_notification_of_several_uploads_accepts_those_with_readable_rows(functions: Functions) -> None:
    bad, good = awaiting(image_id="0" * 26), awaiting(image_id="1" * 26)
    plant(functions.aws, bad)
    images = ImageRegistryTable(boto3.client("dynamodb"), functions.aws.images_table)
    images.create(good)
    sqs = boto3.client("sqs")
    sqs.send_message(
        QueueUrl=functions.aws.upload_queue_url,
        MessageBody=event(*(f"uploads/{image.image_id}" for image in (bad, good))),
    )
    body = b"no picture"
    boto3.client("s3").put_object(Bucket=functions.aws.uploads_bucket, Key=f"uploads/{good.image_id}", Body=body)
    answer = call(functions.accept_upload, received(functions.aws.upload_queue_url))
    assert len(answer["batchItemFailures"]) == 1, "it comes back for the one"
    assert functions.row(good.image_id).status is Status.FAILED, "the other was looked at, and is no picture"


# ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoil(aws: Aws, row: Endpoint | Delivery, **attributes: Any) -> dict[str, Any]:
    """A newer version has written the row; returns its item."""
    table = aws.deliveries_table if isinstance(row, Delivery) else aws.endpoints_table
    client = boto3.client("dynamodb")
    (item,) = [each for each in client.scan(TableName=table)["Items"] if is_of(each, row)]
    newer_item = item | {"state": {"S": "hibernating"}, "status": {"S": "parked"}} | attributes
    client.put_item(TableName=table, Item=newer_item)
    return newer_item


def is_of(item: Any, row: Endpoint | Delivery) -> bool:
    is_its = bool(item["endpoint_id"]["S"] == row.endpoint_id)
    return is_its and (not isinstance(row, Delivery) or item["delivery_id"]["S"] == row.delivery_id)


def webhooks_of(kind: str, aws: Aws) -> tuple[Endpoints, Deliveries, Callable[[Endpoint | Delivery], object]]:
    if kind == "fake":
        endpoints, deliveries = FakeEndpoints(), FakeDeliveries()

        def hide(row: Endpoint | Delivery) -> None:
            if isinstance(row, Delivery):
                deliveries.unreadable.add((row.endpoint_id, row.delivery_id))
            else:
                endpoints.unreadable.add(row.endpoint_id)

        return endpoints, deliveries, hide
    client = boto3.client("dynamodb")
    tables = EndpointsTable(client, aws.endpoints_table), DeliveriesTable(client, aws.deliveries_table)
    return *tables, lambda row: spoil(aws, row)


@pytest.mark.guards("unreadable-endpoint-isolated", case="aws")
def test_of_a_tenants_endpoints_an_unreadable_one_takes_its_own_place_alone(kind: str, aws: Aws) -> None:
    endpoints, _, hide = webhooks_of(kind, aws)
    bad, good = endpoint(0, due_at=NOW), endpoint(1)
    for row in (bad, good):
        endpoints.create(row)
    hide(bad)
    named, read = endpoints.of_tenant("acme")
    assert read == good and isinstance(named, UnreadableRow)
    assert (named.row_id, named.tenant_id, named.due_at) == (bad.endpoint_id, "acme", NOW)
    assert named.events == ("image.*",)
    with pytest.raises(UnreadableRow):
        endpoints.get("acme", bad.endpoint_id)
    endpoints.postpone(DueEndpoint(NOW, "acme", bad.endpoint_id), NOW + 600)
    (named, _) = endpoints.of_tenant("acme")
    assert isinstance(named, UnreadableRow) and named.due_at == NOW + 600
    endpoints.remove("acme", bad.endpoint_id)
    assert list(endpoints.of_tenant("acme")) == [good]


@pytest.mark.parametrize("events", [{"S": "*"}, {"L": [{"M": {}}]}, {"L": []}])
def test_what_an_unreadable_endpoint_wants_may_be_unreadable_as_well(aws: Aws, events: dict[str, Any]) -> None:
    endpoints, _, _ = webhooks_of("aws", aws)
    endpoints.create(endpoint())
    spoil(aws, endpoint(), events=events)
    (named,) = endpoints.of_tenant("acme")
    assert isinstance(named, UnreadableRow) and named.events is None


def test_an_endpoint_that_lost_its_place_to_an_unreadable_one_is_gone(aws: Aws) -> None:
    endpoints, _, _ = webhooks_of("aws", aws)
    first, second = endpoint(3, number=1), endpoint(3, number=2)
    endpoints.create(first)
    endpoints.remove("acme", first.endpoint_id)
    endpoints.create(second)
    spoil(aws, second)
    with pytest.raises(Fenced) as fenced:
        endpoints.change(first, replace(first, failures=1))
    assert fenced.value.current is None


@pytest.mark.guards("unreadable-postpone-fence", case="aws")
def test_a_delivery_that_cannot_be_read_is_named_and_postponed_once(kind: str, aws: Aws) -> None:
    _, deliveries, hide = webhooks_of(kind, aws)
    bad, good = delivery(1), delivery(2)
    for row in (bad, good):
        deliveries.create(row)
    hide(bad)
    row_id, endpoint_id = f"{bad.endpoint_id}/{bad.delivery_id}", bad.endpoint_id
    calls: tuple[Callable[[], object], ...] = (
        lambda: deliveries.get(endpoint_id, bad.delivery_id),
        lambda: deliveries.create(bad),
    )
    for call_ in calls:
        with pytest.raises(UnreadableRow) as unreadable:
            call_()
        assert (unreadable.value.row_id, unreadable.value.due_at) == (row_id, bad.due_at)
    named, read = deliveries.page(endpoint_id, limit=9, newest_first=False).deliveries
    assert read == good and isinstance(named, UnreadableRow) and named.row_id == row_id
    due = deliveries.due(endpoint_id, 9)
    assert [delivery.delivery_id for delivery in due] == [bad.delivery_id, good.delivery_id]
    before = None if kind == "fake" else spoil(aws, bad)
    deliveries.postpone(endpoint_id, due[0], NOW + 3_600_000)
    deliveries.postpone(endpoint_id, due[0], NOW + 7_200_000)
    deliveries.postpone(endpoint_id, DueDelivery(NOW, "00000000000000-none"), NOW + 1)
    assert deliveries.due(endpoint_id, 9)[1] == DueDelivery(NOW + 3_600_000, bad.delivery_id)
    assert len(deliveries.page(endpoint_id, limit=9).deliveries) == 2, "and none was made"
    if before is not None:
        assert spoil(aws, bad) == before | {"due_at": {"N": str(NOW + 3_600_000)}}


@pytest.mark.guards("unreadable-delivery-postponed", "unreadable-endpoint-isolated")
def test_the_functions_of_webhooks_go_on_around_unreadable_rows_and_report_them(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints, deliveries, _ = webhooks_of("aws", functions.aws)
    bad, good = (endpoint(place, tenant_id="default") for place in (0, 1))
    for row in (bad, good):
        endpoints.create(row)
    spoil(functions.aws, bad)
    functions.post()
    call(functions.publish_events, {"Records": written(functions.aws.images_table)})
    assert call(functions.create_deliveries, received(functions.aws.webhooks_queue_url)) == {"batchItemFailures": []}
    noted = [len(deliveries.due(row.endpoint_id, 9)) for row in (bad, good)]
    assert noted == [1, 1]
    assert "RowsUnreadable" in capsys.readouterr().out
    (page,) = deliveries.page(good.endpoint_id, limit=9).deliveries
    assert isinstance(page, Delivery)
    spoil(functions.aws, page)
    event = received(functions.aws.delivery_queue_url)
    assert len(event["Records"]) == 1
    assert call(functions.deliver_event, event) == {"batchItemFailures": []}, "its row is due"
    assert "RowsUnreadable" in capsys.readouterr().out
    (due,) = deliveries.due(good.endpoint_id, 9)
    assert due.due_at > (page.due_at or 0) + 1_800_000


@pytest.mark.guards("webhook-unreadable-row-tenant")
@pytest.mark.parametrize(("attribute", "value"), [("state", {"S": "paused"}), ("secrets", {"S": "x"})])
def test_a_webhook_that_a_newer_version_wrote_is_unavailable_and_left_alone(
    functions: Functions, attribute: str, value: dict[str, str]
) -> None:
    webhook_id = made(functions)
    table, dynamodb = functions.aws.endpoints_table, boto3.client("dynamodb")
    (item,) = dynamodb.scan(TableName=table)["Items"]
    dynamodb.put_item(TableName=table, Item={**item, attribute: value})
    for method, path, body in (("GET", "", None), ("PATCH", "", {"enabled": False}), ("POST", "/ping", None)):
        response = asked(functions, method, f"/webhooks/{webhook_id}{path}", body)
        problem(response, 503, "unavailable")
        assert response["headers"]["Retry-After"] == "60"
    sibling = made(functions, "https://hooks.example.com/2")
    assert [webhook["id"] for webhook in document(asked(functions, "GET", "/webhooks"))["webhooks"]] == [sibling]
    assert document(functions.post(query={"notify": webhook_id}))["id"]
    asked(functions, "DELETE", f"/webhooks/{sibling}")
    assert dynamodb.scan(TableName=table)["Items"] == [{**item, attribute: value}]


# ── Other tables ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("isolated-tenant-row", "unreadable-key-erased", case="aws")
def test_a_tenant_or_a_key_that_cannot_be_read_concerns_no_other(kind: str, aws: Aws) -> None:
    fake = FakeTenants(unreadable_tenants={"next"}, unreadable_keys={"00000009"})
    table = TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)
    tenants = fake if kind == "fake" else table
    items: tuple[dict[str, Any], ...] = (
        {"id": {"S": "tenant#next"}, "tenant_id": {"S": "next"}, "tier": {"S": "platinum"}, "state": {"S": "active"}},
        {
            "id": {"S": "key#00000009"},
            "key_id": {"S": "00000009"},
            "tenant_id": {"S": "next"},
            "created_at": {"M": {}},
        },
    )
    for item in items:
        boto3.client("dynamodb").put_item(TableName=aws.tenants_table, Item=item)
    tenants.add_tenant(ACME)
    tenants.add_key(STORED)
    (acme, next_tenant), (key, next_key) = tenants.all_tenants(), tenants.all_keys()
    assert (acme, key) == (ACME, STORED)
    assert isinstance(next_tenant, UnreadableRow) and next_tenant.row_id == "next"
    assert isinstance(next_key, UnreadableRow) and next_key.row_id == "00000009"
    if kind == "aws":
        ports = EraseTenantPorts(
            tenants=tenants,
            images=FakeImages(),
            endpoints=FakeEndpoints(),
            deliveries=FakeDeliveries(),
            usage=FakeUsage(),
            token_buckets=FakeTokenBuckets(),
            pauses=FakePauses(),
            batches=FakeBatches(),
        )
        assert keys_of(ports, ["next"]) == {"next": ["00000009"]}, "an erasure finds it"
    with pytest.raises(UnreadableRow):
        tenants.tenant("next")
    with pytest.raises(UnreadableRow):
        tenants.key("00000009")


@pytest.mark.guards("isolated-throughput-minute")
def test_a_throughput_of_another_version_is_passed_over(aws: Aws) -> None:
    throughput = ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    throughput.add("slow", Work(settled=3, busy_milliseconds=5), NOW)
    boto3.client("dynamodb").put_item(
        TableName=aws.throughput_table,
        Item={"lane": {"S": "slow"}, "minute": {"N": str(NOW + 1)}, "settled": {"M": {"photos": {"N": "3"}}}},
    )
    assert list(throughput.latest("slow", NOW + 2)) == [Work(settled=3, busy_milliseconds=5)]


@pytest.mark.guards("isolated-token-bucket")
def test_a_bucket_of_another_version_is_one_that_does_not_answer(ambient: None) -> None:
    client = boto3.client("dynamodb")
    with Stubber(client) as table:  # comparing text with a number is false in DynamoDB, but an error in moto
        for _ in range(6):
            table.add_client_error(
                "update_item",
                "ConditionalCheckFailedException",
                modeled_fields={"Item": {"tenant_id": {"S": "acme"}, "tat": {"S": "2026-12-24"}}},
            )
        with pytest.raises(Retryable, match="changed under every attempt"):
            TokenBucketsTable(client, "buckets").take("acme", Allowance(requests_per_second=1, burst=1), NOW * 1000)


@pytest.mark.guards("rows-recipe-required")
def test_a_row_without_a_recipe_is_unreadable_unless_it_is_a_tombstone() -> None:
    item = {name: value for name, value in to_item(pending()).items() if name != "recipe"}
    with pytest.raises(UnreadableRow, match="recipe: it is missing"):
        from_item(item)
    assert from_item(item | {"deleted_at": {"N": str(NOW)}}).recipe is None


@pytest.mark.guards("isolated-usage-day")
def test_a_day_of_usage_that_cannot_be_read_is_named_and_hides_no_other(aws: Aws) -> None:
    usage = UsageTable(boto3.client("dynamodb"), aws.usage_table, aws.counted_events_table)
    for tenant, images in (("acme", {"N": "3"}), ("next", {"M": {}})):
        item: Any = {"tenant_id": {"S": tenant}, "day": {"S": "2026-11-21"}, "images": images}
        boto3.client("dynamodb").put_item(TableName=aws.usage_table, Item=item)
    days = list(usage.days(since="2026-11-01", until="2026-11-30"))
    assert [day.usage.images for day in days if isinstance(day, DayOfUsage)] == [3]
    assert [day.row_id for day in days if isinstance(day, UnreadableRow)] == ["next/2026-11-21"]
