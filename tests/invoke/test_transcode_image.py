"""`sam local invoke` of transcode_image."""

import hashlib
import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg, opened


def test_a_delivered_image_is_done_with_its_four_variants(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(1000, 750))
    event = sample_event("transcode_image")
    (record,) = event["Records"]
    body = json.dumps({**json.loads(record["body"]), "image_id": image_id})
    record |= {"body": body, "md5OfBody": hashlib.md5(body.encode()).hexdigest()}

    answer = stack.invoke("transcode_image", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    document = stack.status(image_id)
    assert (document["status"], document["progress"]) == ("done", {"done": 4, "total": 4})
    variants = stack.variants(image_id)
    assert {name: opened(body).size for name, body in variants.items()} == {
        "thumb.jpg": (256, 192),
        "medium.jpg": (800, 600),
        "large.jpg": (1000, 750),
        "webp.webp": (1000, 750),
    }
    assert {v["sha256"] for v in document["variants"]} == {
        hashlib.sha256(body).hexdigest() for body in variants.values()
    }
