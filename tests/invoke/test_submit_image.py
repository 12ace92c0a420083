"""`sam local invoke` of submit_image."""

import base64
import hashlib
import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_submitted_photo_is_stored_as_original_and_as_row(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("submit_image")
    photo = base64.b64decode(event["body"])

    answer = stack.invoke("submit_image", event, tmp_path)

    assert answer["statusCode"] == 202
    image_id = json.loads(answer["body"])["id"]
    assert answer["headers"]["Location"] == f"/images/{image_id}/status"
    assert stack.original(image_id) == photo
    row = stack.row(image_id)
    assert (row["status"], row["run"], row["attempt"]) == ("pending", 1, 0)
    assert row["source"]["sha256"] == hashlib.sha256(photo).hexdigest()
    assert image_id in [message["image_id"] for message in stack.messages()]
