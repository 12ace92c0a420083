"""An answer that is lost after its call was applied: the SDK's retry does not pass for somebody else's write."""

from __future__ import annotations

import hashlib
import json

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    FlexibleChecksumError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.parsers import ResponseParserError

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.once import PowertoolsOnce
from darkroom.aws.kernel.errors import retryable as guard
from darkroom.domain.images.claim import Claim, claim
from darkroom.domain.images.image import Status, message_for
from darkroom.domain.images.transitions import complete, put_back
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.sweeping.due import Rescue, decide_due
from darkroom.ports.kernel import Fenced
from tests.contract.conftest import Aws
from tests.contract.functions import call, http_event, load, received
from tests.contract.stores import lose_first_answer, with_lost_answer
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import lease
from tests.support.images import CAUSE, NOW, pending, processing


@pytest.fixture
def table(aws: Aws) -> ImagesTable:
    return ImagesTable(boto3.client("dynamodb"), aws.images_table)


@pytest.mark.guards("read-back-of-new-row")
def test_a_row_that_was_created_is_found_to_be_ones_own(table: ImagesTable) -> None:
    image = pending()
    assert with_lost_answer(table, "PutItem").create(image) == image


@pytest.mark.guards("read-back-of-change")
def test_a_claim_that_was_applied_is_won(table: ImagesTable) -> None:
    before = table.create(pending())
    decision = claim(before, message_for(before), lease(now=NOW, claimed_by="me"))
    assert isinstance(decision, Claim)
    won = with_lost_answer(table, "UpdateItem").change(before, decision.image)
    assert (won.attempt, won.claimed_by, won.version) == (1, "me", 2)


@pytest.mark.guards("read-back-comparison")
def test_a_claim_that_somebody_else_applied_is_lost(table: ImagesTable) -> None:
    before = table.create(pending())
    message = message_for(before)
    mine, theirs = (claim(before, message, lease(now=NOW, claimed_by=name)) for name in ("me", "them"))
    assert isinstance(mine, Claim) and isinstance(theirs, Claim)
    table.change(before, theirs.image)
    with pytest.raises(Fenced):
        table.change(before, mine.image)


@pytest.mark.guards("read-back-of-change")
def test_a_finish_that_was_applied_is_ones_own(table: ImagesTable) -> None:
    before = table.create(processing())
    done = complete(before, (), notices=("n",), now=NOW)
    assert with_lost_answer(table, "UpdateItem").change(before, done).notices == ("n",)


def test_a_put_back_that_was_applied_is_ones_own_even_after_a_sweep(table: ImagesTable) -> None:
    before = table.create(processing())
    after = put_back(before, now=NOW, delay_seconds=20, cause=CAUSE)
    applied = table.change(before, after)
    assert applied.due_at is not None
    rescue = decide_due(applied, now=applied.due_at, backlog=0, releasing_until=0, service=LANES)
    assert isinstance(rescue, Rescue)
    swept = table.change(applied, rescue.image, fence=("status", "run", "attempt", "due_at"))
    assert table.change(before, after) == swept, "only the time of the next look was moved on"


def test_a_sweeps_push_that_was_applied_is_ones_own(table: ImagesTable) -> None:
    before = table.create(pending(due_at=NOW))
    rescue = decide_due(before, now=NOW, backlog=0, releasing_until=0, service=LANES)
    assert isinstance(rescue, Rescue)
    fence = ("status", "run", "attempt", "due_at")
    assert with_lost_answer(table, "UpdateItem").change(before, rescue.image, fence=fence).rescues == 1


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


def test_work_whose_memory_was_written_unheard_is_remembered(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    lose_first_answer(client, "PutItem")
    memory = PowertoolsOnce(client, aws.idempotency_table)
    memory.keep("image#1", {"made": 1})
    assert memory("image#1", lambda: {"made": 2}, is_first=False) == {"made": 1}


@pytest.mark.parametrize(
    ("store", "operation"),
    [
        ("images", "GetItem"),
        ("images", "UpdateItem"),
        ("images", "PutItem"),
        ("outputs", "GetObject"),
        ("outputs", "PutObject"),
    ],
)
def test_a_lost_answer_costs_the_worker_no_attempt(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, store: str, operation: str
) -> None:
    submit_image, worker = (load(name, aws, monkeypatch) for name in ("submit_image", "transcode_image"))
    accepted = call(submit_image, http_event("POST", "/images", body=jpeg(32, 24)))
    lose_first_answer(getattr(worker.ports, store)._client, operation)

    answer = call(worker, received(aws.slow_queue_url))

    assert answer == {"batchItemFailures": []}
    row = ImagesTable(boto3.client("dynamodb"), aws.images_table).get(json.loads(accepted["body"])["id"])
    assert row is not None
    assert (row.status, row.attempt) == (Status.DONE, 1)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 400),
        ("ProvisionedThroughputExceededException", 400),
        ("InternalServerError", 500),
        ("SlowDown", 503),
        ("Unheard-of", 429),
        ("RequestTimeout", 400),
        ("OverLimit", 403),
        ("ConditionalRequestConflict", 409),
        ("OperationAborted", 409),
        ("BadDigest", 400),
        ("RequestTimeTooSkewed", 403),
        ("ExpiredToken", 400),
        ("ExpiredTokenException", 400),
    ],
)
def test_transient_failures_may_be_retried(code: str, status: int) -> None:
    with pytest.raises(Retryable, match=f"doing: {code}"), guard("doing"):
        raise answered(code, status)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ValidationException", 400),
        ("AccessDeniedException", 400),
        ("ResourceNotFoundException", 400),
        ("InvalidSignatureException", 400),
        ("NoSuchBucket", 404),
        ("PreconditionFailed", 412),
        ("ConditionalCheckFailedException", 400),
    ],
)
def test_bugs_and_answers_go_through(code: str, status: int) -> None:
    with pytest.raises(ClientError, match=code), guard("doing"):
        raise answered(code, status)


def answered(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "Operation",
    )


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://s3"),
        ConnectionClosedError(endpoint_url="https://s3"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        FlexibleChecksumError(error_msg="mismatch"),
        ResponseStreamingError(error="the connection broke in the middle"),
        ResponseParserError("no element found"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_answer_that_does_not_arrive_whole_is_passing_trouble(error: Exception) -> None:
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
