"""`sam local invoke` of publish_events."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_what_a_row_tells_is_published_to_its_consumers(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(150, 110))
    event = sample_event("publish_events")
    (record,) = event["Records"]
    record["dynamodb"] |= {"Keys": {"image_id": {"S": image_id}}, "NewImage": stack.item(image_id)}

    answer = stack.invoke("publish_events", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    events = [json.loads(body) for body in stack.take_messages("UsageQueueUrl")]
    (own,) = [event for event in events if event["subject"] == image_id]
    assert (own["type"], own["id"]) == ("image.accepted", f"{image_id}-1")
    assert own["source"].startswith("/darkroom/")
