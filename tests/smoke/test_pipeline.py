"""Photos through the whole system on the embedded stack: the real template, deployed by the real SAM CLI."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx

from tests.local.keyed import ended
from tests.local.local_stack import PHOTO, LocalStack, wait_until
from tests.support.fakes.pictures import jpeg, opened


def post(api: httpx.Client, body: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.post("/images", content=body, headers={"content-type": "image/jpeg", **named})


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


def test_an_image_that_is_done_gets_one_more_variant(stack: LocalStack, api: httpx.Client, tmp_path: Path) -> None:
    image_id = post(api, jpeg(320, 240)).json()["id"]
    before = ended(api, image_id)
    (tmp_path / "hero.json").write_text(
        '{"variants": [{"name": "hero", "width": 100, "format": "webp"}], "rotate": 90}'
    )
    added = stack.darkroom("variants", "add", image_id, "--recipe", tmp_path / "hero.json", "--wait")
    assert added.returncode == 0, added.stderr
    after = api.get(f"/images/{image_id}/status").json()
    assert [variant["sha256"] for variant in after["variants"][:-1]] == [made["sha256"] for made in before["variants"]]
    assert (after["completed_at"], after["work"]["status"]) == (before["completed_at"], "done")
    hero = opened(httpx.get(after["variants"][-1]["url"], trust_env=False).content)
    assert (hero.format, hero.size) == ("WEBP", (100, 133))


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


def test_a_deleted_photo_leaves_nothing_in_the_buckets(stack: LocalStack, api: httpx.Client) -> None:
    document = ended(api, post(api, jpeg(120, 90)).json()["id"])
    image_id, address = document["id"], document["variants"][0]["url"]
    assert httpx.get(address, trust_env=False).status_code == 200
    assert api.delete(f"/images/{image_id}").status_code == 204
    stack.client("lambda").invoke(FunctionName=stack.physical_id("SweepDueImagesFunction"), Payload=b"{}")
    s3, outputs = stack.client("s3"), stack.outputs
    versions = s3.list_object_versions(Bucket=outputs["OriginalsBucketName"], Prefix=f"originals/{image_id}")
    assert not versions.get("Versions") and not versions.get("DeleteMarkers")
    assert not s3.list_objects_v2(Bucket=outputs["OutputsBucketName"], Prefix=f"outputs/{image_id}/").get("Contents")
    assert httpx.get(address, trust_env=False).status_code == 404
    assert api.get(f"/images/{image_id}").json()["code"] == "unknown_image"
