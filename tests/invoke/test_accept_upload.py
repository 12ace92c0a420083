"""`sam local invoke` of accept_upload."""

import hashlib
import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_an_upload_that_has_come_becomes_an_original_and_its_work_begins(stack: DeployedStack, tmp_path: Path) -> None:
    photo = jpeg(170, 130)
    image_id = stack.upload(photo)
    event = sample_event("accept_upload")
    (record,) = event["Records"]
    notification = json.loads(record["body"])
    notification["Records"][0]["s3"]["object"]["key"] = f"uploads/{image_id}"
    body = json.dumps(notification)
    record |= {"body": body, "md5OfBody": hashlib.md5(body.encode()).hexdigest()}

    answer = stack.invoke("accept_upload", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    assert stack.original(image_id) == photo
    assert stack.row(image_id)["status"] == "pending"
    assert image_id in [message["image_id"] for message in stack.messages()], "among those of other tests"
