"""`sam local invoke` of reschedule_image."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_a_scheduled_image_is_moved(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(140, 90), delay="P1D")
    event = sample_event("reschedule_image")
    event |= {"rawPath": f"/images/{image_id}", "pathParameters": {"id": image_id}}
    event["requestContext"]["http"]["path"] = f"/images/{image_id}"
    event["body"] = json.dumps({"delay": "P3D"})

    answer = stack.invoke("reschedule_image", event, tmp_path)

    assert answer["statusCode"] == 200
    assert stack.row(image_id)["schedule"] == 1
    assert stack.status(image_id)["status"] == "scheduled"
