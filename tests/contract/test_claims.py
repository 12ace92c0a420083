"""A claim that is written without reading the row first does what the domain decides for the row, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError

from darkroom.aws.images.images_table import ImagesTable, to_item
from darkroom.domain.images.claim import claim_unseen
from darkroom.domain.images.image import Attempt, DeadLetterState, Image, Status, message_for
from darkroom.domain.kernel.message import Message
from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.contract.conftest import Aws
from tests.contract.stores import images_of, with_lost_answer
from tests.support.fakes.rows import lease
from tests.support.images import NOW, pending, processing

LEASE = lease(now=NOW, claimed_by="me")
EARLIER = Attempt(run=1, number=1, request_id="r", started_at=NOW - 1)

ROWS: dict[str, dict[str, Any]] = {
    "awaited": {},
    "whose-time-has-come": {"status": Status.SCHEDULED, "process_at": NOW},
    "before-it-expires": {"expires_at": NOW + 1},
    "in-another-run": {"run": 2},
    "before-its-time": {"status": Status.SCHEDULED, "process_at": NOW + 1},
    "expired": {"expires_at": NOW},
    "tried-before": {"attempt": 1},
    "tried-in-an-earlier-run": {"run": 2, "attempts": (EARLIER,)},
    "backing-off": {"not_before": NOW + 1},
    "done": {"status": Status.DONE},
    "not-yet-uploaded": {"status": Status.AWAITING_UPLOAD},
    "being-developed": {"status": Status.PROCESSING, "lease_until": NOW + 1},
    "with-a-dead-letter": {"dead_letter": DeadLetterState.PLACED},
    "parked": {"parked": True, "waiting_since": None},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "its-own": {},
    "another-tenants": {"tenant_id": "somebody-else"},
    "another-lanes": {"lane": "slow"},
    "another-schedules": {"schedule": 1},
    "an-earlier-runs": {"run": 1},
    "a-later-runs": {"run": 3},
}


def row_of(aws: Aws, image_id: str) -> dict[str, Any]:
    answer = boto3.client("dynamodb").get_item(TableName=aws.images_table, Key={"image_id": {"S": image_id}})
    return dict(answer["Item"])


@pytest.mark.guards("unseen-claim-run-matches", case="aws-an-earlier-runs-in-another-run")
@pytest.mark.guards("unseen-claim-lane-matches", case="aws-another-lanes-awaited")
@pytest.mark.guards("unseen-claim-schedule-matches", case="aws-another-schedules-awaited")
@pytest.mark.guards("unseen-claim-tenant-matches", case="aws-another-tenants-awaited")
@pytest.mark.guards("unseen-claim-backoff", case="aws-its-own-backing-off")
@pytest.mark.guards("unseen-claim-process-at", case="aws-its-own-before-its-time")
@pytest.mark.guards("unseen-claim-status", case="aws-its-own-done")
@pytest.mark.guards("unseen-claim-not-expired", case="aws-its-own-expired")
@pytest.mark.guards("unseen-claim-first-attempt", case="aws-its-own-tried-before")
@pytest.mark.guards("unseen-claim-no-earlier-attempts", case="aws-its-own-tried-in-an-earlier-run")
@pytest.mark.guards("unseen-claim-no-dead-letter", case="aws-its-own-with-a-dead-letter")
@pytest.mark.guards("unseen-claim-not-parked", case="aws-its-own-parked")
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("sent", MESSAGES)
def test_an_unseen_row_is_claimed_if_it_awaits_its_first_attempt(kind: str, row: str, sent: str, aws: Aws) -> None:
    images = images_of(kind, aws)
    image = images.create(pending(lane="fast", rescues=2, **ROWS[row]))
    message = message_for(image).model_copy(update=MESSAGES[sent])
    expected = claim_unseen(image, message, LEASE)
    if expected is None:
        with pytest.raises(Fenced) as fenced:
            images.claim_unseen(message, LEASE)
        assert fenced.value.current == image == images.get(image.image_id)
    else:
        claimed = images.claim_unseen(message, LEASE)
        assert claimed == replace(expected, version=2) == images.get(image.image_id)
        assert (claimed.status, claimed.attempt, claimed.claimed_by) == (Status.PROCESSING, 1, "me")


def test_the_rows_and_messages_are_of_both_kinds() -> None:
    claimed = {
        (row, sent)
        for row, changes in ROWS.items()
        for sent, other in MESSAGES.items()
        if claim_unseen(image := pending(lane="fast", **changes), _sent(image, other), LEASE) is not None
    }
    assert {row for row, sent in claimed if sent == "its-own"} == {
        "awaited",
        "whose-time-has-come",
        "before-it-expires",
        "in-another-run",
    }


def _sent(image: Image, other: dict[str, Any]) -> Message:
    return message_for(image).model_copy(update=other)


def test_a_row_that_is_gone_is_not_claimed(kind: str, aws: Aws) -> None:
    with pytest.raises(Fenced) as fenced:
        images_of(kind, aws).claim_unseen(message_for(pending()), LEASE)
    assert fenced.value.current is None


def test_a_claimed_row_is_listed_as_due_where_the_sweeper_looks(aws: Aws) -> None:
    images = images_of("aws", aws)
    image = images.create(pending(due_at=None))
    claimed = images.claim_unseen(message_for(image), LEASE)
    assert row_of(aws, image.image_id)["due_shard"] == {"S": claimed.due_shard}


def unreadable(aws: Aws, image: Image) -> dict[str, Any]:
    """The row of an image with a recipe that this version does not know, as it lies in the table."""
    item = to_item(image) | {"recipe": {"S": '{"variants": "invented later"}'}}
    boto3.client("dynamodb").put_item(TableName=aws.images_table, Item=item)
    return item


@pytest.mark.guards("unseen-claim-unreadable-given-back")
@pytest.mark.parametrize("row", [{}, {"due_at": None, "status": Status.SCHEDULED, "process_at": NOW}], ids=["due", "-"])
def test_a_row_that_this_version_cannot_read_is_given_back_as_it_was(row: dict[str, Any], aws: Aws) -> None:
    image = pending(**row)
    item = unreadable(aws, image)
    with pytest.raises(UnreadableRow):
        images_of("aws", aws).claim_unseen(message_for(image), LEASE)
    assert row_of(aws, image.image_id) == item


@pytest.mark.guards("unseen-claim-type-conflict-read")
def test_a_row_that_cannot_even_be_written_is_read_first(aws: Aws) -> None:
    image = pending()
    item = to_item(image) | {"version": {"S": "v2"}}
    boto3.client("dynamodb").put_item(TableName=aws.images_table, Item=item)
    with pytest.raises(UnreadableRow, match="version"):
        images_of("aws", aws).claim_unseen(message_for(image), LEASE)
    assert row_of(aws, image.image_id) == item


@pytest.mark.guards("unseen-claim-give-back-fence")
def test_an_unreadable_row_that_was_withdrawn_before_it_could_be_given_back_stays_withdrawn(aws: Aws) -> None:
    dynamodb = boto3.client("dynamodb")
    image = pending()
    unreadable(aws, image)
    updates = []

    def withdrawn_meanwhile(**_: Any) -> None:
        updates.append("update")
        if len(updates) == 2:
            item = to_item(replace(image, status=Status.CANCELLED, due_at=None))
            dynamodb.put_item(TableName=aws.images_table, Item=item)

    client = boto3.client("dynamodb")
    client.meta.events.register("before-call.dynamodb.UpdateItem", withdrawn_meanwhile)
    with pytest.raises(UnreadableRow):
        ImagesTable(client, aws.images_table).claim_unseen(message_for(image), LEASE)
    assert row_of(aws, image.image_id)["status"] == {"S": "cancelled"}


def test_an_unreadable_row_that_cannot_be_given_back_waits_for_its_lease_to_lapse(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    image = pending()
    item = unreadable(aws, image)
    updates = []

    def fails_the_second_time(**_: Any) -> None:
        updates.append("update")
        if len(updates) == 2:
            raise ReadTimeoutError(endpoint_url="https://dynamodb")

    client.meta.events.register("before-call.dynamodb.UpdateItem", fails_the_second_time)
    with pytest.raises(UnreadableRow):
        ImagesTable(client, aws.images_table).claim_unseen(message_for(image), LEASE)
    left = row_of(aws, image.image_id)
    assert left["lease_until"] == {"N": str(LEASE.lease_until)}
    assert left["recipe"] == item["recipe"]


@pytest.mark.guards("unseen-claim-lost-answer")
def test_a_claim_whose_answer_was_lost_is_ones_own(aws: Aws) -> None:
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    image = table.create(pending())
    claimed = with_lost_answer(table, "UpdateItem").claim_unseen(message_for(image), LEASE)
    assert (claimed.attempt, claimed.claimed_by, claimed.version) == (1, "me", 2)


@pytest.mark.guards("unseen-claim-receipt-matches")
def test_another_deliverys_claim_is_not_ones_own(aws: Aws) -> None:
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    theirs = table.create(processing(claimed_by="them"))
    with pytest.raises(Fenced) as fenced:
        table.claim_unseen(message_for(theirs), LEASE)
    assert fenced.value.current == theirs


@pytest.mark.guards("unseen-claim-own-still-processing")
def test_an_own_claim_that_has_ended_is_no_claim(aws: Aws) -> None:
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    ended = table.create(processing(status=Status.DONE, claimed_by="me"))
    with pytest.raises(Fenced):
        table.claim_unseen(message_for(ended), LEASE)
