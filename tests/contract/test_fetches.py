"""Images that are fetched from URLs: the ports against one contract, and the functions over moto, with real servers on
loopback."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from darkroom.aws.images.queues import SqsFetchQueue
from darkroom.aws.imports.bucket_images import BucketImages
from darkroom.domain.images.image import Status, message_for
from darkroom.domain.images.media_types import SNIFF_BYTES
from darkroom.domain.imports.fetch import Fetched, Unfetched
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.fingerprint import fingerprint
from darkroom.domain.kernel.message import read_message
from darkroom.egress import EgressPolicy
from darkroom.egress.images import HttpImages
from darkroom.ports.images import FetchQueue, QueueDepth
from darkroom.ports.imports import RemoteImages
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, http_event, received
from tests.support.fakes.messages import SIGNER
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.stores import FakeFetchQueue, FakeRemoteImages
from tests.support.images import pending
from tests.unit.egress.servers import answering, serving

PHOTO = jpeg()
FOUND = b'HTTP/1.1 200 OK\r\nETag: "7"\r\nContent-Length: %d\r\n\r\n%s' % (len(PHOTO), PHOTO)
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
SECRET = "token=S3cr3t"


def test_an_image_to_fetch_is_asked_for_in_its_tenants_share(kind: str, aws: Aws) -> None:
    fake, sqs = FakeFetchQueue(), boto3.client("sqs")
    queue: FetchQueue = fake if kind == "fake" else SqsFetchQueue(sqs, aws.fetch_queue_url, SIGNER)
    message = message_for(pending(tenant_id="acme"))
    queue.put(message)
    if kind == "fake":
        assert fake.asked == [message]
    else:
        (it,) = sqs.receive_message(QueueUrl=aws.fetch_queue_url, AttributeNames=["All"])["Messages"]
        assert (read_message(it["Body"]), it["Attributes"]["MessageGroupId"]) == (message, "acme")


def test_the_fetch_queue_says_what_waits_and_what_a_worker_has(kind: str, aws: Aws) -> None:
    fake, sqs = FakeFetchQueue(waiting=2, taken=1), boto3.client("sqs")
    queue: FetchQueue = fake if kind == "fake" else SqsFetchQueue(sqs, aws.fetch_queue_url, SIGNER)
    if kind != "fake":
        for _ in range(3):
            queue.put(message_for(pending()))
        sqs.receive_message(QueueUrl=aws.fetch_queue_url, MaxNumberOfMessages=1)
    assert queue.depth() == QueueDepth(waiting=2, taken=1)


@pytest.mark.parametrize("left", [1, 0, -1])
def test_an_image_is_fetched_whole_or_not_at_all(kind: str, left: int) -> None:
    with serving(answering(FOUND)) as server:
        url, fake = f"http://127.0.0.1:{server.port}/", FakeRemoteImages()
        fake.serve(url, PHOTO)
        images: RemoteImages = (
            fake if kind == "fake" else HttpImages(EgressPolicy(allows_loopback=True), clock=lambda: 1)
        )
        answer = images.fetch(url, max_bytes=len(PHOTO) + left, is_picture=PHOTO.startswith)
    if left < 0:
        assert isinstance(answer, Unfetched)
        assert (answer.code, answer.may_pass) == ("fetch_too_large", False)
    else:
        assert isinstance(answer, Fetched)
        assert answer.body == PHOTO


def test_of_a_file_that_is_no_picture_only_the_first_bytes_are_fetched(kind: str, aws: Aws) -> None:
    with serving(answering(FOUND)) as server:
        url, fake = f"http://127.0.0.1:{server.port}/", FakeRemoteImages()
        fake.serve(url, PHOTO)
        images: RemoteImages = (
            fake if kind == "fake" else HttpImages(EgressPolicy(allows_loopback=True), clock=lambda: 1)
        )
        answer = images.fetch(url, max_bytes=len(PHOTO), is_picture=lambda first: len(first) != SNIFF_BYTES)
    assert isinstance(answer, Fetched)
    assert answer.body == PHOTO[:SNIFF_BYTES]


@pytest.mark.parametrize(
    ("key", "most", "outcome"),
    [
        ("a b%2F+.jpg", len(PHOTO), PHOTO),
        ("a b%2F+.jpg", len(PHOTO) - 1, "fetch_too_large"),
        ("notes.txt", len(PHOTO), b"x" * SNIFF_BYTES),
        ("nothing", len(PHOTO), "fetch_not_found"),
    ],
)
@pytest.mark.guards("fetch-bucket-file-size")
def test_an_image_in_a_bucket_is_fetched_as_from_a_server(
    kind: str, key: str, most: int, outcome: bytes | str, aws: Aws
) -> None:
    s3, fake = boto3.client("s3"), FakeRemoteImages()
    for name, body in (("a b%2F+.jpg", PHOTO), ("notes.txt", b"x" * 9999)):
        s3.put_object(Bucket=aws.uploads_bucket, Key=name, Body=body)
        fake.serve(f"s3://{aws.uploads_bucket}/{name}", body)
    images: RemoteImages = fake if kind == "fake" else BucketImages(s3)
    most = max(most, 9999) if outcome == b"x" * SNIFF_BYTES else most
    answer = images.fetch(f"s3://{aws.uploads_bucket}/{key}", max_bytes=most, is_picture=PHOTO[:SNIFF_BYTES].startswith)
    assert (answer.body if isinstance(answer, Fetched) else answer.code) == outcome
    if kind != "fake" and isinstance(answer, Fetched):
        assert (answer.provenance.etag or "").startswith('"')
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", answer.provenance.last_modified or "")


@pytest.mark.parametrize(
    ("code", "status", "outcome", "may_pass"),
    [
        ("AccessDenied", 403, "fetch_refused", False),
        ("NoSuchBucket", 404, "fetch_not_found", False),
        ("InvalidObjectState", 403, "fetch_refused", False),
        ("KMS.DisabledException", 400, "fetch_failed", False),
        ("SlowDown", 503, "fetch_failed", True),
        ("InternalError", 500, "fetch_failed", True),
    ],
)
def test_what_a_bucket_answers_instead_of_a_file_is_told_to_the_images_owner(
    code: str, status: int, outcome: str, may_pass: bool, aws: Aws
) -> None:
    s3 = boto3.client("s3", config=Config(retries={"total_max_attempts": 1, "mode": "standard"}))
    with Stubber(s3) as stub:
        stub.add_client_error("get_object", service_error_code=code, http_status_code=status)
        answer = BucketImages(s3).fetch("s3://photos/1.jpg", max_bytes=1, is_picture=lambda _: True)
    assert isinstance(answer, Unfetched)
    assert (answer.code, answer.may_pass) == (outcome, may_pass)
    assert "photos" not in answer.message


def test_a_file_whose_bucket_breaks_off_is_fetched_again(aws: Aws) -> None:
    class Body:
        def read(self, most: int = -1) -> bytes:
            if most > 0:
                return PHOTO[:most]
            raise ReadTimeoutError(endpoint_url="https://photos.s3.amazonaws.com")

    s3 = boto3.client("s3")
    with Stubber(s3) as stub:
        stub.add_response(
            "get_object",
            {"Body": Body(), "ContentLength": len(PHOTO), "ETag": '"1"', "LastModified": datetime.now(UTC)},
        )
        answer = BucketImages(s3).fetch("s3://photos/1.jpg", max_bytes=len(PHOTO), is_picture=lambda _: True)
    assert isinstance(answer, Unfetched)
    assert (answer.code, answer.may_pass) == ("fetch_failed", True)


def post(functions: Functions, query: str = "", key: str | None = None, **written: Any) -> dict[str, Any]:
    headers = {"content-type": "application/json; charset=utf-8"} | ({} if key is None else {"idempotency-key": key})
    body = json.dumps(written).encode()
    return call(functions.submit_image, http_event("POST", "/images", body=body, query=query, headers=headers))


def body_of(answer: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(answer["body"])
    return document


def fetch(functions: Functions) -> dict[str, Any]:
    return call(functions.fetch_original, received(functions.aws.fetch_queue_url))


def test_a_url_becomes_an_image_and_no_line_of_the_log_has_it(functions: Functions, log: io.StringIO) -> None:
    with serving(answering(FOUND)) as server:
        answer = post(functions, url=f"http://127.0.0.1:{server.port}/a.jpg?{SECRET}", preset="avatar")
        assert (answer["statusCode"], body_of(answer)["status"]) == (202, "fetching")
        assert fetch(functions) == {"batchItemFailures": []}
    image_id = body_of(answer)["id"]
    assert functions.objects("originals") == [f"originals/{image_id}"]
    call(functions.transcode_image, received(functions.aws.slow_queue_url))
    shown = body_of(call(functions.read_image, http_event("GET", f"/images/{image_id}")))
    assert (shown["status"], shown["source"]["bytes"]) == ("done", len(PHOTO))
    assert shown["source"]["fetched"] == {"etag": '"7"', "last_modified": None}
    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "fetch settled" in line]
    assert (line["image_id"], line["outcome"], line["attempt"]) == (image_id, "accepted", 0)
    assert line["correlation_id"] == functions.row(image_id).correlation_id
    assert "S3cr3t" not in log.getvalue()


@pytest.mark.guards("status-unfetched-source")
def test_a_source_that_is_busy_is_shown_with_its_next_try(functions: Functions, log: io.StringIO) -> None:
    with serving(answering(BUSY)) as server:
        answer = post(functions, url=f"http://127.0.0.1:{server.port}/a.jpg?{SECRET}")
        assert fetch(functions) == {"batchItemFailures": []}, "its row brings it back, not its message"
    path = f"/images/{body_of(answer)['id']}"
    assert body_of(call(functions.read_image, http_event("GET", path)))["source"] is None
    status = call(functions.read_image, http_event("GET", f"{path}/status"))
    shown = body_of(status)
    assert (shown["status"], shown["attempt"], shown["error"]) == ("fetching", 1, None)
    assert shown["retry_at"] is not None
    assert 25 <= int(status["headers"]["Retry-After"]) <= 45
    assert "S3cr3t" not in log.getvalue()
    assert "S3cr3t" not in json.dumps(shown)


@pytest.mark.guards("status-unfetched-source")
def test_a_source_that_has_nothing_ends_the_image_with_a_code(functions: Functions) -> None:
    with serving(answering(b"HTTP/1.1 404 Nothing\r\nContent-Length: 0\r\n\r\n")) as server:
        answer = post(functions, url=f"http://127.0.0.1:{server.port}/")
        fetch(functions)
    shown = body_of(call(functions.read_image, http_event("GET", f"/images/{body_of(answer)['id']}")))
    assert (shown["status"], shown["error"]["code"]) == ("failed", "fetch_not_found")
    assert shown["source"] is None


@pytest.mark.parametrize(
    ("url", "query", "code"),
    [
        ("http://photos.example/", "", "invalid_url"),
        ("https://photos.example/", "preset=avatar", "conflicting_parameters"),
    ],
)
def test_what_cannot_be_fetched_is_refused_at_once(functions: Functions, url: str, query: str, code: str) -> None:
    answer = post(functions, query, url=url)
    assert (answer["statusCode"], body_of(answer)["code"]) == (400, code)


@pytest.mark.guards("egress-given-source-url-length")
def test_a_presigned_url_with_a_long_session_token_is_fetched_as_it_is(functions: Functions, log: io.StringIO) -> None:
    credentials = Credentials("AKIDEXAMPLE", "secret", "IQoJb3JpZ2luX2VjE" + "+/aB" * 900)
    with serving(answering(FOUND)) as server:
        signed = AWSRequest("GET", f"http://127.0.0.1:{server.port}/photos/harbour.jpg")
        S3SigV4QueryAuth(credentials, "s3", "eu-central-1", expires=3600).add_auth(signed)
        url = str(signed.url).ljust(8192, "0")
        assert 7000 < len(str(signed.url)) < len(url)
        assert body_of(post(functions, url=url))["status"] == "fetching"
        assert fetch(functions) == {"batchItemFailures": []}
        assert server.received.split(b"\r\n")[0].decode() == f"GET {url.partition(str(server.port))[2]} HTTP/1.1"
    assert len(functions.objects("originals")) == 1
    assert "X-Amz-" not in log.getvalue()


def test_nothing_is_fetched_for_a_message_that_this_stack_did_not_send(functions: Functions) -> None:
    with serving(answering(FOUND)) as server:
        image = functions.row(body_of(post(functions, url=f"http://127.0.0.1:{server.port}/"))["id"])
        received(functions.aws.fetch_queue_url)
        forged: Any = SIGNER.signed("fetch", group=image.tenant_id, body=message_for(image).model_dump_json())
        boto3.client("sqs").send_message(QueueUrl=functions.aws.fetch_queue_url, **forged)  # by another stack's key
        assert fetch(functions) == {"batchItemFailures": []}
        assert server.connections == 0
    assert functions.row(image.image_id).status is Status.FETCHING


def test_a_bug_brings_the_message_back_until_it_is_a_dead_letter(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
) -> None:
    post(functions, url="https://photos.example/")
    monkeypatch.setattr(functions.fetch_original.ports.images, "get", lambda _: 1 / 0)
    assert len(fetch(functions)["batchItemFailures"]) == 1
    line = next(json.loads(line) for line in log.getvalue().splitlines() if "fetch failed" in line)
    assert (line["level"], line["errorType"]) == ("ERROR", "ZeroDivisionError"), "the alarm of errors counts such lines"


def test_a_wrong_bucket_is_a_defect_of_its_own_and_nothing_of_the_url_is_told(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions.fetch_original.ports.originals, "_bucket_name", "no-such-bucket")
    with serving(answering(FOUND)) as server:
        answer = post(functions, url=f"http://127.0.0.1:{server.port}/a.jpg?{SECRET}")
        assert len(fetch(functions)["batchItemFailures"]) == 1
    cause = functions.row(body_of(answer)["id"]).attempts[-1].cause
    assert cause is not None and cause.message == "[AWS call: PutObject, NoSuchBucket, bucket no-such-bucket]"
    assert fingerprint(cause.error_type, cause.stack) == (
        "NoSuchBucket@aws/objects.py:_put_if_absent/PutObject/NoSuchBucket/no-such-bucket"
    )
    assert "S3cr3t" not in cause.stack


def test_while_the_table_does_not_answer_the_message_may_go_because_the_row_is_due(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_: str) -> None:
        raise Retryable("the table does not answer")

    post(functions, url="https://photos.example/")
    monkeypatch.setattr(functions.fetch_original.ports.images, "get", unavailable)
    assert fetch(functions) == {"batchItemFailures": []}
