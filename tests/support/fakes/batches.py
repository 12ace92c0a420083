"""A world of images in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.bulk.batches import Batch, Counts
from darkroom.domain.bulk.imports import Import
from darkroom.domain.bulk.manifests import ManifestFormat
from darkroom.domain.bulk.schedules import Plan
from darkroom.domain.images.claim import Claim, claim
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.order import order_of
from darkroom.domain.images.transitions import complete, reject
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.tenants import NO_QUOTA, Caller, Quota, Tier
from darkroom.domain.recipes.presets import PRESETS
from darkroom.operations.bulk.count_batches import Counting, count_batches
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts
from darkroom.operations.bulk.jobs import jobs_of
from darkroom.operations.bulk.join_batch import JoinBatchPorts, has_turn, join_batch
from darkroom.operations.bulk.manage_batches import (
    ManageBatchesPorts,
    WantedBatch,
    cancel_batch,
    close_batch,
    create_batch,
)
from darkroom.operations.bulk.manage_imports import ManageImportsPorts, WantedImport, create_import
from darkroom.operations.bulk.run_import import RunImportPorts, run_import
from darkroom.operations.bulk.run_schedule import RunSchedulePorts
from darkroom.operations.bulk.settle_batch import SettleBatchPorts
from darkroom.operations.bulk.sweep_due_bulk import BulkSweep, SweepDueBulkPorts, sweep_due_bulk
from darkroom.operations.images.add_variants import AddVariantsPorts, VariantsRequest, add_variants
from tests.support.fakes.batch_rows import FakeBackfills, FakeBatches, FakeImageScan, FakeSchedules
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import lease
from tests.support.fakes.stores import FakeImages
from tests.support.fakes.world import World


def is_counted(before: Image | None, after: Image | None) -> bool:
    """Whether the mapping's filter lets the write through: tests/unit/test_event.py compares."""
    if after is None or before == after:
        return False
    was, is_new = None if before is None else before.status, before is None and after.version == 1
    begins = after.status in (Status.SCHEDULED, Status.PENDING)
    accepted = begins and (is_new or was in (Status.AWAITING_UPLOAD, Status.FETCHING))
    own = accepted or (was is not None and not was.is_terminal and after.status.is_terminal)
    is_work = (was, after.status) == (Status.DONE, Status.PENDING) or (
        was in (Status.PENDING, Status.PROCESSING) and after.status is Status.DONE
    )
    return (own and after.batch is not None) or (is_work and after.work_batch is not None)


ADDED = '{"variants": [{"name": "hero", "width": 9, "height": 9}]}'

BODY = jpeg()
"""Nobody decodes it."""


@dataclass
class StreamedImages(FakeImages):
    """The images, with those of their writes that the stream hands to whoever counts batches."""

    written: list[Image] = field(default_factory=list)

    def create(self, image: Image) -> Image:
        before = self.rows.get(image.image_id)
        return self._stream(before, super().create(image))

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        current = self.rows.get(before.image_id)
        return self._stream(current, super().change(before, after, fence=fence))

    def _stream(self, before: Image | None, after: Image) -> Image:
        if is_counted(before, after):
            self.written.append(after)
        return after


@dataclass
class BatchesWorld(World):
    """The operations of images and of batches. What a worker makes of an image, `develop` says without a picture; and
    nothing is reconciled."""

    images: Any = field(default_factory=StreamedImages)
    batches: Any = field(default_factory=FakeBatches)
    backfills: Any = field(default_factory=FakeBackfills)
    schedules: Any = field(default_factory=FakeSchedules)
    presets: Any = field(default_factory=lambda: {name: (recipe, 1) for name, recipe in PRESETS.items()})
    heard: int = 0
    reconciling: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.imports, self.manifests = self.batches.imports, self.batches.manifests
        self.batches.backfills, self.batches.schedules = self.backfills.rows, self.schedules.rows
        self.jobs = dict(jobs_of(self.backfills, self.clock))
        self.own, self.planned = tuple[Plan, ...](), set[str]()
        self.scan: Any = FakeImageScan(self.images)
        self.join_batch = self._join
        self.has_turn = lambda image: has_turn(self.ports(JoinBatchPorts), image)

    def _join(self, tenant_id: str, batch_id: str, image_id: str, run: int | None) -> bool:
        return join_batch(self.ports(JoinBatchPorts), tenant_id, batch_id, image_id, run)

    def add(self, image: Image, *, key: str | None = None, **order: Any) -> Image:
        """The image after a request for a variant of that order."""
        request = VariantsRequest(
            image_id=image.image_id,
            order=order_of(recipe=ADDED, **order),
            tenant_id=image.tenant_id,
            correlation_id="adds",
            idempotency_key=key,
        )
        return add_variants(self.ports(AddVariantsPorts), request).image

    def open(self, *, key: str | None = None, tenant_id: str = "default", **wanted: Any) -> Batch:
        self.requests += 1
        ports = self.ports(ManageBatchesPorts)
        return create_batch(ports, tenant_id, WantedBatch(**wanted), idempotency_key=key)[0]

    def close(self, batch: Batch) -> Batch:
        return close_batch(self.ports(ManageBatchesPorts), batch.tenant_id, batch.batch_id).batch

    def cancel(self, batch: Batch) -> Batch:
        return cancel_batch(self.ports(ManageBatchesPorts), batch.tenant_id, batch.batch_id).batch

    def begin_import(
        self,
        manifest: bytes,
        kind: ManifestFormat = ManifestFormat.CSV,
        *,
        key: str | None = None,
        quota: Quota = NO_QUOTA,
        **wanted: Any,
    ) -> Import:
        """An import whose manifest is there."""
        self.requests += 1
        begun = create_import(
            self.ports(ManageImportsPorts),
            Caller(tenant_id="default", tier=Tier.FREE, allowance=None, quota=quota),
            WantedImport(format=kind, size_bytes=len(manifest), batch=WantedBatch(**wanted)),
            idempotency_key=key,
        )
        assert begun.form is not None
        self.batches.manifests.upload(begun.form, manifest)
        return begun.row

    @property
    def import_ports(self) -> RunImportPorts:
        return self.ports(RunImportPorts, max_bytes=self.limits.max_bytes)

    def look_at_import(self, batch_id: str) -> str:
        return run_import(self.import_ports, batch_id)

    def imported(self, row: Import) -> Import:
        """The import's row now."""
        current: Import | None = self.imports.get(row.batch_id)
        assert current is not None
        return current

    def count(self, rows: Sequence[Image | Batch]) -> Counting:
        """What the streams' worker does when it gets these rows as they were written."""
        return count_batches(self.ports(SettleBatchPorts), rows)

    def hear(self) -> Counting:
        """The stream's worker gets everything that it has not got, the latest first and once more."""
        new, self.heard = self.images.written[self.heard :], len(self.images.written)
        return self.count([*reversed(new), *new])

    def sweep_bulk(self) -> BulkSweep:
        feeding = self.ports(FeedBackfillPorts)
        scheduling = self.ports(RunSchedulePorts)
        ports = self.ports(SweepDueBulkPorts, imports=self.import_ports, feeding=feeding, scheduling=scheduling)
        return sweep_due_bulk(ports, out_of_time=lambda: False)

    def develop(self, message: Message, *, fails: bool = False) -> Image:
        """The worker claims the image and finishes it, if there is something to do."""
        row = self.row(message.image_id)
        decision = claim(row, message, lease(now=self.now))
        if not isinstance(decision, Claim):
            return row
        begun = self.images.change(row, decision.image)
        ended = (
            reject(begun, code="truncated", message="It ends early.", now=self.now)
            if fails
            else complete(begun, (), notices=(), now=self.now)
        )
        written: Image = self.images.change(begun, ended)
        return written

    def batch(self, batch: Batch) -> Batch:
        row: Batch | None = self.batches.get(batch.batch_id)
        assert row is not None
        return row


def submitted(world: BatchesWorld, batch: Batch, count: int = 3) -> list[Image]:
    """So many new images of the batch."""
    return [world.submit(BODY, batch=batch.batch_id).image for _ in range(count)]


def work(world: BatchesWorld, *, fails: bool = False) -> None:
    """The workers take every message that was sent."""
    sent, world.lanes.sent = world.lanes.sent, []
    for message in sent:
        world.develop(message, fails=fails)


def counts(world: BatchesWorld, batch: Batch) -> Counts:
    """What was counted of the batch."""
    counted: Counts = world.batches.sums(batch.batch_id).counts
    return counted
