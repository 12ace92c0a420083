"""What certain calls to AWS must have: the version, the checksum, and the client without retries."""

from __future__ import annotations

import base64
import hashlib

import boto3
import pytest

from darkroom.aws.dead_letters.dead_letters import DeadLetterQueues
from darkroom.aws.images.objects import OriginalsBucket
from darkroom.domain.dead_letters.dead_letter import explanation_of
from darkroom.domain.images.image import message_for
from tests.contract.conftest import Aws
from tests.support.fakes.messages import SIGNER
from tests.support.images import pending


@pytest.mark.guards("objects-accepted-version-read")
def test_the_accepted_version_is_read_and_not_the_newest(aws: Aws) -> None:
    client = boto3.client("s3")
    originals = OriginalsBucket(client, aws.originals_bucket)
    sha256 = hashlib.sha256(b"photo").hexdigest()
    stored = originals.put_if_absent("0" * 26, b"photo", sha256=sha256, media_type="image/jpeg")
    client.put_object(Bucket=aws.originals_bucket, Key=f"originals/{'0' * 26}", Body=b"another")
    assert originals.get("0" * 26, stored.version_id) == b"photo"


@pytest.mark.guards("objects-checksum-on-write")
def test_what_is_stored_is_checked_by_the_sha256_that_it_was_accepted_with(aws: Aws) -> None:
    sent: list[str | None] = []
    client = boto3.client("s3")
    client.meta.events.register(
        "before-send.s3.PutObject",
        lambda request, **_: sent.append(request.headers.get("x-amz-checksum-sha256")),
    )
    # Bytes that changed on the way to the call: S3 compares them with the checksum that was computed before.
    sha256 = hashlib.sha256(b"photo").digest()
    OriginalsBucket(client, aws.originals_bucket).put_if_absent(
        "0" * 26, b"phot0", sha256=sha256.hex(), media_type="image/jpeg"
    )
    assert [header.decode() if isinstance(header, bytes) else header for header in sent] == [
        base64.b64encode(sha256).decode()
    ]


@pytest.mark.guards("dead-letters-single-try-client")
def test_a_dead_letter_is_sent_by_the_client_that_tries_once(aws: Aws) -> None:
    sent: list[str] = []
    client, once_client = boto3.client("sqs"), boto3.Session().client("sqs")
    client.meta.events.register("before-send.sqs.SendMessage", lambda **_: sent.append("with retries"))
    once_client.meta.events.register("before-send.sqs.SendMessage", lambda **_: sent.append("once"))
    image = pending()
    dead_letters = DeadLetterQueues(client, once_client, aws.dead_letter_urls, SIGNER)
    dead_letters.put("slow", message_for(image), explanation_of(image))
    assert sent == ["once"]
