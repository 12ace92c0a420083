"""`sam local invoke` of release_images."""

import time
from pathlib import Path

from darkroom.domain.kernel.message import Message
from darkroom.domain.schedules.hold import Batch, HeldMessage, batch_key
from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.pictures import jpeg


def test_what_still_waits_goes_to_its_lane_and_its_object_goes(stack: DeployedStack, tmp_path: Path) -> None:
    image_id = stack.submit(jpeg(150, 100), delay="P1D")
    now = int(time.time()) * 1000
    row = stack.row(image_id)
    message = Message(image_id=image_id, tenant_id=row["tenant_id"], lane=row["lane"], run=1, schedule=0)
    batch = Batch(level="release", wake_at=now, entries=(HeldMessage(message=message, process_at=now),))
    dumped = batch.dumped()
    event = sample_event("release_images") | {"key": batch_key(batch, dumped)}
    stack.put_hold(event["key"], dumped)

    answer = stack.invoke("release_images", event, tmp_path)

    assert (answer["done"], answer["position"]) == (True, 1)
    assert image_id in [message["image_id"] for message in stack.messages()], "among those of other tests"
    assert event["key"] not in stack.holds()
