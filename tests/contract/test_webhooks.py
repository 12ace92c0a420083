"""Endpoints, deliveries and their queue: the fakes and the tables of AWS alike."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.tenants.suspensions import Suspensions
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.delivery_queue import SqsDeliveryQueue
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.kernel.tenants import AUTHORIZER_CACHE_SECONDS, Tenant, TenantState, Tier
from darkroom.domain.webhooks.delivery import (
    KEPT_SECONDS,
    Answer,
    Delivery,
    DeliveryStatus,
    claim,
    message_for,
    read_delivery_message,
    record,
)
from darkroom.domain.webhooks.endpoint import (
    CustomHeader,
    Endpoint,
    InFlight,
    RecoveryProgress,
    SigningSecret,
    runway_of,
)
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.webhooks import Deliveries, DueDelivery, DueEndpoint, Endpoints
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from tests.contract.conftest import Aws
from tests.support.fakes.messages import SIGNER
from tests.support.fakes.webhooks import FakeDeliveries, FakeEndpoints
from tests.support.webhooks import delivery, endpoint

NOW = 1_795_251_600_000


def test_all_endpoints_are_read_and_one_of_a_later_version_is_named(aws: Aws) -> None:
    table, client = EndpointsTable(boto3.client("dynamodb"), aws.endpoints_table), boto3.client("dynamodb")
    for place in (0, 1):
        table.create(endpoint(place))
    table.create(endpoint(tenant_id="other"))
    key = {"tenant_id": {"S": "acme"}, "place": {"N": "1"}}
    client.update_item(
        TableName=aws.endpoints_table,
        Key=key,
        UpdateExpression="SET #state = :later",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":later": {"S": "pondering"}},
    )
    rows_read = list(table.everything())
    assert sorted(row.tenant_id for row in rows_read if isinstance(row, Endpoint)) == ["acme", "other"]
    (unreadable,) = [row for row in rows_read if isinstance(row, UnreadableRow)]
    assert (unreadable.row_id, unreadable.tenant_id) == (endpoint(1).endpoint_id, "acme")


@pytest.fixture
def stores(kind: str, aws: Aws) -> tuple[Endpoints, Deliveries]:
    if kind == "fake":
        return FakeEndpoints(), FakeDeliveries()
    client = boto3.client("dynamodb")
    return EndpointsTable(client, aws.endpoints_table), DeliveriesTable(client, aws.deliveries_table)


FULL = endpoint(
    description="é",
    headers=(CustomHeader(name="Authorization", sealed="c2VhbGVk"), CustomHeader(name="X-Shop", value="42")),
    secrets=(SigningSecret(generation=2), SigningSecret(generation=1, until=NOW + 5)),
    failures=2,
    unreached=1,
    failing_since=NOW,
    rests_until=NOW + 9,
    probe="p",
    successes=0,
    flights=(InFlight(delivery_id="d", claimed_by="r", until=NOW + 60_000),),
    crowded_at=NOW,
    recovery=RecoveryProgress(since=1, after="x", pages=3),
    due_at=NOW,
)


def test_an_endpoint_is_read_as_it_was_written(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    assert endpoints.create(FULL)
    assert endpoints.get("acme", FULL.endpoint_id) == FULL
    assert list(endpoints.of_tenant("acme")) == [FULL]
    changed = endpoints.change(FULL, replace(FULL, recovery=None, flights=(), due_at=None, crowded_at=None))
    assert changed == endpoints.get("acme", FULL.endpoint_id)
    assert (changed.version, changed.recovery, changed.due_at) == (2, None, None)


@pytest.mark.guards("webhook-row-put-once", case="aws")
def test_a_place_has_one_endpoint(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    first, second = endpoint(3, number=1), endpoint(3, number=2)
    assert endpoints.create(first)
    assert endpoints.create(first), "its own, whose answer was lost"
    assert not endpoints.create(second)
    assert endpoints.get("acme", second.endpoint_id) is None
    assert endpoints.create(replace(second, tenant_id="other"))


@pytest.mark.guards("webhook-endpoint-place-fence", case="aws")
def test_an_endpoint_that_lost_its_place_is_gone_for_everybody(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    first, second = endpoint(3, number=1), endpoint(3, number=2)
    endpoints.create(first)
    endpoints.remove(first.tenant_id, first.endpoint_id)
    endpoints.remove(first.tenant_id, first.endpoint_id)
    endpoints.create(second)
    endpoints.remove(first.tenant_id, first.endpoint_id)
    assert endpoints.get("acme", second.endpoint_id) == second
    with pytest.raises(Fenced) as caught:
        endpoints.change(first, replace(first, url="https://elsewhere.example.com/"))
    assert caught.value.current is None
    assert endpoints.get("acme", second.endpoint_id) == second


@pytest.mark.guards("webhook-row-version-fence", case="aws")
def test_of_two_writes_of_an_endpoint_one_wins(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    endpoints.create(row := endpoint())
    won = endpoints.change(row, replace(row, failures=1))
    with pytest.raises(Fenced) as caught:
        endpoints.change(row, replace(row, failures=2))
    assert caught.value.current == won
    assert endpoints.change(row, replace(row, failures=1)) == won, "the same write, whose answer was lost"


def test_a_write_does_not_bring_a_removed_endpoint_back(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    endpoints.create(row := endpoint())
    endpoints.remove(row.tenant_id, row.endpoint_id)
    with pytest.raises(Fenced):
        endpoints.change(row, replace(row, failures=1))
    assert endpoints.get("acme", row.endpoint_id) is None


def test_due_endpoints_are_listed_by_shard_and_time(stores: tuple[Endpoints, Deliveries]) -> None:
    endpoints, _ = stores
    rows = [endpoint(place, due_at=NOW - place) for place in range(6)] + [endpoint(7, due_at=NOW + 1), endpoint(8)]
    for row in rows:
        endpoints.create(row)
    listed = [due for shard in ("00", "01", "02", "03") for due in endpoints.due(shard, NOW, 50)]
    assert sorted(listed) == sorted(DueEndpoint(NOW - place, "acme", rows[place].endpoint_id) for place in range(6))
    (due,) = [endpoint for endpoint in listed if endpoint.endpoint_id == rows[0].endpoint_id]
    endpoints.postpone(due, NOW + 5)
    endpoints.postpone(due, NOW + 9)
    moved = endpoints.get("acme", due.endpoint_id)
    assert moved is not None
    assert moved.due_at == NOW + 5


@pytest.mark.guards("webhook-row-put-once", case="aws")
def test_a_delivery_is_read_as_it_was_written(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    row = delivery()
    assert deliveries.create(row) == row
    claimed = claim(row, claimed_by="me", now=NOW + 50)
    assert isinstance(claimed, Delivery)
    sending = deliveries.change(row, claimed)
    answered = Answer(milliseconds=3, status=500, body="no")
    failed = deliveries.change(sending, record(sending, answered, unit_random=0.5, now=NOW + 60))
    assert deliveries.get(row.endpoint_id, row.delivery_id) == failed
    assert (failed.status, failed.attempts[0].response, failed.claimed_by) == (DeliveryStatus.WAITING, "no", None)
    assert deliveries.create(row) == failed, "the event came again"


@pytest.mark.guards("webhook-row-version-fence", case="aws")
def test_of_two_claims_of_a_delivery_one_wins(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    row = deliveries.create(delivery())
    mine, other = (claim(row, claimed_by=name, now=NOW + 50) for name in ("me", "another"))
    assert isinstance(mine, Delivery)
    assert isinstance(other, Delivery)
    won = deliveries.change(row, mine)
    with pytest.raises(Fenced):
        deliveries.change(row, other)
    assert deliveries.change(row, mine) == won, "the same claim, whose answer was lost"


def test_due_deliveries_are_those_that_have_not_ended(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    waits = [NOW + 500, NOW - 7, NOW + 900]
    for number, due_at in enumerate(waits):
        deliveries.create(delivery(number, due_at=due_at))
    deliveries.create(delivery(8, due_at=None, status=DeliveryStatus.DELIVERED))
    deliveries.create(delivery(9, to=endpoint(1), due_at=NOW - 99))
    assert list(deliveries.due(endpoint().endpoint_id, 2)) == [
        DueDelivery(NOW - 7, delivery(1).delivery_id),
        DueDelivery(NOW + 500, delivery(0).delivery_id),
    ]


def test_deliveries_are_paged_by_the_time_of_their_events(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    rows = [delivery(number) for number in range(7)]
    rows[2] = replace(rows[2], status=DeliveryStatus.FAILED)
    rows[5] = replace(rows[5], status=DeliveryStatus.DELIVERED)
    for row in rows:
        deliveries.create(row)
    endpoint_id = rows[0].endpoint_id
    newest = deliveries.page(endpoint_id, limit=4)
    assert list(newest.deliveries) == rows[:2:-1]
    assert list(deliveries.page(endpoint_id, limit=4, after=newest.next).deliveries) == rows[2::-1]
    oldest = deliveries.page(endpoint_id, limit=50, since=NOW + 3, newest_first=False)
    assert (list(oldest.deliveries), oldest.next) == (rows[3:], None)
    some = deliveries.page(endpoint_id, limit=50, statuses=(DeliveryStatus.FAILED, DeliveryStatus.DELIVERED))
    assert list(some.deliveries) == [rows[5], rows[2]]


def test_all_deliveries_of_tenants_can_be_found_and_removed(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    for number in range(3):
        deliveries.create(delivery(number))
    deliveries.create(delivery(1, to=endpoint(1)))
    deliveries.create(delivery(1, to=endpoint(2, tenant_id="other")))
    deliveries.create(delivery(1, to=endpoint(3, tenant_id="third")))
    mine = sorted(deliveries.endpoints_of(["acme", "nothing", "other"]))
    assert mine == sorted(
        [("acme", endpoint().endpoint_id), ("acme", endpoint(1).endpoint_id), ("other", endpoint(2).endpoint_id)]
    )
    assert [deliveries.remove_all(endpoint_id) for tenant, endpoint_id in mine if tenant == "other"] == [1]
    assert sum(deliveries.remove_all(endpoint_id) for _, endpoint_id in mine) == 4
    assert list(deliveries.endpoints_of(["acme", "other"])) == []
    assert list(deliveries.endpoints_of(["third"])) == [("third", endpoint(3).endpoint_id)]


@pytest.mark.guards("erasure-gone-endpoint-deliveries", case="aws")
def test_the_deliveries_of_an_image_are_found_by_it_at_endpoints_that_are_gone_too(
    stores: tuple[Endpoints, Deliveries],
) -> None:
    endpoints, deliveries = stores
    endpoints.create(endpoint())
    rows = [deliveries.create(delivery(to=endpoint(place))) for place in (0, 1)]
    rows.append(deliveries.create(delivery(event_id=f"{1:026d}-7", delivery_id=f"{NOW:014}-{1:026d}-7")))
    deliveries.create(delivery(2))
    deliveries.create(delivery(3, event_id=f"{endpoint().endpoint_id}-2"))
    deliveries_found = deliveries.of_image(f"{1:026d}")
    assert sorted(deliveries_found) == sorted((row.endpoint_id, row.delivery_id) for row in rows)
    assert list(deliveries.of_image(f"{9:026d}")) == []


def test_a_delivery_is_forgotten_after_thirty_days(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    DeliveriesTable(client, aws.deliveries_table).create(delivery())
    (item,) = client.scan(TableName=aws.deliveries_table)["Items"]
    assert int(item["forget_at"]["N"]) == (NOW + 1) // 1000 + KEPT_SECONDS


def test_what_a_later_version_wrote_is_kept_or_refused(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    endpoints = EndpointsTable(client, aws.endpoints_table)
    endpoints.create(row := endpoint())
    key: Any = {"tenant_id": {"S": "acme"}, "place": {"N": "0"}}

    def write(name: str, value: str) -> None:
        client.update_item(
            TableName=aws.endpoints_table,
            Key=key,
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": {"S": value}},
        )

    write("mood", "sunny")
    endpoints.change(row, replace(row, failures=1))
    assert client.get_item(TableName=aws.endpoints_table, Key=key)["Item"]["mood"] == {"S": "sunny"}
    write("state", "hibernating")
    with pytest.raises(UnreadableRow):
        endpoints.get("acme", row.endpoint_id)


def test_a_message_is_a_reference_in_its_endpoints_group(aws: Aws) -> None:
    client = boto3.client("sqs")
    SqsDeliveryQueue(client, aws.delivery_queue_url, SIGNER).send(message_for(delivery()))
    (sent,) = client.receive_message(QueueUrl=aws.delivery_queue_url, AttributeNames=["All"])["Messages"]
    assert read_delivery_message(sent["Body"]) == message_for(delivery())
    assert "body" not in json.loads(sent["Body"])
    assert sent["Attributes"]["MessageGroupId"] == delivery().endpoint_id


def test_a_suspension_is_heard_of_within_a_minute(aws: Aws) -> None:
    tenants = TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)
    tenant = tenants.add_tenant(Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1))
    now = [NOW]
    is_suspended = Suspensions(tenants, lambda: now[0])
    assert not is_suspended("acme")
    assert not is_suspended("a subject of an identity provider")
    tenants.change_tenant(tenant, replace(tenant, state=TenantState.SUSPENDED))
    assert not is_suspended("acme"), "as the gateway remembers it"
    now[0] += AUTHORIZER_CACHE_SECONDS * 1000
    assert is_suspended("acme")


def flight(number: int = 1, *, claimed_by: str = "me", until: int = NOW + 60_000) -> InFlight:
    return InFlight(delivery_id=delivery(number).delivery_id, claimed_by=claimed_by, until=until)


def on_one_runway(count: int) -> list[InFlight]:
    return [taken for number in range(100) if runway_of((taken := flight(number)).delivery_id) == 0][:count]


@pytest.mark.guards(
    "webhook-runway-delivery-once", "webhook-runway-place-limit", "webhook-runway-place-owner", case="aws"
)
def test_a_runway_takes_as_many_as_it_may_and_each_once(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    first, second, third = on_one_runway(3)
    to = endpoint().endpoint_id
    assert deliveries.take_place(to, first, now=NOW, most=2) == "taken"
    assert deliveries.take_place(to, first, now=NOW, most=2) == "taken", "its own, whose answer was lost"
    assert deliveries.take_place(to, replace(first, claimed_by="another"), now=NOW, most=2) == "held"
    assert deliveries.take_place(to, second, now=NOW, most=2) == "taken"
    assert deliveries.take_place(to, third, now=NOW, most=2) == "full"
    assert deliveries.take_place(endpoint(1).endpoint_id, third, now=NOW, most=2) == "taken", "another endpoint's"
    deliveries.free_place(to, replace(first, claimed_by="another"))
    assert deliveries.take_place(to, third, now=NOW, most=2) == "full", "nobody frees another's place"
    deliveries.free_place(to, first)
    deliveries.free_place(to, first)
    assert deliveries.take_place(to, third, now=NOW, most=2) == "taken"


@pytest.mark.guards("webhook-runway-lost-place-expires", case="aws")
def test_what_was_lost_on_a_runway_makes_room(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    first, second, third = on_one_runway(3)
    to = endpoint().endpoint_id
    for each in (first, second):
        assert deliveries.take_place(to, each, now=NOW, most=2) == "taken"
    later = NOW + 60_000
    again = replace(first, claimed_by="another", until=later + 60_000)
    assert deliveries.take_place(to, again, now=later, most=2) == "retaken", "the same delivery, whose worker died"
    deliveries.free_place(to, first)
    assert deliveries.take_place(to, first, now=later, most=2) == "held", "who was lost frees nothing any more"
    assert deliveries.take_place(to, replace(third, until=later + 60_000), now=later, most=2) == "taken"
    assert deliveries.take_place(to, replace(second, until=later + 60_000), now=later, most=2) == "full"


def test_a_runway_is_emptied_and_taken_again(stores: tuple[Endpoints, Deliveries]) -> None:
    _, deliveries = stores
    to = endpoint().endpoint_id
    for _ in range(2):
        for each in on_one_runway(2):
            assert deliveries.take_place(to, each, now=NOW, most=2) == "taken"
        for each in on_one_runway(2):
            deliveries.free_place(to, each)


@pytest.mark.guards("webhook-runway-cleanup")
def test_no_list_shows_a_runway_and_it_goes_with_the_deliveries_or_after_a_day(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    deliveries = DeliveriesTable(client, aws.deliveries_table)
    to = endpoint().endpoint_id
    deliveries.take_place(to, flight(), now=NOW, most=2)
    assert deliveries.page(to, limit=10).deliveries == ()
    assert list(deliveries.due(to, 10)) == []
    assert list(deliveries.endpoints_of("acme")) == []
    (item,) = client.scan(TableName=aws.deliveries_table)["Items"]
    assert item["forget_at"] == {"N": str(NOW // 1000 + 86_400)}
    assert deliveries.remove_all(to) == 0
    assert client.scan(TableName=aws.deliveries_table)["Items"] == []
