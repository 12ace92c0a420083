"""A whole Darkroom in memory: the real operations over the fakes, with a clock that only tests move."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, cast

from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.images.image import Image
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.order import order_of
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls
from darkroom.domain.kernel.lanes import LANES, Lane
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.tenants import NO_QUOTA, Tier
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.webhooks.delivery import Delivery, DeliveryMessage
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.http.imports.fetches import read_fetch
from darkroom.http.uploads.announcements import read_announcement
from darkroom.operations.images.check_order import Accepted
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from darkroom.operations.images.estimate import Estimator
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.submit_image import PhotoUpload, SubmitImagePorts, submit_image
from darkroom.operations.images.transcode_image import Outcome, ReceivedMessage, TranscodeImagePorts, transcode_image
from darkroom.operations.imports.begin_fetch import BeginFetchPorts, Wanted, begin_fetch
from darkroom.operations.imports.fetch_original import Fetching, FetchOriginalPorts, fetch_original
from darkroom.operations.sweeping.measure_lanes import MeasureLanesPorts, Measures, measure_lanes
from darkroom.operations.sweeping.sweep_due_images import Sweep, SweepDueImagesPorts, sweep_due_images
from darkroom.operations.tenants.quota_keeper import QuotaKeeper
from darkroom.operations.uploads.accept_upload import Acceptance, AcceptUploadPorts, accept_upload
from darkroom.operations.uploads.begin_upload import Announced, BeginUploadPorts, Begun, begin_upload
from darkroom.operations.webhooks import manage_webhooks
from darkroom.operations.webhooks.blank_deliveries import blank_deliveries
from darkroom.operations.webhooks.create_deliveries import Created, CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.deliver_event import Delivered, DeliverEventPorts, deliver_event
from darkroom.operations.webhooks.find_recipient import has_recipient
from darkroom.operations.webhooks.sweep_due_endpoints import EndpointsSweep, SweepDueEndpointsPorts, sweep_due_endpoints
from darkroom.ports.images import HasTurn, JoinBatch, has_turn_at_once, join_none
from tests.support.fakes.at_once import one_after_another
from tests.support.fakes.audit import audited_action_of, trail_of
from tests.support.fakes.batch_rows import FakeBatches
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.load_shedding import FakeDepths, FakeOutcomes, FakeThroughput
from tests.support.fakes.pauses import FakePauses
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.stores import (
    FakeDeadLetters,
    FakeEdge,
    FakeFetchQueue,
    FakeHoldQueue,
    FakeImages,
    FakeLanes,
    FakeOnce,
    FakeOriginals,
    FakeOutputs,
    FakeRemoteImages,
    FakeReservations,
    FakeUploadQueue,
    FakeUploads,
)
from tests.support.fakes.tenants import FakeTenants, FakeUploadTokenUses
from tests.support.fakes.webhooks import FakeDeliveries, FakeDeliveryQueue, FakeEndpoints, FakeReceiver
from tests.support.virtual.virtual_time import VirtualTime

VISIBILITY_SECONDS = 360
ORDER = ("preset", "variants", "recipe", "notify", "on_duplicate", "timetable", "annotations", "visibility", "batch")
TIMEOUT_SECONDS = 60


@cache
def _names_of(kind: Any) -> Sequence[str]:
    return [each.name for each in fields(kind)]


@dataclass
class _Stores:
    """What both worlds have: stores that a test may replace, and a clock in milliseconds."""

    images: Any = field(default_factory=FakeImages)
    endpoints: Any = field(default_factory=FakeEndpoints)
    deliveries: Any = field(default_factory=FakeDeliveries)
    check_url: Callable[[str], None] = lambda _: None
    now: int = 1_795_251_600_000

    def clock(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def ports[P](self, kind: type[P], **others: Any) -> P:
        """The ports of an operation: each is the attribute of the same name, unless it is one of `others`."""
        return kind(
            **{name: getattr(self, name) for name in _names_of(cast(Any, kind)) if name not in others}, **others
        )


@dataclass
class World(_Stores):
    """The operations of images. With a `time`, that is its clock, and what is done at once passes in it."""

    uploads: Any = field(default_factory=FakeUploads)
    originals: Any = field(default_factory=FakeOriginals)
    outputs: Any = field(default_factory=FakeOutputs)
    lanes: Any = field(default_factory=FakeLanes)
    hold_queue: Any = field(default_factory=FakeHoldQueue)
    upload_queue: Any = field(default_factory=FakeUploadQueue)
    fetch_queue: Any = field(default_factory=FakeFetchQueue)
    edit_queue: Any = None
    fetches: bool = True
    join_batch: JoinBatch = join_none
    has_turn: HasTurn = has_turn_at_once
    remote_images: Any = field(default_factory=FakeRemoteImages)
    bucket_images: Any = field(default_factory=FakeRemoteImages)
    tenants: Any = field(default_factory=FakeTenants)
    reservations: Any = field(default_factory=FakeReservations)
    dead_letters: Any = field(default_factory=FakeDeadLetters)
    once: Any = field(default_factory=FakeOnce)
    depths: Any = field(default_factory=FakeDepths)
    throughput: Any = field(default_factory=FakeThroughput)
    outcome_counts: Any = field(default_factory=FakeOutcomes)
    sums: Any = field(default_factory=FakeUsage)
    upload_token_uses: Any = field(default_factory=FakeUploadTokenUses)
    pauses: Any = field(default_factory=FakePauses)
    batches: Any = field(default_factory=FakeBatches)
    stale_edge: Any = field(default_factory=FakeEdge)
    url_signer: Any = None
    edge: EdgeUrls = NO_EDGE
    delivers: bool = False
    audit: Any = field(default_factory=trail_of)
    limits: Limits = field(default_factory=Limits)
    service: Mapping[str, Lane] = field(default_factory=lambda: LANES)
    require_healthy: Callable[[], None] = lambda: None
    jitter: Callable[[], float] = lambda: 0.5
    visibility_seconds: int = VISIBILITY_SECONDS
    timeout_seconds: int = TIMEOUT_SECONDS
    requests: int = 0
    time: VirtualTime | None = None

    def __post_init__(self) -> None:
        self.load_shedder = LoadShedder(
            depths=self.depths,
            throughput=self.throughput,
            clock=self.clock,
            service=self.service,
            pauses=self.pauses,
        )
        self.quotas = QuotaKeeper(sums=self.sums, clock=self.clock)
        self.estimator = Estimator(
            depths=self.depths,
            throughput=self.throughput,
            clock=self.clock,
            service=self.service,
            pauses=self.pauses,
        )

    @property
    def memory(self) -> Any:
        """What is remembered of finished work."""
        return self.once

    @property
    def cleanups(self) -> Any:
        """What the webhooks have the sweeper do for a deleted image."""
        return (lambda image_id: blank_deliveries(self.deliveries, image_id, now=self.now),)

    def has_recipient(self, tenant_id: str, endpoint_id: str) -> bool:
        return has_recipient(self.endpoints, tenant_id, endpoint_id)

    @property
    def audited(self) -> Any:
        """An operator's action, in the audit log."""
        return audited_action_of(self.audit)

    def clock(self) -> int:
        return self.now if self.time is None else self.time.now()

    def at_once(self, works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """One after another and the last first: threads have no order."""
        return [work() for work in reversed(works)][::-1] if self.time is None else self.time.at_once(works)

    def randomness(self, size: int) -> bytes:
        return self.requests.to_bytes(size)

    def submit(self, body: bytes, **upload: Any) -> Accepted:
        self.requests += 1
        return submit_image(
            self.ports(SubmitImagePorts, input_formats=self.limits.input_formats),
            PhotoUpload(
                body=body,
                order=order_of(**{name: upload.pop(name) for name in ORDER if name in upload}),
                tenant_id=upload.pop("tenant_id", "default"),
                correlation_id=f"request-{self.requests}",
                visibility=upload.pop("usual", Visibility.PRIVATE),
                **upload,
            ),
        )

    def begin(self, body: bytes, **announced: Any) -> Begun:
        self.requests += 1
        key, tenant_id = announced.pop("idempotency_key", None), announced.pop("tenant_id", "default")
        tier, quota = announced.pop("tier", Tier.FREE), announced.pop("quota", NO_QUOTA)
        token = announced.pop("upload_token", None)
        written = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **announced}
        return begin_upload(
            self.ports(BeginUploadPorts, max_bytes=self.limits.max_bytes),
            Announced(
                announcement=read_announcement(json.dumps(written).encode(), token),
                tenant_id=tenant_id,
                tier=tier,
                quota=quota,
                correlation_id=f"request-{self.requests}",
                idempotency_key=key,
                upload_token=token,
            ),
        )

    def upload(self, begun: Begun, body: bytes) -> None:
        """Sends a file with the form of its announcement."""
        assert begun.form is not None
        self.uploads.upload(begun.form, body)

    def accept_upload(self, image_id: str) -> Acceptance:
        return accept_upload(self.ports(AcceptUploadPorts, input_formats=self.limits.input_formats), image_id)

    def ask(self, url: str, **written: Any) -> Accepted:
        """A request with a URL instead of a photo."""
        self.requests += 1
        key, tenant_id = written.pop("idempotency_key", None), written.pop("tenant_id", "default")
        tier, quota = written.pop("tier", Tier.FREE), written.pop("quota", NO_QUOTA)
        return begin_fetch(
            self.ports(BeginFetchPorts, max_bytes=self.limits.max_bytes),
            Wanted(
                fetch=read_fetch(json.dumps({"url": url, **written}).encode()),
                tenant_id=tenant_id,
                tier=tier,
                quota=quota,
                correlation_id=f"request-{self.requests}",
                idempotency_key=key,
            ),
        )

    def fetch(self, message: Message, receipt: str = "receipt-1") -> Fetching:
        return fetch_original(
            self.ports(FetchOriginalPorts, input_formats=self.limits.input_formats, max_bytes=self.limits.max_bytes),
            message,
            claimed_by=receipt,
            request_id=f"request of {receipt}",
        )

    def deliver(
        self,
        message: Message,
        receipt: str = "receipt-1",
        *,
        receive_count: int = 1,
        hide: Callable[[int], None] = lambda _: None,
    ) -> Outcome:
        return transcode_image(
            self.ports(TranscodeImagePorts),
            ReceivedMessage(
                message=message,
                receipt=receipt,
                request_id=f"request of {receipt}",
                receive_count=receive_count,
                deadline=self.now + self.timeout_seconds * 1000,
                hide=hide,
            ),
        )

    def sweep(self) -> Sweep:
        return sweep_due_images(self.ports(SweepDueImagesPorts), out_of_time=lambda: False)

    def measure(self) -> Measures:
        return measure_lanes(self.ports(MeasureLanesPorts))

    def oldest(self) -> dict[str, float]:
        return self.measure().oldest_seconds

    def delete(self, image_id: str, tenant_id: str = "default") -> None:
        delete_image(self.ports(DeleteImagePorts), image_id, tenant_id=tenant_id)

    def row(self, image_id: str) -> Image:
        image: Image | None = self.images.get(image_id)
        assert image is not None
        return image


TENANT = "acme"


def event(number: int = 1, kind: EventType = EventType.DONE, **stated: Any) -> PublishedEvent:
    """An event of the tenant, of its image of that number."""
    image_id = f"{number:026d}"
    usual: dict[str, Any] = {
        "type": kind,
        "subject": image_id,
        "tenant_id": TENANT,
        "lane": "fast",
        "preset": "standard",
        "sequence": 3,
        "time": 1_795_251_600_000 + number,
        "data": {"id": image_id, "tenant_id": stated.get("tenant_id", TENANT)}
        | ({} if kind is EventType.DELETED else {"variants": [{"name": "hero"}]}),
    }
    return PublishedEvent(**usual | stated)


@dataclass
class WebhooksWorld(_Stores):
    """The operations of webhooks."""

    delivery_queue: Any = field(default_factory=FakeDeliveryQueue)
    receiver: Any = field(default_factory=FakeReceiver)
    master_secret: Any = field(default_factory=FakeSecret)
    suspended: set[str] = field(default_factory=set)
    source: str = "/darkroom/test"
    random: Callable[[], float] = lambda: 0.5
    now: int = 1_795_251_700_000
    receipts: int = 0

    at_once = staticmethod(one_after_another)

    def jitter(self) -> float:
        return self.random()

    def is_suspended(self, tenant_id: str) -> bool:
        return tenant_id in self.suspended

    def randomness(self, size: int) -> bytes:
        self.receipts += 1
        return self.receipts.to_bytes(size)

    def manage(self) -> manage_webhooks.ManageWebhooksPorts:
        """The ports of what a tenant may do with its endpoints."""
        return self.ports(manage_webhooks.ManageWebhooksPorts)

    def add(self, url: str = "https://hooks.example.com/", *, events: tuple[str, ...] = ("*",)) -> Endpoint:
        """A new endpoint of the tenant."""
        return manage_webhooks.create_webhook(self.manage(), TENANT, url=url, events=events, description=None)[0]

    def tell(self, *events: PublishedEvent) -> Created:
        """What the consumer does when it hears of these events."""
        bodies = [body_of(event, source=self.source) for event in events]
        return create_deliveries(self.ports(CreateDeliveriesPorts), bodies)

    def deliver(self, message: DeliveryMessage) -> Delivered:
        self.receipts += 1
        return deliver_event(self.ports(DeliverEventPorts), message, claimed_by=f"receipt {self.receipts}")

    def sweep(self) -> EndpointsSweep:
        return sweep_due_endpoints(self.ports(SweepDueEndpointsPorts), out_of_time=lambda: False)

    def take(self) -> list[DeliveryMessage]:
        """The messages that were sent without a delay since, which are then gone from the queue."""
        sent, self.delivery_queue.sent = self.delivery_queue.sent, []
        self.delivery_queue.sent = [(message, delay) for message, delay in sent if delay > 0]
        return [message for message, delay in sent if delay == 0]

    def run(self) -> list[str]:
        """Delivers until the queue has nothing that shows now; returns the outcomes."""
        outcomes: list[str] = []
        while messages := self.take():
            outcomes += [self.deliver(message).outcome for message in messages]
        return outcomes

    def send(self, *events: PublishedEvent) -> list[str]:
        """Hears of these events and delivers them; returns the outcomes."""
        self.tell(*events)
        return self.run()

    def message_of(self, event: PublishedEvent) -> DeliveryMessage:
        """Hears of an event for one endpoint; returns its message, which is then gone from the queue."""
        self.tell(event)
        (message,) = self.take()
        return message

    def run_for(self, seconds: float) -> list[str]:
        """Lets time pass: delayed messages show at their time, and the sweeper looks every minute."""
        outcomes: list[str] = []
        delayed: list[tuple[int, DeliveryMessage]] = []
        ends_at = self.now + round(seconds * 1000)
        next_sweep = self.now + 60_000
        while True:
            for message, delay in self.delivery_queue.sent:
                delayed.append((self.now + delay * 1000, message))
            self.delivery_queue.sent = []
            delayed.sort(key=lambda message: message[0])
            at = min([next_sweep, *(message[0] for message in delayed[:1])])
            if at > ends_at:
                self.now = ends_at
                self.delivery_queue.sent = [
                    (message, max(1, (shows_at - ends_at) // 1000)) for shows_at, message in delayed
                ]
                return outcomes
            self.now = max(self.now, at)
            if at == next_sweep:
                next_sweep += 60_000
                self.sweep()
            while delayed and delayed[0][0] <= self.now:
                outcomes.append(self.deliver(delayed.pop(0)[1]).outcome)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Its current row."""
        row: Endpoint = self.endpoints.get(endpoint.tenant_id, endpoint.endpoint_id)
        assert row is not None
        return row

    def rows(self, endpoint: Endpoint) -> list[Delivery]:
        """Its deliveries, the oldest event first."""
        page = self.deliveries.page(endpoint.endpoint_id, limit=100_000, newest_first=False)
        return list(page.deliveries)
