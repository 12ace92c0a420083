"""`darkroom webhooks listen` on the local stack: a program on this machine is sent what happens to a photo, signed."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from console.events.tail import PREFIX
from console.webhooks.receiver import is_signed
from proof.fakes.pictures import jpeg
from tests.local.local_stack import LocalStack, interrupt, wait_until
from tests.unit.console.fake_api import FakeApi


def test_a_program_on_this_machine_is_sent_a_photos_events(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(64, 48))
    before = len(stack.terminal.read_text())

    def shown() -> str:
        return stack.terminal.read_text()[before:]

    with FakeApi() as program:
        listening = stack.start("webhooks", "listen", "--forward-to", f"{program.url}/webhooks", "--type", "image.done")
        try:
            wait_until(lambda: "Listening to" in shown() or listening.poll() is not None, "it listens")
            uploaded = stack.darkroom("upload", tmp_path / "photo.jpg", "--wait")
            assert uploaded.returncode == 0, uploaded.stdout
            image_id = uploaded.stdout.split()[0]
            wait_until(lambda: re.search(rf"image\.done +{image_id} .*\n  202 after ", shown()), "it is shown")
        finally:
            status = interrupt(listening)
    assert status == 128 + signal.SIGINT, shown()
    (secret,) = re.findall(r"whsec_\S+", shown())
    (request,) = [seen for seen in program.posts if image_id in seen.headers["webhook-id"]]
    assert is_signed(secret, request.headers, request.body)
    event = json.loads(request.body)
    assert (event["id"], event["type"], event["subject"]) == (request.headers["webhook-id"], "image.done", image_id)
    assert stack.client("sqs").list_queues(QueueNamePrefix=PREFIX).get("QueueUrls", []) == []
