"""`sam local invoke` of fetch_original."""

import hashlib
import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_url_whose_host_nobody_knows_is_tried_again_later(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.ask("https://photos.invalid/harbour.jpg")  # no such name exists (RFC 6761, section 6.4)
    event = sample_event("fetch_original")
    (record,) = event["Records"]
    body = json.dumps({**json.loads(record["body"]), "image_id": image_id})
    record |= {"body": body, "md5OfBody": hashlib.md5(body.encode()).hexdigest()}

    answer = stack.invoke("fetch_original", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    document = stack.status(image_id)
    assert (document["status"], document["attempt"]) == ("fetching", 1)
    assert document["retry_at"] is not None
    assert stack.row(image_id)["attempts"][0]["cause"]["error_type"] == "fetch_failed"
