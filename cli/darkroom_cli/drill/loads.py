"""What a drill does besides throwing switches: uploads, garbage, endpoints; and how it cleans up afterwards."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from darkroom.domain.images.image import Status
from darkroom.domain.images.load_shedding import drain_per_second, high_water_mark
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.lanes import SLOW
from darkroom.domain.kernel.tenants import Tier
from darkroom.operations.dead_letters.archive_dead_letters import ARCHIVE_LIMIT
from darkroom_cli.drill.scene import MARK
from darkroom_client.client import ApiError
from darkroom_client.webhooks import WebhooksClient

if TYPE_CHECKING:
    from darkroom_cli.drill.scene import Scene

TOO_MANY_REQUESTS = 429

_CLOSED_PORT = 9


class Load(Protocol):
    """What happens on the stack during a drill."""

    @property
    def words(self) -> str:
        """What it does, for people."""
        ...

    def prepare(self, scene: Scene) -> None:
        """Before the switches are thrown. Raises ApiError if the drill cannot work here now."""
        ...

    def begin(self, scene: Scene) -> None:
        """Once they are."""
        ...

    def each_minute(self, scene: Scene) -> None:
        """Until the alarms are on."""
        ...

    def recover(self, scene: Scene) -> None:
        """After the switches were put back: what an operator would do."""
        ...


@dataclass(frozen=True)
class Nothing:
    """Nothing but the switches; the others begin with it."""

    @property
    def words(self) -> str:
        """None."""
        return "none"

    def prepare(self, scene: Scene) -> None:
        """Nothing."""

    def begin(self, scene: Scene) -> None:
        """Nothing."""

    def each_minute(self, scene: Scene) -> None:
        """Nothing."""

    def recover(self, scene: Scene) -> None:
        """Waits for the images."""
        scene.await_done()


@dataclass(frozen=True)
class TenantUploads(Nothing):
    """So many uploads by a tenant of that tier, once everything is switched."""

    count: int
    tier: Tier

    @property
    def words(self) -> str:
        """How many, by whom."""
        return f"{self.count} uploads by a tenant of the tier {self.tier}"

    def begin(self, scene: Scene) -> None:
        """Uploads them."""
        scene.upload(self.count, tier=self.tier)


@dataclass(frozen=True)
class UploadsThatGoWell(TenantUploads):
    """Uploads that nothing keeps from being done."""

    def begin(self, scene: Scene) -> None:
        """Uploads them, and waits until they are."""
        super().begin(scene)
        scene.await_done()


@dataclass(frozen=True)
class UploadsEachMinute(Nothing):
    """So many uploads at the beginning and in each minute, whatever the API answers."""

    count: int
    tier: Tier

    @property
    def words(self) -> str:
        """How many, by whom."""
        return f"{self.count} uploads per minute by a tenant of the tier {self.tier}"

    def begin(self, scene: Scene) -> None:
        """Uploads the first."""
        scene.upload(self.count, tier=self.tier)

    each_minute = begin


@dataclass(frozen=True)
class UploadsToReplay(TenantUploads):
    """Uploads whose images are given up; they are replayed afterwards, as the runbook says."""

    @property
    def words(self) -> str:
        """How many, by whom, and what becomes of them."""
        return f"{super().words}, replayed with `dlq replay` afterwards"

    def recover(self, scene: Scene) -> None:
        """Replays them until they are done: one that is given up only now has no dead letter before the next sweep."""

        def replay() -> None:
            for tenant in sorted({row.tenant_id for row in scene.unfinished() if row.status is Status.FAILED}):
                status, said = scene.darkroom("dlq", "replay", "--tenant", tenant, "--yes")
                if status:
                    raise ApiError(f"`dlq replay` failed:\n{said}")

        scene.await_done(each_minute=replay)


@dataclass(frozen=True)
class AnnouncedUploads(Nothing):
    """Uploads that go directly to S3, as those of large files do."""

    count: int
    tier: Tier

    @property
    def words(self) -> str:
        """How many, by whom."""
        return f"{self.count} uploads directly to S3 by a tenant of the tier {self.tier}"

    def begin(self, scene: Scene) -> None:
        """Announces and sends them."""
        scene.announce_and_send(self.count, tier=self.tier)


@dataclass(frozen=True)
class Fetches(Nothing):
    """Images to be fetched from a URL at which there is none, deleted afterwards."""

    count: int
    tier: Tier

    @property
    def words(self) -> str:
        """How many, by whom."""
        return f"{self.count} images by URL by a tenant of the tier {self.tier}"

    def begin(self, scene: Scene) -> None:
        """Asks for them."""
        scene.have_fetched(_nobodys_url(scene), self.count, tier=self.tier)

    def recover(self, scene: Scene) -> None:
        """Deletes them."""
        scene.delete_waiting()


@dataclass(frozen=True)
class Scheduled(Nothing):
    """Uploads for a time far ahead, deleted afterwards."""

    count: int
    tier: Tier
    delay: str

    @property
    def words(self) -> str:
        """How many, when, by whom."""
        return f"{self.count} uploads with delay {self.delay} by a tenant of the tier {self.tier}"

    def begin(self, scene: Scene) -> None:
        """Uploads them."""
        scene.upload(self.count, tier=self.tier, delay=self.delay)

    def recover(self, scene: Scene) -> None:
        """Deletes them."""
        scene.delete_waiting()


@dataclass(frozen=True)
class Garbage(Nothing):
    """A message that no Darkroom wrote, in each of these queues; it ends as a dead letter, which is removed
    afterwards."""

    queues: Sequence[str]

    @property
    def words(self) -> str:
        """Where."""
        return f"a message that is not ours in {' and '.join(self.queues)}"

    def begin(self, scene: Scene) -> None:
        """Sends them, and waits until their dead letters are there."""
        for queue in self.queues:
            scene.send_garbage(queue)
        for queue in self.queues:
            scene.await_that(lambda queue=queue: scene.depth(_dead_letters_of(queue)) > 0)  # type: ignore[misc]

    def recover(self, scene: Scene) -> None:
        """Removes the dead letters."""
        for queue in self.queues:
            scene.remove_garbage(_dead_letters_of(queue))


def _dead_letters_of(queue: str) -> str:
    return f"{queue.removesuffix('Queue')}DeadLetters"


@dataclass(frozen=True)
class OldGarbage(Garbage):
    """A dead letter that grows old in one leap of the clock, and is measured by the archiver each six hours. The leap
    ends shortly before such a period does: its greatest age counts until then."""

    days: int

    @property
    def words(self) -> str:
        """Where, and how old."""
        return f"{super().words}, whose dead letter becomes {self.days} days old"

    def begin(self, scene: Scene) -> None:
        """Sends it, and goes there."""
        super().begin(scene)
        now = scene.stack.clock() // 1000
        old_at = now + self.days * _DAY_SECONDS + _BEFORE_THE_END_SECONDS
        scene.clock.pass_seconds(-(-old_at // _PERIOD_SECONDS) * _PERIOD_SECONDS - _BEFORE_THE_END_SECONDS - now)

    def recover(self, scene: Scene) -> None:
        """Removes it, and lets the archiver see that in its next period."""
        super().recover(scene)
        left = _PERIOD_SECONDS - scene.stack.clock() // 1000 % _PERIOD_SECONDS
        if left <= _BEFORE_THE_END_SECONDS:
            for _ in range(2):
                scene.clock.pass_seconds(left // 2 + 1)
        stack = scene.stack
        stack.client("lambda").invoke(FunctionName=stack.physical_id("ArchiveDeadLettersFunction"), Payload=b"{}")


_DAY_SECONDS = 86_400
_PERIOD_SECONDS = 6 * 3600
_BEFORE_THE_END_SECONDS = 300


@dataclass(frozen=True)
class DamagedBatch(Nothing):
    """A batch of scheduled images that cannot be read, with its own execution; it has no images."""

    @property
    def words(self) -> str:
        """What."""
        return "a damaged batch of no images, which is due"

    def begin(self, scene: Scene) -> None:
        """Stores it, and begins its execution."""
        stack = scene.stack
        wake_at = stack.clock() // 60_000 * 60_000
        damaged = gzip.compress(json.dumps({MARK: scene.stack.clock()}).encode(), mtime=0)
        digest = hashlib.sha256(damaged).hexdigest()[:40]
        key = f"holds/{str(rfc3339(wake_at)).replace(':', '-')}/{digest}.json.gz"
        stack.client("s3").put_object(Bucket=stack.physical_id("HoldsBucket"), Key=key, Body=damaged)
        stack.client("stepfunctions").start_execution(
            stateMachineArn=stack.physical_id("HoldBatchStateMachine"),
            name=f"hold-{digest}",
            input=json.dumps({"key": key, "position": 0, "begins_at": None, "wake_at": rfc3339(wake_at)}),
        )

    def recover(self, scene: Scene) -> None:
        """Removes the object and the dead letter, which names it."""
        stack = scene.stack
        bucket, s3 = stack.physical_id("HoldsBucket"), stack.client("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="holds/"):
            for item in page.get("Contents", ()):
                if item["Size"] < len(MARK) * 10:
                    body = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
                    if MARK.encode() in _uncompressed(body):
                        s3.delete_object(Bucket=bucket, Key=item["Key"])
        _remove_batch_dead_letters(scene)


def _uncompressed(body: bytes) -> bytes:
    try:
        return gzip.decompress(body)
    except OSError:
        return b""


def _remove_batch_dead_letters(scene: Scene) -> None:
    """Removes the dead letters of batches whose objects are gone."""
    stack, dead_letters = scene.stack, scene.stack.dead_letters
    taken = dead_letters.take("hold", ARCHIVE_LIMIT)
    bucket, s3 = stack.physical_id("HoldsBucket"), stack.client("s3")
    left = []
    for dead_letter in taken.dead_letters:
        key = _batch_in(dead_letter.body)
        if key is not None and not s3.list_objects_v2(Bucket=bucket, Prefix=key).get("KeyCount"):
            dead_letters.remove(dead_letter)
        else:
            left.append(dead_letter)
    dead_letters.give_back(tuple(left))


def _batch_in(body: str) -> str | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document.get("batch") if isinstance(document, dict) else None


@dataclass(frozen=True)
class UndeliverableEvents(Nothing):
    """An endpoint at which nobody listens, and so many uploads whose events go there."""

    count: int
    tier: Tier

    @property
    def words(self) -> str:
        """How many, by whom."""
        return f"a webhook to a closed port, and {self.count} uploads by a tenant of the tier {self.tier}"

    def prepare(self, scene: Scene) -> None:
        """Registers the endpoint."""
        with scene.api(self.tier) as api:
            WebhooksClient(api).create(_nobodys_url(scene), events=None, description=MARK)

    def begin(self, scene: Scene) -> None:
        """Uploads, and waits until the images are done, of which the events tell."""
        scene.upload(self.count, tier=self.tier)
        scene.await_done()

    def recover(self, scene: Scene) -> None:
        """Removes the endpoint."""
        remove_endpoints(scene, self.tier)


def _nobodys_url(scene: Scene) -> str:
    """A URL that is allowed, and at which there is nothing: on AWS, where only public addresses are, the API itself,
    which has no such route."""
    if scene.stack.is_local:
        return f"http://127.0.0.1:{_CLOSED_PORT}/{MARK}"
    return f"https://{urlsplit(scene.api_url).netloc}/{MARK}"


def remove_endpoints(scene: Scene, tier: Tier) -> None:
    """Removes the drill's endpoints, those of earlier drills too."""
    with scene.api(tier) as api:
        webhooks = WebhooksClient(api)
        for webhook in webhooks.all()["webhooks"]:
            if webhook.get("description") == MARK:
                webhooks.delete(webhook["id"])


@dataclass(frozen=True)
class Flood(Nothing):
    """Uploads until a tenant of each of these tiers is turned away, the first tier first. `workers` are those that the
    API believes the lane has."""

    tiers: Sequence[Tier]
    workers: int
    most: int

    @property
    def words(self) -> str:
        """By whom."""
        return f"uploads by tenants of the tiers {' and '.join(self.tiers)} until each is turned away"

    def prepare(self, scene: Scene) -> None:
        """Calculates whether so many uploads suffice."""
        from darkroom.aws.images.throughput_table import ThroughputTable  # noqa: PLC0415

        stack = scene.stack
        table = ThroughputTable(stack.client("dynamodb"), stack.physical_id("ThroughputTable"))
        lane = SLOW.__class__(**{**SLOW.__dict__, "concurrency": self.workers})
        needed = high_water_mark(lane, drain_per_second(lane, table.latest(SLOW.name, stack.clock())))
        if needed * max(tier.backlog_share for tier in self.tiers) > self.most:
            raise ApiError(
                f"The slow lane has been so fast within the last day that only {needed:,.0f} waiting images would fill "
                f"it, and this drill uploads {self.most:,} at most. Start it on a stack that has done little: "
                "`./darkroom local down`, then `make run`."
            )

    def begin(self, scene: Scene) -> None:
        """Uploads."""
        for tier in self.tiers:
            for _ in range(self.most // _PORTION):
                if scene.upload(_PORTION, tier=tier)[TOO_MANY_REQUESTS]:
                    break


_PORTION = 16
