"""A thousand forged, stale, foreign and replayed messages in every queue: none does what its row does not allow."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.images.image import Image, Status, message_for
from darkroom.domain.kernel.lanes import DELIVERY, EVENTS, HOLD, LANES, LIVE_LANES, UPLOAD
from darkroom.domain.kernel.message import Message, read_message
from darkroom.domain.kernel.signature import Received, VerificationFailure
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.uploads.upload_notification import is_of_s3, read_notification
from darkroom.domain.webhooks import delivery as deliveries
from darkroom.domain.webhooks.delivery import Answer, Delivery, DeliveryMessage, DeliveryStatus, read_delivery_message
from darkroom.operations.kernel.check_message import CheckPorts, check_message
from darkroom.operations.schedules.hold_images import HoldImagesPorts, hold_images
from darkroom.operations.usage.count_usage import CountUsagePorts, count_usage
from darkroom.operations.webhooks.create_deliveries import CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.manage_webhooks import create_webhook, remove_webhook
from tests.support.fakes import FakeDeadLetters, World
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.messages import KEYS, SIGNER, keys_of, received
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.secrets import LONG_AGO, FakeSecret
from tests.support.fakes.stores import FakeHolds, FakeWakeUps
from tests.support.fakes.webhooks import OK, FakeReceiver, Request
from tests.support.fakes.world import WebhooksWorld, event

pytestmark = pytest.mark.promise("forged-messages")

COUNT = 1000
QUEUES = (*LANES, HOLD, UPLOAD)
PHOTO = jpeg(8, 8)

STRANGER = FakeSecret()
STRANGER.replace("somebody else's key" * 4, now=LONG_AGO)


@dataclass
class Siege:
    """A queue, into which anybody may send."""

    queue: str
    chance: random.Random
    dead_letters: FakeDeadLetters = field(
        default_factory=lambda: FakeDeadLetters(messages={queue: [] for queue in (*QUEUES, DELIVERY, EVENTS)})
    )
    messages: int = 0

    @property
    def checking(self) -> CheckPorts:
        return CheckPorts(message_keys=KEYS, rejected_messages=self.dead_letters)

    def signed(
        self, body: Message | str, *, group: str = "default", queue: str | None = None, signer: MessageSigner = SIGNER
    ) -> Received:
        """A message to this queue, unless it is signed for another one or by another stack."""
        self.messages += 1
        message_id = f"message-{self.messages}"
        return received(queue or self.queue, body, group=group, signer=signer, message_id=message_id)

    def forgery(self, genuine: Received, body: str, *others: Received) -> Received:
        """What somebody without the key makes of a genuine message, or one of the others."""
        return self.chance.choice(
            [
                replace(genuine, signature=None),
                replace(genuine, body=body),
                replace(genuine, group=f"{genuine.group}-2"),
                replace(genuine, signature="v1." + "0" * 64 + "." + KEYS.current().version_id),
                replace(genuine, signature=f"{genuine.signature}x"),
                replace(genuine, signature="not a signature"),
                replace(genuine, body="anything", signature=None),
                *others,
            ]
        )

    def sender(self, *queues: str) -> tuple[MessageSigner, str]:
        """Somebody who signs for one of these queues, or another stack for this one."""
        return self.chance.choice([*((SIGNER, queue) for queue in queues), (keys_of(STRANGER), self.queue)])

    def check(
        self, messages: Sequence[Received], verdicts: Sequence[VerificationFailure | None], *, are_ours: bool
    ) -> None:
        """Those that are ours have no dead letter, and each other one has exactly one, which says why."""
        dead_letters = self.dead_letters.messages[self.queue]
        if are_ours:
            assert set(verdicts) == {None}, "they are ours, and the row decides"
            assert dead_letters == []
            return
        assert None not in verdicts
        causes = {
            json.loads(dead_letter.body)["message_id"]: json.loads(dead_letter.explanation or "")["cause"]
            for dead_letter in dead_letters
        }
        assert len(dead_letters) == len(messages)
        assert causes == {message.message_id: cause for message, cause in zip(messages, verdicts, strict=True)}


@dataclass
class Besieged(Siege):
    """A stack with an image at every stage, and what its receivers do with a message."""

    world: World = field(default_factory=World)
    holds: FakeHolds = field(default_factory=FakeHolds)
    wake_ups: FakeWakeUps = field(default_factory=FakeWakeUps)

    def __post_init__(self) -> None:
        tiers = [next(iter(lane.tiers)) for lane in LIVE_LANES.values()]
        self.images = [
            self.world.submit(PHOTO, tenant_id=tenant_id, tier=tier).image
            for tenant_id in ("acme", "umbra")
            for tier in tiers
            for _ in range(4)
        ]
        self.images += [self.world.begin(PHOTO, tenant_id="acme", tier=Tier.PAID).image for _ in range(4)]
        for number, image in enumerate(self.images):
            match number % 4:
                case 1 if image.status is Status.PENDING:
                    self.world.deliver(message_for(image), f"receipt-{number}")  # done
                case 2:
                    self.world.delete(image.image_id, image.tenant_id)

    def message(self) -> Message:
        """What our own code may once have sent for one of the images."""
        image = self.world.row(self.chance.choice(self.images).image_id)
        return message_for(image)

    def receive(self, message: Received) -> VerificationFailure | None:
        """What the receiver of this queue does with the message."""
        if self.queue == HOLD:
            ports = HoldImagesPorts(
                lanes=self.world.lanes,
                holds=self.holds,
                wake_ups=self.wake_ups,
                clock=self.world.clock,
                known_lanes=LANES,
                message_keys=KEYS,
                rejected_messages=self.dead_letters,
            )
            return hold_images(ports, [message], out_of_time=lambda: False).rejected.get(0)
        allowed = is_of_s3 if self.queue == UPLOAD else (lambda body: False)
        mistrust = check_message(self.checking, self.queue, message, may_be_unsigned=allowed)
        if mistrust is None and self.queue == UPLOAD:
            for image_id in read_notification(message.body).image_ids:
                self.world.accept_upload(image_id)
        elif mistrust is None:
            self.world.deliver(read_message(message.body), f"receipt of {message.message_id}")
        return mistrust


# ── What comes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def forged(stack: Besieged) -> Received:
    """Somebody who may send, and has no key, makes up a message that would do something if it were believed."""
    genuine = stack.signed(stack.message())
    altered = read_message(genuine.body).model_copy(update={"run": stack.chance.randrange(1, 9)})
    return stack.forgery(genuine, altered.model_dump_json() + " " * (altered == read_message(genuine.body)))


def foreign(stack: Besieged) -> Received:
    """A message of another queue of this stack, or of another stack."""
    signer, queue = stack.sender(stack.chance.choice([each for each in (*QUEUES, DELIVERY) if each != stack.queue]))
    return stack.signed(stack.message(), queue=queue, signer=signer)


def stale(stack: Besieged) -> Received:
    """A message that our code has sent for an earlier run or schedule, or for what is no longer there."""
    message = stack.message()
    outdated = stack.chance.choice(
        [
            message.model_copy(update={"schedule": message.schedule + 1}),
            message.model_copy(update={"run": message.run + 1}),
            message.model_copy(update={"image_id": "0" * 26}),
        ]
    )
    return stack.signed(outdated)


def replayed(stack: Besieged) -> Received:
    """A genuine message of an image that has ended, once more."""
    over = [image for image in stack.images if stack.world.row(image.image_id).status.is_terminal]
    return stack.signed(message_for(stack.world.row(stack.chance.choice(over).image_id)))


REJECTED = (forged, foreign)


@pytest.mark.guards("signatures-hold-queue", case="forged-hold")
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("kind", [forged, foreign, stale, replayed], ids=lambda kind: kind.__name__)
def test_none_of_a_thousand_does_what_its_row_does_not_allow(kind: Callable[[Besieged], Received], queue: str) -> None:
    stack = Besieged(queue=queue, chance=random.Random(f"{kind.__name__} {queue}"))
    before, sent = dict(stack.world.images.rows), len(stack.world.lanes.sent)
    objects, originals = dict(stack.world.outputs.objects), dict(stack.world.originals.objects)
    messages = [kind(stack) for _ in range(COUNT)]
    mistrusts = [stack.receive(message) for message in messages]
    stack.check(messages, mistrusts, are_ours=kind not in REJECTED)
    if kind in REJECTED:
        assert dict(stack.world.images.rows) == before, "no row is touched"
        assert dict(stack.world.originals.objects) == originals
        assert len(stack.world.lanes.sent) == sent
        assert (stack.holds.objects, stack.wake_ups.wakings) == ({}, {})
    else:
        assert unchanged(before, stack.world.images.rows)
    assert dict(stack.world.outputs.objects) == objects
    assert sum(map(len, stack.dead_letters.messages.values())) == len(stack.dead_letters.messages[queue])


def unchanged(before: dict[str, Image], after: dict[str, Image]) -> bool:
    """Whether every row says the same of its image."""
    return {key: (row.status, row.run, row.attempt, row.variants) for key, row in before.items()} == {
        key: (row.status, row.run, row.attempt, row.variants) for key, row in after.items()
    }


@pytest.mark.parametrize("queue", QUEUES)
def test_among_a_thousand_forged_ones_every_genuine_message_does_its_work(queue: str) -> None:
    stack = Besieged(queue=queue, chance=random.Random(queue))
    waiting = [image for image in stack.images if stack.world.row(image.image_id).status is Status.PENDING]
    for number in range(COUNT):
        stack.receive(forged(stack))
        if number % (COUNT // len(waiting)) == 0 and waiting:
            image = waiting.pop()
            stack.receive(received(image.lane, message_for(image)) if queue == image.lane else forged(stack))
            if queue == image.lane:
                assert stack.world.row(image.image_id).status is Status.DONE


def test_what_was_rejected_is_rejected_again_when_it_is_moved_back() -> None:
    stack = Besieged(queue="slow", chance=random.Random(1))
    first = forged(stack)
    stack.receive(first)
    (dead_letter,) = stack.dead_letters.messages["slow"]
    back = Received(message_id="moved", body=dead_letter.body, group=None, signature=None, sent_at=stack.world.now)
    assert stack.receive(back) is VerificationFailure.MOVED_BACK
    assert json.loads(stack.dead_letters.messages["slow"][1].body) == json.loads(dead_letter.body)


# ── The queue of deliveries ──────────────────────────────────────────────────────────────────────────────────────────


def answers(request: Request) -> Answer:
    """One receiver fails, and so its deliveries wait."""
    return OK if "good" in request.url else Answer(milliseconds=5, status=500, body="no")


@dataclass
class BesiegedWebhooks(Siege):
    """A stack with deliveries at every stage, to endpoints of two tenants, and what their receiver does with a
    message."""

    world: WebhooksWorld = field(default_factory=lambda: WebhooksWorld(receiver=FakeReceiver(answers)))

    def __post_init__(self) -> None:
        manage = self.world.manage()
        endpoints = [
            create_webhook(manage, tenant_id, url=f"https://{host}.example.com/", events=("*",), description=None)[0]
            for tenant_id in ("acme", "umbra")
            for host in ("good", "failing", "good-but-removed")
        ]
        for number in range(4):
            self.world.tell(event(number), event(number + 10, tenant_id="umbra"))
            self.world.run()
        self.rows = all_of(self.world)
        for endpoint in endpoints:
            if "removed" in endpoint.url:
                remove_webhook(manage, endpoint.tenant_id, endpoint.endpoint_id)
        self.world.take()

    def genuine(self, message: DeliveryMessage, *, queue: str = DELIVERY, signer: MessageSigner = SIGNER) -> Received:
        return self.signed(message.model_dump_json(), group=message.endpoint_id, queue=queue, signer=signer)

    def of(self, *statuses: DeliveryStatus) -> DeliveryMessage:
        """What our own code has once sent for a delivery of one of these statuses."""
        return deliveries.message_for(self.chance.choice([row for row in self.rows if row.status in statuses]))

    def receive(self, message: Received) -> VerificationFailure | None:
        """What the receiver of this queue does with the message."""
        mistrust = check_message(self.checking, DELIVERY, message)
        if mistrust is None:
            self.world.deliver(read_delivery_message(message.body))
        return mistrust


def forged_delivery(stack: BesiegedWebhooks) -> Received:
    """Somebody who may send, and has no key, would have a delivery made that is due, or another's."""
    genuine = stack.genuine(stack.of(*DeliveryStatus))
    return stack.forgery(genuine, stack.of(*DeliveryStatus).model_dump_json() + " ")


def foreign_delivery(stack: BesiegedWebhooks) -> Received:
    """A message to another queue of this stack, or of another stack."""
    signer, queue = stack.sender(*QUEUES)
    return stack.genuine(stack.of(*DeliveryStatus), queue=queue, signer=signer)


def stale_delivery(stack: BesiegedWebhooks) -> Received:
    """A message for an attempt whose time has not come, or for what is no longer there, or never was."""
    message = stack.of(DeliveryStatus.WAITING)
    changes = stack.chance.choice(
        [{}, {"delivery_id": "0" * 14}, {"endpoint_id": "we_0000000000000000"}, {"tenant_id": "somebody"}]
    )
    return stack.genuine(message.model_copy(update=changes))


def replayed_delivery(stack: BesiegedWebhooks) -> Received:
    """A genuine message of a delivery that has ended, once more."""
    return stack.genuine(stack.of(DeliveryStatus.DELIVERED))


@pytest.mark.parametrize("kind", [forged_delivery, foreign_delivery, stale_delivery, replayed_delivery])
def test_none_of_a_thousand_has_a_webhook_sent(kind: Callable[[BesiegedWebhooks], Received]) -> None:
    stack = BesiegedWebhooks(queue=DELIVERY, chance=random.Random(kind.__name__))
    endpoints, rows = dict(stack.world.endpoints.rows), all_of(stack.world)
    sent, requests = list(stack.world.delivery_queue.sent), len(stack.world.receiver.requests)
    messages = [kind(stack) for _ in range(COUNT)]
    mistrusts = [stack.receive(message) for message in messages]
    assert len(stack.world.receiver.requests) == requests
    assert all_of(stack.world) == rows
    is_rejected = kind in (forged_delivery, foreign_delivery)
    stack.check(messages, mistrusts, are_ours=not is_rejected)
    if is_rejected:
        assert dict(stack.world.endpoints.rows) == endpoints, "no row is touched"
        assert stack.world.delivery_queue.sent == sent


def all_of(world: WebhooksWorld) -> list[Delivery]:
    return [row for rows in world.deliveries.rows.values() for row in rows.values()]


def test_among_a_thousand_forged_ones_every_genuine_message_has_its_webhook_sent() -> None:
    stack = BesiegedWebhooks(queue=DELIVERY, chance=random.Random(DELIVERY))
    published = [event(number) for number in range(100, 110)]
    for number in range(COUNT):
        stack.receive(forged_delivery(stack))
        if number % (COUNT // len(published)) == 0:
            stack.world.tell(published[number * len(published) // COUNT])
            for message in stack.world.take():
                stack.receive(stack.genuine(message))
    delivered = [row.event_id for row in all_of(stack.world) if row.status is DeliveryStatus.DELIVERED]
    assert {published_event.event_id for published_event in published} <= set(delivered)


# ── The queues of consumers ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class BesiegedConsumers(Siege):
    """Usage that was counted, and webhooks that were sent, of some events; and what the consumers do with a message."""

    consumer: str = "usage"
    world: WebhooksWorld = field(default_factory=lambda: WebhooksWorld(receiver=FakeReceiver(answers)))
    usage: FakeUsage = field(default_factory=FakeUsage)

    def __post_init__(self) -> None:
        for tenant_id in ("acme", "umbra"):
            url = "https://good.example.com/"
            create_webhook(self.world.manage(), tenant_id, url=url, events=("*",), description=None)
        self.published = [
            event_of(number, kind) for number in range(8) for kind in (EventType.ACCEPTED, EventType.DONE)
        ]
        for published in self.published:
            self.receive(self.genuine(published))

    def genuine(self, published: PublishedEvent, *, queue: str = EVENTS, signer: MessageSigner = SIGNER) -> Received:
        body = body_of(published, source="/darkroom/test")
        return self.signed(body, group=published.tenant_id, queue=queue, signer=signer)

    def receive(self, message: Received) -> VerificationFailure | None:
        """What this consumer does with the message."""
        mistrust = check_message(self.checking, EVENTS, message)
        if mistrust is None and self.consumer == "usage":
            assert not count_usage(CountUsagePorts(usage=self.usage, clock=self.world.clock), [message.body]).failures
        elif mistrust is None:
            assert not create_deliveries(self.world.ports(CreateDeliveriesPorts), [message.body]).failures
            self.world.run()
        return mistrust


def event_of(number: int, kind: EventType) -> PublishedEvent:
    """An event of one of two tenants' images."""
    tenant_id, image_id = ("acme", "umbra")[number % 2], f"{number:026d}"
    details: dict[str, object] = {"bytes": 500} if kind is EventType.ACCEPTED else {"variants": []}
    sequence = 1 if kind is EventType.ACCEPTED else 3
    data = {"id": image_id, "tenant_id": tenant_id, **details}
    return event(number, kind, tenant_id=tenant_id, subject=image_id, sequence=sequence, data=data)


def forged_event(stack: BesiegedConsumers) -> Received:
    """Somebody who may send, and has no key, tells of an image that there never was, or of more than there is."""
    invented = stack.genuine(event_of(stack.chance.randrange(100, 10**6), EventType.ACCEPTED))
    genuine = stack.genuine(stack.chance.choice(stack.published))
    return stack.forgery(
        invented,
        genuine.body,
        replace(invented, signature=genuine.signature),
        replace(genuine, body=invented.body),
    )


def foreign_event(stack: BesiegedConsumers) -> Received:
    """What was signed for another queue of this stack, or by another stack."""
    signer, queue = stack.sender(*QUEUES, DELIVERY)
    return stack.genuine(event_of(stack.chance.randrange(100, 10**6), EventType.ACCEPTED), queue=queue, signer=signer)


def stale_event(stack: BesiegedConsumers) -> Received:
    """What was told before, and has been followed by another event of its image."""
    return stack.genuine(
        stack.chance.choice([published for published in stack.published if published.type is EventType.ACCEPTED])
    )


def replayed_event(stack: BesiegedConsumers) -> Received:
    """The latest of an image, once more."""
    return stack.genuine(
        stack.chance.choice([published for published in stack.published if published.type is EventType.DONE])
    )


@pytest.mark.parametrize("consumer", ["usage", "webhooks"])
@pytest.mark.parametrize("kind", [forged_event, foreign_event, stale_event, replayed_event])
def test_none_of_a_thousand_is_counted_or_sent(kind: Callable[[BesiegedConsumers], Received], consumer: str) -> None:
    stack = BesiegedConsumers(queue=EVENTS, consumer=consumer, chance=random.Random(f"{kind.__name__} {consumer}"))
    sums, rows, requests = dict(stack.usage.sums), all_of(stack.world), len(stack.world.receiver.requests)
    assert sums if consumer == "usage" else rows and requests
    messages = [kind(stack) for _ in range(COUNT)]
    mistrusts = [stack.receive(message) for message in messages]
    assert (stack.usage.sums, all_of(stack.world), len(stack.world.receiver.requests)) == (sums, rows, requests)
    stack.check(messages, mistrusts, are_ours=kind not in (forged_event, foreign_event))
