"""Uploads by form: what a form requires, where files are stored, and the two functions between form and lane."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from darkroom.aws.images.objects import OriginalsBucket
from darkroom.aws.images.queues import SqsUploadQueue
from darkroom.aws.kernel.clients import s3_client
from darkroom.aws.schedules.holds import HoldsBucket
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.domain.images.image import Status, message_for
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.message import read_message
from darkroom.ports.uploads import UploadQueue, Uploads
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, document, http_event, problem, received
from tests.support.fakes.damage import flipped
from tests.support.fakes.messages import SIGNER
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.stores import FakeUploadQueue, FakeUploads
from tests.support.images import awaiting
from tests.support.notifications import TEST_EVENT, event

ID = "0" * 26
PHOTO = jpeg(320, 240)
SHA256 = hashlib.sha256(PHOTO).hexdigest()
NOW = 1_795_251_600_999


# ── The ports ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_upload_is_there_from_when_it_came_until_it_is_removed(kind: str, aws: Aws) -> None:
    fake = FakeUploads()
    uploads: Uploads = fake if kind == "fake" else UploadsBucket(boto3.client("s3"), aws.uploads_bucket)
    assert uploads.remove([ID]) == {}
    assert (uploads.size_bytes(ID), uploads.get(ID)) == (None, None)
    fake.objects[ID] = PHOTO
    boto3.client("s3").put_object(Bucket=aws.uploads_bucket, Key=f"uploads/{ID}", Body=PHOTO)
    assert (uploads.size_bytes(ID), uploads.get(ID)) == (len(PHOTO), PHOTO)
    assert uploads.remove([ID]) == {}
    assert (uploads.size_bytes(ID), uploads.get(ID)) == (None, None)


@pytest.mark.guards("objects-batch-checksum-mode", "objects-original-checksum-mode", "objects-upload-checksum-mode")
@pytest.mark.parametrize("bucket", ["uploads", "originals", "holds"])
def test_an_object_that_does_not_match_the_checksum_that_s3_keeps_may_be_read_again(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")  # this account's choice decides nothing
    client = s3_client()
    name, key = getattr(aws, f"{bucket}_bucket"), f"{bucket}/{ID}"
    kept = client.put_object(Bucket=name, Key=key, Body=PHOTO, ChecksumAlgorithm="SHA256")
    reads: dict[str, Callable[[], bytes | None]] = {
        "uploads": lambda: UploadsBucket(client, name).get(ID),
        "originals": lambda: OriginalsBucket(client, name).get(ID, kept["VersionId"]),
        "holds": lambda: HoldsBucket(client, name).get(key),
    }
    assert reads[bucket]() == PHOTO
    stored = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].buckets[name].keys.getlist(key)[-1]
    stored.value = flipped(PHOTO)
    with pytest.raises(Retryable, match="FlexibleChecksumError"):
        reads[bucket]()


def test_a_form_works_for_as_long_as_it_says(kind: str, aws: Aws) -> None:
    uploads: Uploads = FakeUploads() if kind == "fake" else UploadsBucket(s3_client(), aws.uploads_bucket)
    form = uploads.form_for(ID, sha256=SHA256, size_bytes=len(PHOTO), media_type="image/jpeg", seconds=300, now=NOW)
    assert NOW + 299_000 < form.expires_at <= NOW + 300_000
    assert form.fields["key"] == f"uploads/{ID}"


def test_a_reminder_arrives_in_its_tenants_share(kind: str, aws: Aws) -> None:
    fake, sqs = FakeUploadQueue(), boto3.client("sqs")
    queue: UploadQueue = fake if kind == "fake" else SqsUploadQueue(sqs, aws.upload_queue_url, SIGNER)
    message = message_for(awaiting(tenant_id="acme"))
    queue.put(message)
    if kind == "fake":
        assert fake.reminders == [message]
    else:
        (it,) = sqs.receive_message(QueueUrl=aws.upload_queue_url, AttributeNames=["All"])["Messages"]
        assert (read_message(it["Body"]), it["Attributes"]["MessageGroupId"]) == (message, "acme")


def policy_of(fields: dict[str, str]) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads(base64.b64decode(fields["policy"]))
    return policy


@pytest.mark.guards("upload-form-fields", "upload-form-size")
def test_a_form_demands_this_key_these_bytes_this_type_and_its_time(aws: Aws) -> None:
    before = datetime.now(UTC)
    form = UploadsBucket(s3_client(), aws.uploads_bucket).form_for(
        ID, sha256=SHA256, size_bytes=len(PHOTO), media_type="image/jpeg", seconds=300, now=NOW
    )
    fields, checksum = dict(form.fields), base64.b64encode(hashlib.sha256(PHOTO).digest()).decode()
    policy = policy_of(fields)
    assert all(
        condition in policy["conditions"]
        for condition in (
            {"bucket": "uploads"},
            {"key": f"uploads/{ID}"},
            {"Content-Type": "image/jpeg"},
            {"x-amz-checksum-sha256": checksum},
            ["content-length-range", len(PHOTO), len(PHOTO)],
        )
    )
    assert fields["x-amz-algorithm"] == "AWS4-HMAC-SHA256"
    # Every field of the form except the signature must be in the policy, or S3 refuses it as an extra one.
    named = {name for condition in policy["conditions"] if isinstance(condition, dict) for name in condition}
    assert named - {"bucket"} == fields.keys() - {"policy", "x-amz-signature"}
    assert 298 <= (datetime.fromisoformat(policy["expiration"]) - before).total_seconds() <= 301


@pytest.mark.guards("upload-regional-address")
def test_a_form_leads_to_the_region_of_its_bucket(ambient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    form = UploadsBucket(s3_client(), "bucket").form_for(
        ID, sha256=SHA256, size_bytes=1, media_type="image/jpeg", seconds=300, now=NOW
    )
    assert form.url == "https://bucket.s3.eu-central-1.amazonaws.com/"


# ── The functions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_upload_is_announced_comes_and_is_developed(functions: Functions) -> None:
    begun = functions.begin(variants=["thumb"], content_type="image/jpeg")
    assert begun["statusCode"] == 201
    announced = document(begun)
    image_id = announced["id"]
    assert begun["headers"]["Location"] == f"/images/{image_id}/status"
    assert (announced["status"], announced["progress"]) == ("awaiting_upload", {"done": 0, "total": 1})
    assert announced["upload"].keys() == {"url", "fields", "expires_at"}
    assert announced["upload"]["fields"]["Content-Type"] == "image/jpeg"

    functions.upload(image_id)
    assert functions.hear() == {"batchItemFailures": []}
    row = functions.row(image_id)
    assert (row.status, row.source.media_type, row.source.sha256) == (Status.PENDING, "image/jpeg", SHA256)
    original = boto3.client("s3").get_object(
        Bucket="originals", Key=f"originals/{image_id}", VersionId=row.source.version_id
    )
    assert (original["Body"].read(), original["ContentType"]) == (PHOTO, "image/jpeg")
    assert functions.objects("uploads") == []

    call(functions.transcode_image, received(functions.aws.slow_queue_url))
    assert functions.row(image_id).status is Status.DONE
    read = call(functions.read_image, http_event("GET", f"/images/{image_id}"))
    assert document(read)["source"] == {
        "media_type": "image/jpeg",
        "bytes": len(PHOTO),
        "sha256": SHA256,
        "fetched": None,
    }


def confirm(functions: Functions, image_id: str) -> dict[str, Any]:
    return call(functions.begin_upload, http_event("POST", f"/uploads/{image_id}/done"))


def test_a_confirmed_upload_is_accepted_without_an_event(functions: Functions) -> None:
    image_id = document(functions.begin())["id"]
    refusal = problem(confirm(functions, image_id), 409, "not_uploaded")
    assert "announce it again" in refusal["detail"]
    boto3.client("s3").put_object(Bucket="uploads", Key=f"uploads/{image_id}", Body=PHOTO)
    for _ in range(2):  # the second reminder finds nothing to do
        confirmed = confirm(functions, image_id)
        assert (confirmed["statusCode"], document(confirmed)["status"]) == (200, "awaiting_upload")
        assert int(confirmed["headers"]["Retry-After"]) > 0
    assert functions.hear() == {"batchItemFailures": []}
    assert (functions.row(image_id).status, functions.objects("uploads")) == (Status.PENDING, [])
    call(functions.transcode_image, received(functions.aws.slow_queue_url))
    late = confirm(functions, image_id)
    assert (late["statusCode"], document(late)["status"], "Retry-After" in late["headers"]) == (200, "done", False)


def test_a_repeated_announcement_is_answered_with_a_fresh_form_and_after_the_upload_with_its_image(
    functions: Functions,
) -> None:
    first, again = functions.begin(key="k"), functions.begin(key="k")
    image_id = document(first)["id"]
    assert (again["statusCode"], document(again)["id"]) == (201, image_id)
    assert "Idempotent-Replayed" not in first["headers"] and again["headers"]["Idempotent-Replayed"] == "true"
    functions.upload(image_id)
    functions.hear()
    late = functions.begin(key="k")
    assert (late["statusCode"], document(late)["upload"], document(late)["status"]) == (202, None, "pending")
    problem(functions.begin(key="k", preset="avatar"), 422, "idempotency_key_reused")


def test_a_photo_that_is_too_large_for_a_request_is_told_of_uploads(functions: Functions) -> None:
    answer = call(functions.submit_image, http_event("POST", "/images", body=PHOTO + bytes(4 * 1024 * 1024)))
    assert "POST /uploads" in problem(answer, 413, "upload_too_large")["detail"]


@pytest.mark.parametrize("body", [TEST_EVENT, event("uploads/somebodys"), event(f"uploads/{ID}")])
def test_a_notification_of_an_unknown_upload_is_acknowledged(functions: Functions, body: str) -> None:
    functions.tell(body)
    assert functions.hear() == {"batchItemFailures": []}


def test_what_is_no_notification_stays_in_its_queue(functions: Functions) -> None:
    functions.tell("hello")
    assert len(functions.hear()["batchItemFailures"]) == 1


def receipt(functions: Functions, count: int) -> dict[str, Any]:
    notification = received(functions.aws.upload_queue_url)
    notification["Records"] = notification["Records"][:1]
    notification["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(count)
    return notification


@pytest.mark.guards("upload-outage-no-dead-letter", case="5-False")
@pytest.mark.parametrize(("count", "kept"), [(1, True), (4, True), (5, False)])
def test_a_notification_that_a_store_cannot_serve_returns_and_is_dropped_after_its_last_receive(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, count: int, kept: bool
) -> None:
    image_id = document(functions.begin())["id"]
    functions.upload(image_id)
    postponed: list[int] = []

    def unavailable(*_: object, **__: object) -> None:
        raise Retryable("fetching: timeout")

    ports = functions.accept_upload.ports
    monkeypatch.setattr(ports.uploads, "get", unavailable)
    monkeypatch.setattr(functions.accept_upload.upload_queue, "postpone", lambda _, seconds: postponed.append(seconds))
    monkeypatch.setattr(functions.accept_upload.random, "random", lambda: 0.0)
    answer = call(functions.accept_upload, receipt(functions, count))
    assert len(answer["batchItemFailures"]) == int(kept)
    assert postponed == ([20 * 2 ** (count - 1)] if kept else [])
    assert functions.row(image_id).status is Status.AWAITING_UPLOAD, "the sweeper finds what has come"


@pytest.mark.guards("upload-reminder-no-dead-letter", case="5-True")
@pytest.mark.parametrize("reminder", [False, True])
@pytest.mark.parametrize("count", [1, 5])
def test_a_notification_that_trips_a_bug_becomes_one_dead_letter_and_its_reminders_none(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, reminder: bool, count: int
) -> None:
    image_id = document(functions.begin())["id"]
    functions.tell(message_for(functions.row(image_id)).model_dump_json() if reminder else event(f"uploads/{image_id}"))
    monkeypatch.setattr(functions.accept_upload.ports.uploads, "size_bytes", lambda _: 1 / 0)
    answer = call(functions.accept_upload, receipt(functions, count))
    assert len(answer["batchItemFailures"]) == int(not (reminder and count == 5))
