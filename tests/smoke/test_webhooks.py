"""Webhooks on the local stack: a program on this machine is sent what happens to a photo, signed, by `darkroom webhooks
listen` and by a webhook of its own."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

from darkroom.aws.events.followers import PREFIX
from darkroom_client.signature import is_signed
from tests.local.local_stack import LocalStack, interrupt, wait_until
from tests.support.fakes.pictures import jpeg
from tests.unit.cli.fake_api import FakeApi


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


def test_a_webhook_gets_a_photos_event_signed_and_its_delivery_is_shown(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(96, 64))

    def run(*arguments: str | Path) -> str:
        answer = stack.darkroom(*arguments)
        assert answer.returncode == 0, answer.stdout
        return answer.stdout

    with FakeApi() as program:
        added = run("webhooks", "add", f"{program.url}/webhooks", "--type", "image.done")
        (secret,), (webhook_id, *_) = re.findall(r"^whsec_\S+$", added, re.MULTILINE), re.findall(r"we_\w+", added)
        try:
            image_id = run("upload", tmp_path / "photo.jpg", "--wait").split()[0]
            shown = wait_until(
                lambda: re.search(
                    rf"image\.done +({image_id}-\d+)  delivered at \S+\n   1  \S+  202 after ",
                    run("webhooks", "deliveries", webhook_id),
                ),
                "it is delivered",
            )
            (request,) = program.posts
            assert request.headers["webhook-id"] == shown[1]
            assert is_signed(secret, request.headers, request.body)
            run("webhooks", "ping", webhook_id)
            wait_until(lambda: len(program.posts) == 2, "the ping arrives")
            ping = program.posts[1]
            assert is_signed(secret, ping.headers, ping.body)
            assert json.loads(ping.body)["type"] == "webhook.ping"
            assert f"{webhook_id}  enabled" in run("webhooks", "show", webhook_id)
            (other_id, *_) = re.findall(
                r"we_\w+", run("webhooks", "add", f"{program.url}/others", "--type", "webhook.*")
            )
            try:
                run("webhooks", "disable", webhook_id)
                wait_until(lambda: len(program.posts) == 3, "the other webhook hears that it is disabled")
            finally:
                run("webhooks", "rm", other_id, "--yes")
            disabled = json.loads(program.posts[2].body)
            assert (disabled["type"], disabled["subject"]) == ("webhook.disabled", webhook_id)
            assert disabled["data"]["disabled_by"] == "client"
        finally:
            removed = run("webhooks", "rm", webhook_id, "--yes")
    assert f"{webhook_id} is deleted" in removed
    assert run("webhooks", "ls").startswith("No webhooks yet.")
