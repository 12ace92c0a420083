"""`sam local invoke` of delete_image."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_an_image_is_withdrawn(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(120, 80))
    event = sample_event("delete_image")
    event |= {"rawPath": f"/images/{image_id}", "pathParameters": {"id": image_id}}
    event["requestContext"]["http"]["path"] = f"/images/{image_id}"

    answer = stack.invoke("delete_image", event, tmp_path)

    assert answer["statusCode"] == 204
    assert stack.row(image_id)["status"] == "cancelled"
    assert "deleted_at" in stack.row(image_id)
