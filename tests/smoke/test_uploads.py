"""Large files through the whole system on the embedded stack: the form, S3's event, its queue, the lane."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image as Picture

from tests.local.keyed import ended
from tests.local.local_stack import LocalStack, document_in, wait_until
from tests.support.fakes.pictures import encoded, jpeg, opened

MEGABYTES = 1024 * 1024


@pytest.fixture(scope="module")
def photo() -> bytes:
    """A photo that no request can hold: noise does not compress."""
    body = encoded(Picture.effect_noise((3000, 2400), 90).convert("RGB"), "JPEG", quality=97)
    assert len(body) > 5 * MEGABYTES
    return body


def announced(api: httpx.Client, body: bytes, **more: Any) -> dict[str, Any]:
    written = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **more}
    answer = api.post("/uploads", json=written)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/images/{document['id']}/status"
    return document


def send(form: dict[str, Any], body: bytes) -> httpx.Response:
    return httpx.post(form["url"], data=form["fields"], files={"file": body}, trust_env=False, timeout=60)


def status(api: httpx.Client, image_id: str) -> dict[str, Any]:
    document: dict[str, Any] = api.get(f"/images/{image_id}/status").json()
    return document


def objects(stack: LocalStack, bucket: str, image_id: str) -> list[str]:
    listed = stack.client("s3").list_objects_v2(Bucket=stack.outputs[bucket]).get("Contents", [])
    return [entry["Key"] for entry in listed if image_id in entry["Key"]]


def test_a_large_photo_is_uploaded_from_the_command_line_and_developed(
    stack: LocalStack, api: httpx.Client, photo: bytes, tmp_path: Path
) -> None:
    (tmp_path / "large.jpg").write_bytes(photo)
    (tmp_path / "small.jpg").write_bytes(jpeg(130, 70))
    uploaded = stack.darkroom("upload", tmp_path, "--variants", "thumb", "--wait", "--json")
    assert uploaded.returncode == 0, uploaded.stdout
    report = document_in(uploaded.stdout)
    assert report["summary"]["done"] == 2
    (image_id,) = [line["image"]["id"] for line in report["uploads"] if line["file"].endswith("large.jpg")]
    large = api.get(f"/images/{image_id}").json()
    assert large["source"] == {
        "media_type": "image/jpeg",
        "bytes": len(photo),
        "sha256": hashlib.sha256(photo).hexdigest(),
        "fetched": None,
    }
    (thumb,) = large["variants"]
    body = httpx.get(thumb["url"], trust_env=False).content
    assert (hashlib.sha256(body).hexdigest(), opened(body).size) == (thumb["sha256"], (256, 205))
    assert objects(stack, "UploadsBucketName", image_id) == []


def test_a_form_takes_the_announced_bytes_and_no_others(api: httpx.Client, photo: bytes) -> None:
    document = announced(api, photo, variants=["thumb"])
    other = photo[:-1] + bytes([photo[-1] ^ 1])
    for body, code in ((other, "BadDigest"), (photo[:-1], "EntityTooSmall"), (photo + b"!", "EntityTooLarge")):
        refused = send(document["upload"], body)
        assert (refused.status_code, f"<Code>{code}</Code>" in refused.text) == (400, True)
    assert status(api, document["id"])["status"] == "awaiting_upload"
    assert send(document["upload"], photo).status_code == 204
    assert ended(api, document["id"])["status"] == "done"


def make_due(stack: LocalStack, image_id: str) -> None:
    """Let the time pass in which the upload may arrive."""
    stack.client("dynamodb").update_item(
        TableName=stack.outputs["ImagesTableName"],
        Key={"image_id": {"S": image_id}},
        UpdateExpression="SET due_at = :past",
        ExpressionAttributeValues={":past": {"N": str(int(time.time() * 1000) - 1000)}},
    )


def sweep(stack: LocalStack) -> None:
    stack.client("lambda").invoke(FunctionName=stack.physical_id("SweepDueImagesFunction"), Payload=b"{}")


def test_an_upload_of_which_s3_told_nobody_is_found(api: httpx.Client, stack: LocalStack) -> None:
    photo = jpeg(150, 60)
    document = announced(api, photo, variants=["thumb"])
    s3, bucket = stack.client("s3"), stack.outputs["UploadsBucketName"]
    configuration = s3.get_bucket_notification_configuration(Bucket=bucket)
    configuration.pop("ResponseMetadata")
    assert configuration["QueueConfigurations"]
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    try:
        assert send(document["upload"], photo).status_code == 204
    finally:
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=configuration)
    assert status(api, document["id"])["status"] == "awaiting_upload"
    make_due(stack, document["id"])
    sweep(stack)
    assert ended(api, document["id"])["status"] == "done"


def test_a_withdrawn_image_leaves_nothing_of_its_upload(api: httpx.Client, stack: LocalStack) -> None:
    photo = jpeg(160, 60)
    document = announced(api, photo)
    assert api.delete(f"/images/{document['id']}").status_code == 204
    assert send(document["upload"], photo).status_code == 204
    wait_until(lambda: not objects(stack, "UploadsBucketName", document["id"]), "the upload goes", seconds=30)
    assert objects(stack, "OriginalsBucketName", document["id"]) == []
    assert api.get(f"/images/{document['id']}/status").status_code == 404
