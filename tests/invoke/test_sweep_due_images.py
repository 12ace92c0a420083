"""`sam local invoke` of sweep_due_images."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_an_image_whose_message_was_lost_is_sent_again_and_looked_at_later(
    stack: DeployedStack, tmp_path: Path
) -> None:
    image_id = stack.submit(jpeg(160, 120))
    stack.lose_message(image_id)
    due_at = stack.row(image_id)["due_at"]

    answer = stack.invoke("sweep_due_images", sample_event("sweep_due_images"), tmp_path)

    # The sweep also sees what other tests have left: a withdrawn image is removed, one to be fetched is sent again.
    assert answer["complete"]
    assert answer["outcomes"]["rescued"] >= 1
    assert [message["image_id"] for message in stack.messages()] == [image_id]
    row = stack.row(image_id)
    assert row["status"] == "pending"
    assert row["due_at"] > due_at
