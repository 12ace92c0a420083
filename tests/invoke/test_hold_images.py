"""`sam local invoke` of hold_images."""

from pathlib import Path

from darkroom.domain.schedules.hold import read_batch
from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_far_off_image_is_written_down_and_set_to_wake(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("hold_images")

    answer = stack.invoke("hold_images", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    held = {
        entry.message.image_id: key
        for key, body in stack.holds().items()
        if key.endswith(".json.gz")
        for entry in read_batch(body).entries
    }
    (key,) = [key for image_id, key in held.items() if image_id in event["Records"][0]["body"]]
    assert key in [turn["key"] for turn in stack.turns()]
