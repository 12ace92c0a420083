"""A whole Darkroom in memory: the real operations over the fakes, with a clock that only tests move."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from darkroom.domain.images.image import Image
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.order import order_of
from darkroom.domain.kernel.lanes import LANES, Lane
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.tenants import NO_QUOTA, Tier
from darkroom.http.imports.fetches import read_fetch
from darkroom.http.uploads.announcements import read_announcement
from darkroom.operations.images.delete_image import DeleteImagePorts, delete_image
from darkroom.operations.images.estimate import Estimator
from darkroom.operations.images.load_shedder import LoadShedder
from darkroom.operations.images.measure_lanes import MeasureLanesPorts, Measures, measure_lanes
from darkroom.operations.images.quota_keeper import QuotaKeeper
from darkroom.operations.images.submit_image import Accepted, PhotoUpload, SubmitImagePorts, submit_image
from darkroom.operations.images.transcode_image import Outcome, ReceivedMessage, TranscodeImagePorts, transcode_image
from darkroom.operations.imports.begin_fetch import BeginFetchPorts, Wanted, begin_fetch
from darkroom.operations.imports.fetch_original import Fetching, FetchOriginalPorts, fetch_original
from darkroom.operations.sweeping.sweep_due_images import Sweep, SweepDueImagesPorts, sweep_due_images
from darkroom.operations.uploads.accept_upload import Acceptance, AcceptUploadPorts, accept_upload
from darkroom.operations.uploads.begin_upload import Announced, BeginUploadPorts, Begun, begin_upload
from darkroom.operations.webhooks.blank_deliveries import blank_deliveries
from darkroom.operations.webhooks.find_recipient import has_recipient
from tests.support.fakes.audit import audited_action_of, trail_of
from tests.support.fakes.events import FakeUsage
from tests.support.fakes.load_shedding import FakeDepths, FakeOutcomes, FakeThroughput
from tests.support.fakes.stores import (
    FakeDeadLetters,
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
from tests.support.fakes.webhooks import FakeDeliveries, FakeEndpoints

VISIBILITY_SECONDS = 360
ORDER = ("preset", "variants", "recipe", "notify", "timetable")
TIMEOUT_SECONDS = 60


@dataclass
class World:
    """The stores, a clock in milliseconds, and the operations wired to them. A test may replace any store."""

    images: Any = field(default_factory=FakeImages)
    uploads: Any = field(default_factory=FakeUploads)
    originals: Any = field(default_factory=FakeOriginals)
    endpoints: Any = field(default_factory=FakeEndpoints)
    deliveries: Any = field(default_factory=FakeDeliveries)
    outputs: Any = field(default_factory=FakeOutputs)
    lanes: Any = field(default_factory=FakeLanes)
    hold_queue: Any = field(default_factory=FakeHoldQueue)
    upload_queue: Any = field(default_factory=FakeUploadQueue)
    fetch_queue: Any = field(default_factory=FakeFetchQueue)
    fetches: bool = True
    remote_images: Any = field(default_factory=FakeRemoteImages)
    check_url: Callable[[str], None] = lambda _: None
    reservations: Any = field(default_factory=FakeReservations)
    dead_letters: Any = field(default_factory=FakeDeadLetters)
    once: Any = field(default_factory=FakeOnce)
    depths: Any = field(default_factory=FakeDepths)
    throughput: Any = field(default_factory=FakeThroughput)
    outcome_counts: Any = field(default_factory=FakeOutcomes)
    sums: Any = field(default_factory=FakeUsage)
    audit: Any = field(default_factory=trail_of)
    limits: Limits = field(default_factory=Limits)
    service: Mapping[str, Lane] = field(default_factory=lambda: LANES)
    require_healthy: Callable[[], None] = lambda: None
    jitter: Callable[[], float] = lambda: 0.5
    visibility_seconds: int = VISIBILITY_SECONDS
    timeout_seconds: int = TIMEOUT_SECONDS
    now: int = 1_795_251_600_000
    requests: int = 0

    def __post_init__(self) -> None:
        self.load_shedder = LoadShedder(
            depths=self.depths, throughput=self.throughput, clock=self.clock, service=self.service
        )
        self.quotas = QuotaKeeper(sums=self.sums, clock=self.clock)
        self.estimator = Estimator(
            depths=self.depths, throughput=self.throughput, clock=self.clock, service=self.service
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
        return self.now

    def at_once(self, works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """One after another and the last first: threads have no order."""
        return [work() for work in reversed(works)][::-1]

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * 1000)

    def randomness(self, size: int) -> bytes:
        return self.requests.to_bytes(size)

    def ports[P](self, kind: type[P], **others: Any) -> P:
        """The ports of an operation: each is the attribute of the same name, unless it is one of `others`."""
        names = [each.name for each in fields(cast(Any, kind))]
        return kind(**{name: getattr(self, name) for name in names if name not in others}, **others)

    def submit(self, body: bytes, **upload: Any) -> Accepted:
        self.requests += 1
        return submit_image(
            self.ports(SubmitImagePorts, input_formats=self.limits.input_formats),
            PhotoUpload(
                body=body,
                order=order_of(**{name: upload.pop(name) for name in ORDER if name in upload}),
                tenant_id=upload.pop("tenant_id", "default"),
                correlation_id=f"request-{self.requests}",
                **upload,
            ),
        )

    def begin(self, body: bytes, **announced: Any) -> Begun:
        self.requests += 1
        key, tenant_id = announced.pop("idempotency_key", None), announced.pop("tenant_id", "default")
        tier, quota = announced.pop("tier", Tier.FREE), announced.pop("quota", NO_QUOTA)
        written = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **announced}
        return begin_upload(
            self.ports(BeginUploadPorts, max_bytes=self.limits.max_bytes),
            Announced(
                announcement=read_announcement(json.dumps(written).encode()),
                tenant_id=tenant_id,
                tier=tier,
                quota=quota,
                correlation_id=f"request-{self.requests}",
                idempotency_key=key,
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

    def deliver(self, message: Message, receipt: str = "receipt-1", *, receive_count: int = 1) -> Outcome:
        return transcode_image(
            self.ports(TranscodeImagePorts),
            ReceivedMessage(
                message=message,
                receipt=receipt,
                request_id=f"request of {receipt}",
                receive_count=receive_count,
                deadline=self.now + self.timeout_seconds * 1000,
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
