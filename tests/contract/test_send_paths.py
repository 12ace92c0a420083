"""Every message that Darkroom sends is in its tenant's group, or its endpoint's, which makes the queues fair, and
signed for its queue. (In the FIFO queue of edits the group is the image, which orders its messages.)"""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
import time_machine
from botocore.client import BaseClient

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.queues import LaneQueues
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.domain.images.image import Cause, Image
from darkroom.domain.images.transitions import give_up
from darkroom.domain.kernel.signature import read_signature
from darkroom.domain.kernel.tenants import Caller, Tier, context_of
from darkroom.domain.uploads.upload_notification import upload_key
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import ReplayDeadLettersPorts, replay_image
from tests.contract.conftest import MESSAGE_KEY, Aws
from tests.contract.functions import ROOT, call, http_event, load, received, record, written
from tests.contract.stores import executions
from tests.support.fakes import FakeDeadLetters
from tests.support.fakes.audit import trail_of
from tests.support.fakes.messages import NOW, keys_of, signature_in
from tests.support.fakes.pictures import jpeg
from tests.support.notifications import event as notification

TENANT = "acme"
CALLER = context_of(Caller(tenant_id=TENANT, tier=Tier.PAID, allowance=Tier.PAID.allowance, key_id="00000000"))
PHOTO = jpeg(64, 48)
START = "2026-11-21T09:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message that was sent: its queue, its group, the tenant that it names, and whether it is signed for that queue,
    or for the one that its dead letters return to."""

    queue: str
    group: str | None
    tenant_id: str
    is_signed: bool


@dataclass
class Post:
    """The functions of a stack to which one tenant's requests come, and everything that they send."""

    aws: Aws
    monkeypatch: pytest.MonkeyPatch
    clock: Any
    sent: list[Sent] = field(default_factory=list)

    published: list[Sent] = field(default_factory=list)

    def note(self, operation: str, parameters: dict[str, Any]) -> None:
        for entry in parameters.get("PublishBatchRequestEntries", []):
            group, body = entry["MessageGroupId"], entry["Message"]
            covered = {"secret": MESSAGE_KEY, "queue": "events", "group": group, "body": body}
            is_signed = read_signature(signature_in(entry)).covers(**covered)
            tenant_id = json.loads(body)["data"]["tenant_id"]
            self.published.append(Sent(queue="events", group=group, tenant_id=tenant_id, is_signed=is_signed))
        if operation in ("SendMessage", "SendMessageBatch"):
            for entry in parameters.get("Entries", [parameters]):
                queue = parameters["QueueUrl"].rpartition("/")[2]
                tenant_id = json.loads(entry["MessageBody"])["tenant_id"]
                group = entry.get("MessageGroupId")
                covered = {
                    "secret": MESSAGE_KEY,
                    "queue": queue.removesuffix("-dead-letters").removesuffix("-queue"),
                    "group": group,
                    "body": entry["MessageBody"],
                }
                is_signed = read_signature(signature_in(entry)).covers(**covered)
                self.sent.append(Sent(queue=queue, group=group, tenant_id=tenant_id, is_signed=is_signed))

    def invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        return call(load(function, self.aws, self.monkeypatch), event)

    def upload(self, query: str = "", **headers: str) -> str:
        event = http_event("POST", "/images", body=PHOTO, query=query, headers=headers)
        event["requestContext"]["authorizer"] = {"lambda": CALLER}
        answer = self.invoke("submit_image", event)
        assert answer["statusCode"] == 202
        image_id: str = json.loads(answer["body"])["id"]
        return image_id

    def announce(self, **announced: str) -> str:
        """The id of an image whose bytes are in the uploads bucket, without a notification yet."""
        written = {"bytes": len(PHOTO), "sha256": hashlib.sha256(PHOTO).hexdigest(), **announced}
        event = http_event("POST", "/uploads", body=json.dumps(written).encode())
        event["requestContext"]["authorizer"] = {"lambda": CALLER}
        answer = self.invoke("begin_upload", event)
        assert answer["statusCode"] == 201
        image_id: str = json.loads(answer["body"])["id"]
        boto3.client("s3").put_object(Bucket=self.aws.uploads_bucket, Key=upload_key(image_id), Body=PHOTO)
        return image_id

    def tell(self, image_id: str) -> None:
        """S3's notification of the image's upload, which has no group: S3 knows nothing about tenants."""
        message = {
            "MessageId": "of-s3",
            "ReceiptHandle": "receipt-1",
            "Body": notification(upload_key(image_id)),
            "Attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795251600123"},
            "MD5OfBody": "",
        }
        assert self.invoke("accept_upload", {"Records": [record(message, queue="upload")]}) == {"batchItemFailures": []}

    def reschedule(self, image_id: str, delay: str) -> None:
        event = http_event("PATCH", f"/images/{image_id}", body=json.dumps({"delay": delay}).encode())
        event["requestContext"]["authorizer"] = {"lambda": CALLER}
        assert self.invoke("reschedule_image", event)["statusCode"] == 200

    def ask(self, path: str, body: Any = None) -> dict[str, Any]:
        """What the API answers about the tenant's webhooks."""
        event = http_event("POST", path, body=b"" if body is None else json.dumps(body).encode())
        event["requestContext"]["authorizer"] = {"lambda": CALLER}
        answer = self.invoke("manage_webhooks", event)
        assert answer["statusCode"] in (201, 202), answer
        document: dict[str, Any] = json.loads(answer["body"])
        return document

    def add_webhook(self) -> str:
        """The path of a webhook where nothing listens."""
        return f"/webhooks/{self.ask('/webhooks', {'url': 'http://127.0.0.1:9/'})['id']}"

    @property
    def images(self) -> ImagesTable:
        return ImagesTable(boto3.client("dynamodb"), self.aws.images_table)

    def failed(self) -> Image:
        """An image that has been given up, and whose dead letter has yet to be placed."""
        before = self.images.get(self.upload())
        assert before is not None
        cause = Cause(error_type="KeyError", message="a bug", stack="")
        now = time.time_ns() // 1_000_000
        return self.images.change(before, give_up(replace(before, attempt=5), now=now, cause=cause))


@pytest.fixture
def post(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    monkeypatch.setenv("ACCESS", "keys")
    with time_machine.travel(START) as clock:
        made = Post(aws, monkeypatch, clock)
        make_api_call = BaseClient._make_api_call  # type: ignore[attr-defined]

        def noted(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
            made.note(operation, parameters)
            return make_api_call(client, operation, parameters)

        monkeypatch.setattr(BaseClient, "_make_api_call", noted)
        yield made


def upload(post: Post) -> None:
    post.upload()


def upload_for_soon(post: Post) -> None:
    post.upload("delay=PT10M")


def upload_for_later(post: Post) -> None:
    post.upload("delay=P2D")


def repeat_an_upload(post: Post) -> None:
    post.upload(**{"idempotency-key": "order-17"})
    post.sent.clear()
    post.upload(**{"idempotency-key": "order-17"})


def accept_an_upload(post: Post) -> None:
    post.tell(post.announce())


def accept_an_upload_for_later(post: Post) -> None:
    post.tell(post.announce(delay="P2D"))


def accept_an_upload_again(post: Post) -> None:
    image_id = post.announce()
    post.tell(image_id)
    post.sent.clear()
    post.tell(image_id)


def remind_of_an_upload(post: Post) -> None:
    post.announce()
    post.clock.shift(901)
    post.invoke("sweep_due_images", {})


def move_to_soon(post: Post) -> None:
    image_id = post.upload("delay=P2D")
    post.sent.clear()
    post.reschedule(image_id, "PT10M")


def move_to_later(post: Post) -> None:
    image_id = post.upload("delay=PT10M")
    post.sent.clear()
    post.reschedule(image_id, "P3D")


def hold_what_has_come_near(post: Post) -> None:
    post.upload("delay=PT20M")
    post.clock.shift(600)
    held = received(post.aws.hold_queue_url)
    post.sent.clear()
    post.invoke("hold_images", held)


def release(post: Post) -> None:
    post.upload("delay=PT2H")
    post.invoke("hold_images", received(post.aws.hold_queue_url))
    (turn,) = executions(post.aws)
    post.clock.move_to(turn["wake_at"])
    post.sent.clear()
    post.invoke("release_images", turn)


def release_from_a_wider_ring(post: Post) -> None:
    post.upload("delay=P2D")
    post.invoke("hold_images", received(post.aws.hold_queue_url))
    (turn,) = executions(post.aws)
    post.clock.move_to(turn["wake_at"])
    post.sent.clear()
    post.invoke("release_images", turn)


def rescue(post: Post) -> None:
    post.upload()
    boto3.client("sqs").purge_queue(QueueUrl=post.aws.fast_queue_url)
    post.clock.shift(61)
    post.sent.clear()
    post.invoke("sweep_due_images", {})


def place(post: Post) -> None:
    post.failed()
    post.clock.shift(1)
    post.sent.clear()
    post.invoke("sweep_due_images", {})


def replay(post: Post) -> None:
    image = post.failed()
    post.sent.clear()
    keys = StoredSecret(lambda: boto3.client("secretsmanager"), post.aws.message_key, clock=lambda: NOW)
    lanes = LaneQueues(boto3.client("sqs"), post.aws.queue_urls, keys_of(keys))
    ports = ReplayDeadLettersPorts(
        audit=trail_of(),
        images=post.images,
        lanes=lanes,
        dead_letters=FakeDeadLetters(),
        clock=lambda: time.time_ns() // 1_000_000,
    )
    replay_image(ports, image.image_id)


def ping(post: Post) -> str:
    path = post.add_webhook()
    post.ask(f"{path}/ping")
    return path.rpartition("/")[2]


def note_an_event(post: Post) -> str:
    path = post.add_webhook()
    post.upload()
    post.sent.clear()
    post.invoke("publish_events", {"Records": written(post.aws.images_table)})
    post.invoke("create_deliveries", received(post.aws.webhooks_queue_url))
    return path.rpartition("/")[2]


def try_a_delivery_again(post: Post) -> str:
    endpoint_id = ping(post)
    pinged = received(post.aws.delivery_queue_url)
    post.sent.clear()
    post.invoke("deliver_event", pinged)
    return endpoint_id


def rescue_a_delivery(post: Post) -> str:
    endpoint_id = ping(post)
    boto3.client("sqs").purge_queue(QueueUrl=post.aws.delivery_queue_url)
    post.clock.shift(301)
    post.sent.clear()
    post.invoke("sweep_due_endpoints", {})
    return endpoint_id


WAYS: dict[Callable[[Post], None], str] = {
    upload: "fast",
    upload_for_soon: "fast",
    upload_for_later: "hold-queue",
    repeat_an_upload: "fast",
    accept_an_upload: "fast",
    accept_an_upload_for_later: "hold-queue",
    accept_an_upload_again: "fast",
    remind_of_an_upload: "upload",
    move_to_soon: "fast",
    move_to_later: "hold-queue",
    hold_what_has_come_near: "fast",
    release: "fast",
    release_from_a_wider_ring: "hold-queue",
    rescue: "fast",
    place: "fast-dead-letters",
    replay: "fast",
}
"""Each way on which a message is sent, and its queue."""


@pytest.mark.guards("queues-tenant-message-group")
@pytest.mark.parametrize(("way", "queue"), WAYS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_message_travels_in_its_tenants_group_and_signed(post: Post, way: Callable[[Post], None], queue: str) -> None:
    way(post)
    assert post.sent == [Sent(queue=queue, group=TENANT, tenant_id=TENANT, is_signed=True)]


@pytest.mark.parametrize("way", [ping, note_an_event, try_a_delivery_again, rescue_a_delivery])
def test_a_message_of_a_delivery_travels_in_its_endpoints_group_and_signed(
    post: Post, way: Callable[[Post], str]
) -> None:
    endpoint_id = way(post)
    assert post.sent == [Sent(queue="delivery", group=endpoint_id, tenant_id=TENANT, is_signed=True)]


def test_an_event_is_published_in_its_tenants_group_and_signed(post: Post) -> None:
    post.upload()
    post.invoke("publish_events", {"Records": written(post.aws.images_table)})
    assert post.published == [Sent(queue="events", group=TENANT, tenant_id=TENANT, is_signed=True)]


def test_these_are_all_places_in_the_code_that_send() -> None:
    """A new sender must be added to the ways above. (The state machine's own message to operators has no tenant.)"""
    sending = {
        (path.stem, name)
        for folder in ("layers/core/darkroom", "functions", "cli/darkroom_cli")
        for path in (ROOT / folder).rglob("*.py")
        for name, node in functions_in(ast.parse(path.read_text()))
        if {"send_message", "send_message_batch", "publish", "publish_batch"}
        & {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    }
    assert sending == {
        ("queues", "LaneQueues.send"),
        ("queues", "SqsHoldQueue.put"),
        ("queues", "SqsUploadQueue.put"),
        ("queues", "SqsFetchQueue.put"),
        ("queues", "SqsEditQueue.put"),  # in its image's group: test_edit_queue.py
        ("queues", "_send_batch"),
        ("dead_letters", "DeadLetterQueues.put"),
        ("dead_letters", "RejectedMessageQueues.put_rejected"),  # what came is of no tenant
        ("events_topic", "SqsUnpublished.put"),  # only people read it
        ("delivery_queue", "SqsDeliveryQueue.send"),
        ("events_topic", "SnsTopic._publish"),
        ("scene", "Scene.send_garbage"),  # a drill's, which must be rejected
    }


def functions_in(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module and the methods of its classes, by their qualified names."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{it.name}", it) for it in node.body if isinstance(it, ast.FunctionDef))
