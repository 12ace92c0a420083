"""`sam local invoke` of read_image."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_an_accepted_image_is_told_by_its_status(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(120, 90))
    event = sample_event("read_image")
    path = f"/images/{image_id}/status"
    event |= {"rawPath": path, "pathParameters": {"id": image_id}}
    event["requestContext"]["http"]["path"] = path

    answer = stack.invoke("read_image", event, tmp_path)

    assert answer["statusCode"] == 200
    document = json.loads(answer["body"])
    assert (document["id"], document["status"]) == (image_id, "pending")
    assert document == stack.status(image_id)
