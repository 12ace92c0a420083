"""An answer that is lost after its call was applied: the SDK's repetition is not somebody else's write."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    FlexibleChecksumError,
    IncompleteReadError,
    ReadTimeoutError,
)

from darkroom.aws.errors import retryable as guard
from darkroom.aws.images_table import ImagesTable
from darkroom.aws.objects import OriginalsBucket, OutputsBucket
from darkroom.domain.errors import Retryable
from darkroom.domain.image import NothingToDo, claim, complete, look_at_due, message_for, put_back
from darkroom.ports import Fenced
from tests.contract.conftest import Aws
from tests.unit.test_image import NOW, pending, processing


def lose_first_answer(client: BaseClient, operation: str) -> None:
    """The next call of `operation` is applied, its answer never arrives, and the client sends it again."""
    call: Callable[..., Any] = client._make_api_call  # type: ignore[attr-defined]
    lost = []

    def make_api_call(name: str, arguments: dict[str, Any]) -> Any:
        answer = call(name, arguments)
        if name == operation and not lost:
            lost.append(name)
            return call(name, arguments)
        return answer

    client._make_api_call = make_api_call  # type: ignore[attr-defined]


@pytest.fixture
def table(aws: Aws) -> ImagesTable:
    return ImagesTable(boto3.client("dynamodb"), aws.images_table)


def with_lost_answer(table: ImagesTable, operation: str) -> ImagesTable:
    client = boto3.client("dynamodb")
    lose_first_answer(client, operation)
    return ImagesTable(client, table._table_name)


def test_a_row_that_was_created_is_found_to_be_ones_own(table: ImagesTable) -> None:
    image = pending()
    assert with_lost_answer(table, "PutItem").create(image) == image


def test_a_claim_that_was_applied_is_won(table: ImagesTable) -> None:
    before = table.create(pending())
    decision = claim(
        before, message_for(before), now=NOW, claimed_by="me", lease_until=NOW + 90_000, due_at=NOW + 420_000
    )
    assert not isinstance(decision, NothingToDo)
    won = with_lost_answer(table, "UpdateItem").change(before, decision.image)
    assert (won.attempt, won.claimed_by, won.version) == (1, "me", 2)


def test_a_claim_that_somebody_else_applied_is_lost(table: ImagesTable) -> None:
    before = table.create(pending())
    message = message_for(before)
    mine, theirs = (
        claim(before, message, now=NOW, claimed_by=name, lease_until=NOW + 90_000, due_at=NOW + 420_000)
        for name in ("me", "them")
    )
    assert not isinstance(mine, NothingToDo) and not isinstance(theirs, NothingToDo)
    table.change(before, theirs.image)
    with pytest.raises(Fenced):
        table.change(before, mine.image)


def test_a_finish_that_was_applied_is_ones_own(table: ImagesTable) -> None:
    before = table.create(processing())
    done = complete(before, (), notices=("n",), now=NOW)
    assert with_lost_answer(table, "UpdateItem").change(before, done).notices == ("n",)


def test_a_put_back_that_was_applied_is_ones_own_even_after_a_sweep(table: ImagesTable) -> None:
    before = table.create(processing())
    after = put_back(before, now=NOW, delay_seconds=20)
    applied = table.change(before, after)
    assert applied.due_at is not None
    rescue = look_at_due(applied, now=applied.due_at)
    assert not isinstance(rescue, NothingToDo)
    swept = table.change(applied, rescue.image, fence=("status", "run", "attempt", "due_at"))
    assert table.change(before, after) == swept, "only the time of the next look was moved on"


def test_a_sweeps_push_that_was_applied_is_ones_own(table: ImagesTable) -> None:
    before = table.create(pending(due_at=NOW))
    rescue = look_at_due(before, now=NOW)
    assert not isinstance(rescue, NothingToDo)
    fence = ("status", "run", "attempt", "due_at")
    assert with_lost_answer(table, "UpdateItem").change(before, rescue.image, fence=fence).rescues == 1


def test_a_sweeps_push_after_anothers_is_lost(table: ImagesTable) -> None:
    before = table.create(pending(due_at=NOW))
    fence = ("status", "run", "attempt", "due_at")
    table.change(before, replace(before, due_at=NOW + 60_000, rescues=1), fence=fence)
    with pytest.raises(Fenced):
        table.change(before, replace(before, due_at=NOW + 61_000, rescues=1), fence=fence)


def test_an_original_that_was_put_is_ones_own(aws: Aws) -> None:
    client = boto3.client("s3")
    lose_first_answer(client, "PutObject")
    sha256 = hashlib.sha256(b"photo").hexdigest()
    stored = OriginalsBucket(client, aws.originals_bucket).put_if_absent(
        "0" * 26, b"photo", sha256=sha256, media_type="image/jpeg"
    )
    assert stored.sha256 == sha256
    versions = boto3.client("s3").list_object_versions(Bucket=aws.originals_bucket)["Versions"]
    assert [version["VersionId"] for version in versions] == [stored.version_id]


def test_an_output_that_was_put_is_ones_own(aws: Aws) -> None:
    client = boto3.client("s3")
    lose_first_answer(client, "PutObject")
    sha256 = hashlib.sha256(b"one").hexdigest()
    stored = OutputsBucket(client, aws.outputs_bucket).put_if_absent(
        "outputs/k.jpg", b"one", sha256=sha256, media_type="image/jpeg"
    )
    assert (stored.sha256, stored.size_bytes) == (sha256, 3)


@pytest.mark.parametrize(
    ("code", "status", "retryable"),
    [
        ("ThrottlingException", 400, True),
        ("ProvisionedThroughputExceededException", 400, True),
        ("InternalServerError", 500, True),
        ("SlowDown", 503, True),
        ("ConditionalRequestConflict", 409, True),
        ("ValidationException", 400, False),
        ("AccessDeniedException", 400, False),
        ("ResourceNotFoundException", 400, False),
    ],
)
def test_passing_trouble_is_told_from_bugs(code: str, status: int, retryable: bool) -> None:

    answer: Any = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with pytest.raises(Retryable if retryable else ClientError), guard("doing"):
        raise ClientError(answer, "Operation")


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://s3"),
        ConnectionClosedError(endpoint_url="https://s3"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        FlexibleChecksumError(error_msg="mismatch"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_answer_that_does_not_arrive_whole_is_passing_trouble(error: BotoCoreError) -> None:
    with pytest.raises(Retryable), guard("doing"):
        raise error


def test_an_endpoint_that_refuses_connections_is_passing_trouble(ambient: None) -> None:
    client = boto3.client(
        "dynamodb",
        endpoint_url="http://127.0.0.1:9",
        config=Config(connect_timeout=1, retries={"total_max_attempts": 1, "mode": "standard"}),
    )
    with pytest.raises(Retryable, match="EndpointConnectionError"):
        ImagesTable(client, "images").get("0" * 26)
