"""A thousand forged, stale, foreign and replayed messages in every queue: none does what its row does not allow."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from darkroom.domain.image import Image, Status, message_for
from darkroom.domain.lanes import HOLD, LANES, UPLOAD
from darkroom.domain.message import Message, read_message
from darkroom.domain.signature import Mistrust, Received
from darkroom.domain.tenants import Tier
from darkroom.domain.upload_notification import is_of_s3, read_notification
from darkroom.operations.check_message import CheckPorts, check_message
from darkroom.operations.hold_images import Ports as HoldPorts
from darkroom.operations.hold_images import hold_images
from proof.fakes import FakeDeadLetters, World
from proof.fakes.messages import KEYS, SIGNER, keys_of, received
from proof.fakes.pictures import jpeg
from proof.fakes.secrets import LONG_AGO, FakeSecret
from proof.fakes.stores import FakeHolds, FakeWakeUps

COUNT = 1000
QUEUES = (*LANES, HOLD, UPLOAD)
PHOTO = jpeg(8, 8)

STRANGER = FakeSecret()
STRANGER.replace("somebody else's key" * 4, now=LONG_AGO)


@dataclass
class Besieged:
    """A stack with an image at every stage, and what its receivers do with a message."""

    queue: str
    chance: random.Random
    world: World = field(default_factory=World)
    letters: FakeDeadLetters = field(default_factory=lambda: FakeDeadLetters(lying={queue: [] for queue in QUEUES}))
    holds: FakeHolds = field(default_factory=FakeHolds)
    wake_ups: FakeWakeUps = field(default_factory=FakeWakeUps)
    deliveries: int = 0

    def __post_init__(self) -> None:
        tiers = [next(iter(lane.tiers)) for lane in LANES.values()]
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

    @property
    def checking(self) -> CheckPorts:
        return CheckPorts(message_keys=KEYS, rejected_messages=self.letters)

    def message(self) -> Message:
        """What our own code may once have sent for one of the images."""
        image = self.world.row(self.chance.choice(self.images).image_id)
        return message_for(image)

    def genuine(self, message: Message) -> Received:
        self.deliveries += 1
        return received(self.queue, message, message_id=f"message-{self.deliveries}")

    def receive(self, message: Received) -> Mistrust | None:
        """What the receiver of this queue does with the message."""
        if self.queue == HOLD:
            ports = HoldPorts(
                lanes=self.world.lanes,
                holds=self.holds,
                wake_ups=self.wake_ups,
                clock=self.world.clock,
                known_lanes=LANES,
                message_keys=KEYS,
                rejected_messages=self.letters,
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
    genuine = stack.genuine(stack.message())
    altered = read_message(genuine.body).model_copy(update={"run": stack.chance.randrange(1, 9)})
    return stack.chance.choice(
        [
            replace(genuine, signature=None),
            replace(genuine, body=altered.model_dump_json() + " " * (altered == read_message(genuine.body))),
            replace(genuine, group=f"{genuine.group}-2"),
            replace(genuine, signature="v1." + "0" * 64 + "." + KEYS.current().version_id),
            replace(genuine, signature=f"{genuine.signature}x"),
            replace(genuine, signature="not a signature"),
            replace(genuine, body="anything", signature=None),
        ]
    )


def foreign(stack: Besieged) -> Received:
    """A message of another queue of this stack, or of another stack."""
    message = stack.message()
    other = stack.chance.choice([queue for queue in QUEUES if queue != stack.queue])
    stack.deliveries += 1
    message_id = f"message-{stack.deliveries}"
    signer, queue = stack.chance.choice([(SIGNER, other), (keys_of(STRANGER), stack.queue)])
    return received(queue, message, signer=signer, message_id=message_id)


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
    return stack.genuine(outdated)


def replayed(stack: Besieged) -> Received:
    """A genuine message of an image that has ended, once more."""
    over = [image for image in stack.images if stack.world.row(image.image_id).status.is_terminal]
    return stack.genuine(message_for(stack.world.row(stack.chance.choice(over).image_id)))


REJECTED = (forged, foreign)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("kind", [forged, foreign, stale, replayed], ids=lambda kind: kind.__name__)
def test_none_of_a_thousand_does_what_its_row_does_not_allow(kind: Callable[[Besieged], Received], queue: str) -> None:
    stack = Besieged(queue=queue, chance=random.Random(f"{kind.__name__} {queue}"))
    before, sent = dict(stack.world.images.rows), len(stack.world.lanes.sent)
    objects, originals = dict(stack.world.outputs.objects), dict(stack.world.originals.objects)
    messages = [kind(stack) for _ in range(COUNT)]
    mistrusts = [stack.receive(message) for message in messages]
    if kind in REJECTED:
        assert None not in mistrusts
        assert dict(stack.world.images.rows) == before, "no row is touched"
        assert dict(stack.world.originals.objects) == originals
        assert len(stack.world.lanes.sent) == sent
        assert (stack.holds.objects, stack.wake_ups.wakings) == ({}, {})
        told = {json.loads(letter.body)["message_id"]: letter for letter in stack.letters.lying[queue]}
        assert told.keys() == {message.message_id for message in messages}, "each has exactly one dead letter"
        assert len(stack.letters.lying[queue]) == COUNT
        reasons = [json.loads(told[message.message_id].explanation or "")["cause"] for message in messages]
        assert reasons == mistrusts
    else:
        assert set(mistrusts) == {None}, "they are ours, and the row decides"
        assert stack.letters.lying[queue] == []
        assert unchanged(before, stack.world.images.rows)
    assert dict(stack.world.outputs.objects) == objects
    assert sum(map(len, stack.letters.lying.values())) == len(stack.letters.lying[queue])


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
    (letter,) = stack.letters.lying["slow"]
    back = Received(message_id="moved", body=letter.body, group=None, signature=None, sent_at=stack.world.now)
    assert stack.receive(back) is Mistrust.MOVED_BACK
    assert json.loads(stack.letters.lying["slow"][1].body) == json.loads(letter.body)
