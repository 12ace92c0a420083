"""`sam local invoke` of hold_images."""

from pathlib import Path

from darkroom.domain.hold import read_batch
from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_far_off_image_is_written_down_and_set_to_wake(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("hold_images")

    answer = stack.invoke("hold_images", event, tmp_path)

    assert answer == {"batchItemFailures": []}
    batches = [read_batch(body) for body in stack.holds().values()]
    (held,) = [entry for batch in batches for entry in batch.entries]
    assert held.message.image_id in event["Records"][0]["body"]
    assert [turn["position"] for turn in stack.turns()] == [0]
