"""What every budget of invalidations must do, and what CloudFront is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from darkroom.aws.edge.distribution import Distribution
from darkroom.aws.edge.invalidations_table import InvalidationsTable
from darkroom.aws.images.edge_budget import EdgeBudgetTable
from darkroom.aws.kernel.clients import cloudfront_client
from darkroom.domain.edge.forgetting import Bill, Payment, bill_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.edge import Invalidations
from tests.contract.conftest import Aws
from tests.contract.stores import lose_first_answer, spy
from tests.support.fakes.invalidations import FakeInvalidations
from tests.support.faults import refuse
from tests.support.images import NOW

IDS = tuple(f"{number:026d}" for number in range(9))


@pytest.fixture
def invalidations(kind: str, aws: Aws) -> Invalidations:
    return (
        FakeInvalidations() if kind == "fake" else InvalidationsTable(boto3.client("dynamodb"), aws.token_buckets_table)
    )


def bill(message_id: str, *image_ids: str, now: int = NOW) -> Bill:
    return bill_of({f"{message_id}{number}": image_id for number, image_id in enumerate(image_ids)}, now)


def paid(bill: Bill, count: int) -> Payment:
    return Payment(month=bill.month, image_ids=bill.image_ids[:count], reference=bill.reference)


@pytest.mark.guards("edge-budget-never-exceeded")
def test_a_month_pays_for_no_more_images_than_its_limit(invalidations: Invalidations) -> None:
    first, second, third, later = (bill(name, *IDS[:3]) for name in "abcd")
    later = replace(later, month="2026-12")
    for each, count in ((first, 3), (second, 2), (third, 0), (later, 3)):
        payment = invalidations.pay(each, 5)
        assert payment == paid(each, count)
        invalidations.settle(payment)
    assert invalidations.pay(bill("e", IDS[0]), 4) == paid(bill("e", IDS[0]), 0), "the limit was lowered"
    assert invalidations.pay(bill("e", IDS[0]), 0).image_ids == ()


@pytest.mark.guards("edge-repetition-not-charged")
@pytest.mark.guards("edge-repetition-paid-once")
def test_a_bill_is_paid_once_however_often_its_messages_come(invalidations: Invalidations) -> None:
    first = bill("a", *IDS[:3])
    for _ in range(2):
        assert invalidations.pay(first, 4) == paid(first, 3)
    invalidations.settle(paid(first, 3))
    assert invalidations.pay(first, 9) == paid(first, 3), "its consumer died before the messages were gone"
    invalidations.settle(paid(first, 3))
    assert invalidations.pay(bill("b", *IDS[:3]), 4) == paid(bill("b", *IDS[:3]), 1)


@pytest.mark.guards("edge-open-payment-kept")
@pytest.mark.guards("edge-settles-its-own")
def test_an_open_payment_is_everybodys_until_it_is_settled(invalidations: Invalidations) -> None:
    first, second = bill("a", *IDS[:3]), bill("b", IDS[4])
    invalidations.pay(first, 9)
    assert invalidations.pay(second, 9) == paid(first, 3)
    invalidations.settle(paid(first, 3))
    assert invalidations.pay(second, 9) == paid(second, 1)
    invalidations.settle(paid(first, 3))  # late, by another consumer
    assert invalidations.pay(first, 9) == paid(second, 1)
    invalidations.settle(paid(second, 1))
    assert invalidations.pay(bill("c", *IDS), 9) == paid(bill("c", *IDS), 5)


def test_a_payment_whose_answer_is_lost_is_paid_once_and_what_was_skipped_is_seen(aws: Aws) -> None:
    dynamodb = boto3.client("dynamodb")
    invalidations = InvalidationsTable(dynamodb, aws.token_buckets_table)
    budget = EdgeBudgetTable(dynamodb, aws.token_buckets_table)
    lose_first_answer(dynamodb, "UpdateItem")
    first = bill("a", *IDS[:3])
    assert invalidations.pay(first, 9) == paid(first, 3)
    invalidations.settle(paid(first, 3))
    assert not budget.is_spent(NOW)
    for count in (1, 2):
        invalidations.skip(first, count)
    item = dynamodb.get_item(TableName=aws.token_buckets_table, Key={"tenant_id": {"S": "edge#invalidations#2026-11"}})[
        "Item"
    ]
    assert "image_ids" not in item, "nothing is remembered of images that are forgotten"
    assert (item["used"], item["skipped"], item["forget_at"]) == ({"N": "3"}, {"N": "3"}, {"N": str(first.forget_at)})
    assert budget.is_spent(NOW)
    refuse(dynamodb, code="ThrottlingException", status=400)
    for call in (lambda: invalidations.pay(first, 9), lambda: invalidations.settle(paid(first, 3))):
        with pytest.raises(Retryable):
            call()


@pytest.mark.guards("edge-invalidation-repeated-once")
def test_cloudfront_is_told_tags_by_a_reference_that_is_theirs(aws: Aws) -> None:
    client = cloudfront_client()
    asked: list[dict[str, Any]] = spy(client, "CreateInvalidation", lambda arguments, make: {})
    distribution = Distribution(client, "E1")
    for payment in (paid(bill("a", *IDS[:2]), 2), paid(bill("a", *IDS[:2]), 2), paid(bill("a", *IDS[:2]), 1)):
        distribution.invalidate(payment)
    batches = [arguments["InvalidationBatch"] for arguments in asked]
    assert batches[0]["Paths"] == {"Quantity": 2, "Items": [f"#{IDS[0]}", f"#{IDS[1]}"]}
    assert batches[0] == batches[1]
    assert batches[0]["CallerReference"] != batches[2]["CallerReference"], "CloudFront refuses one for other tags"


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("Throttling", 400, Retryable),
        ("ServiceUnavailable", 503, Retryable),
        ("TooManyInvalidationsInProgress", 400, ClientError),
        ("AccessDenied", 403, ClientError),
    ],
)
def test_what_cloudfront_refuses_is_raised(aws: Aws, code: str, status: int, error: type[Exception]) -> None:
    client = cloudfront_client()
    refuse(client, code=code, status=status)
    with pytest.raises(error):
        Distribution(client, "E1").invalidate(paid(bill("a", IDS[0]), 1))
