"""Photos through the whole system on the embedded stack: the real template, deployed by the real SAM CLI."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest

from darkroom.aws.images.images_table import to_item
from darkroom.domain.images.image import Source
from tests.local.local_stack import PHOTO, LocalStack, wait_until
from tests.support.fakes.pictures import jpeg, opened
from tests.support.fakes.rows import accepted_image


@pytest.fixture
def api(stack: LocalStack) -> Iterator[httpx.Client]:
    """A plain HTTP client at the API's root."""
    with httpx.Client(base_url=stack.api_url, trust_env=False, timeout=60) as client:
        yield client


def post(api: httpx.Client, body: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.post("/images", content=body, headers={"content-type": "image/jpeg", **named})


def ended(api: httpx.Client, image_id: str) -> dict[str, Any]:
    def document() -> dict[str, Any] | None:
        shown: dict[str, Any] = api.get(f"/images/{image_id}/status").json()
        return shown if shown["status"] in ("done", "failed") else None

    final: dict[str, Any] = wait_until(document, f"image {image_id} ends", seconds=120)
    return final


def test_a_photograph_becomes_four_variants(api: httpx.Client) -> None:
    accepted = post(api, PHOTO.read_bytes())
    assert accepted.status_code == 202
    assert accepted.headers["location"] == f"/images/{accepted.json()['id']}/status"
    document = ended(api, accepted.json()["id"])
    assert document["status"] == "done"
    assert {variant["name"]: (variant["width"], variant["height"]) for variant in document["variants"]} == {
        "thumb": (256, 144),
        "medium": (800, 450),
        "large": (1920, 1080),
        "webp": (1920, 1080),
    }
    for variant in document["variants"]:
        body = httpx.get(variant["url"], trust_env=False).content
        assert (len(body), hashlib.sha256(body).hexdigest()) == (variant["bytes"], variant["sha256"])
        assert opened(body).size == (variant["width"], variant["height"])


def test_a_recipe_of_ones_own_is_sent_from_a_file_and_made(
    stack: LocalStack, api: httpx.Client, tmp_path: Path
) -> None:
    variants = [
        {"name": "card", "width": 120, "height": 60, "fit": "cover", "gravity": {"x": 0.5, "y": 0.25}},
        {"name": "small", "width": 64, "format": "avif"},
    ]
    (tmp_path / "card.json").write_text(json.dumps({"variants": variants}))
    (tmp_path / "photo.jpg").write_bytes(jpeg(320, 240))
    uploaded = stack.darkroom("upload", tmp_path / "photo.jpg", "--recipe", tmp_path / "card.json", "--wait")
    assert uploaded.returncode == 0, uploaded.stdout
    document = api.get(f"/images/{uploaded.stdout.split()[0]}/status").json()
    assert document["preset"] is None and sorted(document["placeholder"]) == ["color", "thumbhash"]
    made = {
        variant["name"]: opened(httpx.get(variant["url"], trust_env=False).content) for variant in document["variants"]
    }
    assert {name: (picture.format, picture.size) for name, picture in made.items()} == {
        "card": ("JPEG", (120, 60)),
        "small": ("AVIF", (64, 48)),
    }


def test_some_variants_of_a_preset_are_made_and_no_others(api: httpx.Client) -> None:
    accepted = api.post("/images", params={"variants": "webp,thumb"}, content=jpeg(320, 240))
    document = ended(api, accepted.json()["id"])
    assert [variant["name"] for variant in document["variants"]] == ["thumb", "webp"]


def test_an_invalid_recipe_is_refused_by_field(api: httpx.Client) -> None:
    recipe = {"variants": [{"name": "a", "width": 0, "background": "#ff0000"}]}
    answer = api.post("/images", params={"recipe": json.dumps(recipe)}, content=jpeg())
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"field": "variants.0.width", "message": "must be at least 1"}]


def test_a_variant_is_one_redirect_away(api: httpx.Client) -> None:
    image_id = post(api, jpeg(320, 240)).json()["id"]
    ended(api, image_id)
    redirect = api.get(f"/images/{image_id}/variants/webp")
    assert redirect.status_code == 307
    followed = httpx.get(redirect.headers["location"], trust_env=False)
    assert followed.headers["content-type"] == "image/webp"
    assert opened(followed.content).format == "WEBP"

    # The method is signed: an address for one is refused to the other.
    heads = api.head(f"/images/{image_id}/variants/webp")
    assert (heads.status_code, heads.content) == (307, b"")
    about = httpx.head(heads.headers["location"], trust_env=False)
    assert (about.status_code, about.content) == (200, b"")
    assert (about.headers["content-type"], about.headers["etag"]) == ("image/webp", followed.headers["etag"])
    assert int(about.headers["content-length"]) == len(followed.content)
    assert httpx.head(redirect.headers["location"], trust_env=False).status_code == 403
    assert httpx.get(heads.headers["location"], trust_env=False).status_code == 403

    full, bare = (api.request(method, f"/images/{image_id}") for method in ("GET", "HEAD"))
    assert (bare.status_code, bare.content, bare.headers["etag"]) == (200, b"", full.headers["etag"])
    assert int(bare.headers["content-length"]) == len(full.content)


def test_a_client_with_a_current_copy_gets_a_304(api: httpx.Client) -> None:
    image_id = post(api, jpeg()).json()["id"]
    ended(api, image_id)
    # Two requests on either side of a five-minute window have different tags; the third is in the second's window.
    for _ in range(2):
        tag = api.get(f"/images/{image_id}/status").headers["etag"]
        again = api.get(f"/images/{image_id}/status", headers={"if-none-match": tag})
        if again.status_code == 304:
            break
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)


def test_what_is_no_image_is_refused_before_it_is_stored(api: httpx.Client, stack: LocalStack) -> None:
    answer = post(api, b"A text file that somebody called photo.jpg")
    assert answer.status_code == 415
    assert answer.headers["content-type"] == "application/problem+json"
    assert "text" in answer.json()["detail"]


def test_an_unknown_id_is_404(api: httpx.Client) -> None:
    assert api.get(f"/images/{'0' * 26}/status").json()["code"] == "unknown_image"


def test_an_idempotency_key_is_one_image(api: httpx.Client) -> None:
    key = token_hex(8)  # other tests of this tier share the stack and its tenant
    first = post(api, jpeg(100, 100), idempotency_key=key)
    again = post(api, jpeg(100, 100), idempotency_key=key)
    assert again.status_code == 202, again.text
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert post(api, jpeg(101, 100), idempotency_key=key).status_code == 422


def test_a_damaged_photo_fails_and_says_why_and_leaves_no_dead_letter(api: httpx.Client, stack: LocalStack) -> None:
    photo = jpeg(640, 480)
    document = ended(api, post(api, photo[: len(photo) // 2]).json()["id"])
    assert (document["status"], document["attempt"]) == ("failed", 1)
    assert document["error"]["code"] == "truncated"
    assert waiting(stack, "SlowDeadLettersUrl") == 0


def waiting(stack: LocalStack, output: str) -> int:
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.outputs[output], AttributeNames=["ApproximateNumberOfMessages"]
    )
    return int(attributes["Attributes"]["ApproximateNumberOfMessages"])


def test_a_message_that_this_stack_has_not_sent_becomes_a_dead_letter(stack: LocalStack, api: httpx.Client) -> None:
    sqs = stack.client("sqs")
    forged = {"signature": {"DataType": "String", "StringValue": f"v1.{'0' * 64}.of-nobody"}}
    sqs.send_message(QueueUrl=stack.outputs["FastQueueUrl"], MessageBody="no message of ours", MessageAttributes=forged)
    image_id = post(api, jpeg()).json()["id"]
    assert ended(api, image_id)["status"] == "done", "and costs the others nothing"
    explained = wait_until(lambda: dead_letter(stack), "its dead letter")
    assert explained["MessageAttributes"]["explanation"]["StringValue"].count("unknown_key") == 1
    sqs.delete_message(QueueUrl=stack.outputs["FastDeadLettersUrl"], ReceiptHandle=explained["ReceiptHandle"])


def dead_letter(stack: LocalStack) -> Any:
    """One of the fast lane's, or None."""
    answer = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["FastDeadLettersUrl"], MessageAttributeNames=["All"]
    )
    return next(iter(answer.get("Messages", ())), None)


def test_what_was_accepted_and_never_enqueued_is_rescued_by_the_sweeper(stack: LocalStack, api: httpx.Client) -> None:
    # The state that a crash between the row and the message leaves: the original and the row, but no message.
    image_id = "0" * 25 + "1"
    photo = jpeg(120, 90)
    stored = stack.client("s3").put_object(
        Bucket=stack.outputs["OriginalsBucketName"], Key=f"originals/{image_id}", Body=photo
    )
    put_row(stack, image_id, photo, stored["VersionId"])
    assert api.get(f"/images/{image_id}/status").json()["status"] == "pending"
    stack.client("lambda").invoke(FunctionName=function_name(stack, "SweepDueImagesFunction"), Payload=b"{}")
    assert ended(api, image_id)["status"] == "done"


def test_a_deleted_photo_leaves_nothing_in_the_buckets(stack: LocalStack, api: httpx.Client) -> None:
    document = ended(api, post(api, jpeg(120, 90)).json()["id"])
    image_id, address = document["id"], document["variants"][0]["url"]
    assert httpx.get(address, trust_env=False).status_code == 200
    assert api.delete(f"/images/{image_id}").status_code == 204
    stack.client("lambda").invoke(FunctionName=function_name(stack, "SweepDueImagesFunction"), Payload=b"{}")
    s3, outputs = stack.client("s3"), stack.outputs
    versions = s3.list_object_versions(Bucket=outputs["OriginalsBucketName"], Prefix=f"originals/{image_id}")
    assert not versions.get("Versions") and not versions.get("DeleteMarkers")
    assert not s3.list_objects_v2(Bucket=outputs["OutputsBucketName"], Prefix=f"outputs/{image_id}/").get("Contents")
    assert httpx.get(address, trust_env=False).status_code == 404
    assert api.get(f"/images/{image_id}").json()["code"] == "unknown_image"


def test_a_form_is_an_upload_and_what_was_uploaded_is_listed_newest_first(api: httpx.Client) -> None:
    first = post(api, jpeg(90, 60)).json()["id"]
    second = api.post("/images", files={"file": ("IMG 1.jpg", jpeg(60, 90))}).raise_for_status().json()["id"]

    def listed() -> list[str]:
        return [image["id"] for image in api.get("/images?limit=100").json()["images"]]

    wait_until(lambda: {first, second} <= set(listed()), "the index has heard of both")
    assert listed().index(second) < listed().index(first)


def function_name(stack: LocalStack, logical_id: str) -> str:
    return stack.physical_id(logical_id)


def put_row(stack: LocalStack, image_id: str, photo: bytes, version_id: str) -> None:
    row = accepted_image(
        image_id=image_id,
        source=Source(
            version_id=version_id,
            sha256=hashlib.sha256(photo).hexdigest(),
            size_bytes=len(photo),
            media_type="image/jpeg",
        ),
        now=int(time.time() * 1000) - 1_200_001,
    )
    stack.client("dynamodb").put_item(TableName=stack.outputs["ImagesTableName"], Item=to_item(row))


def test_one_correlation_id_leads_from_the_answer_to_the_workers_log(stack: LocalStack, api: httpx.Client) -> None:
    accepted = post(api, jpeg(99, 77))
    image_id = accepted.json()["id"]
    ended(api, image_id)
    logs = stack.client("logs")

    def lines() -> dict[str, dict[str, Any]] | None:
        by_message = {}
        for group in logs.describe_log_groups()["logGroups"]:
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
                if image_id in event["message"] and event["message"].startswith("{"):
                    line = json.loads(event["message"])
                    by_message[line["message"]] = line
        return by_message if {"accepted", "run"} <= by_message.keys() else None

    logged = wait_until(lines, "both functions have logged", seconds=30)
    assert logged["accepted"]["correlation_id"] == logged["run"]["correlation_id"]
    assert logged["accepted"]["correlation_id"]


def test_a_folder_of_photos_is_uploaded_and_all_are_done_once(stack: LocalStack, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("photos")
    for number in range(40):
        (folder / f"{number:02d}.jpg").write_bytes(jpeg(200 + number, 150))
    uploaded = stack.darkroom("upload", folder, "--wait", "--concurrency", "8")
    assert uploaded.returncode == 0, uploaded.stdout
    sent = {hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    rows = [
        row
        for page in stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.outputs["ImagesTableName"])
        for row in page["Items"]
        if row["source"]["M"]["sha256"]["S"] in sent
    ]
    assert len(rows) == len(sent) == 40, "one image a photo"
    assert {row["status"]["S"] for row in rows} == {"done"}
