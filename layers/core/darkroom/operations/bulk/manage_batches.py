"""What a tenant may do with its batches: make, read, list, close and cancel them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from darkroom.domain.bulk.batches import (
    Batch,
    OnFailure,
    Stop,
    Sums,
    batch_id_for_key,
    batch_id_from_bits,
    close,
    is_batch_id,
    open_batch,
    stop,
)
from darkroom.domain.images.order import check_idempotency_key, key_reused, unknown_notify
from darkroom.domain.kernel.errors import Rejected
from darkroom.operations.bulk.settle_batch import change_batch
from darkroom.ports.bulk import BatchCursor, Batches, BatchPage
from darkroom.ports.images import HasRecipient, no_recipient
from darkroom.ports.kernel import Clock, Randomness


class UnknownBatch(Rejected):
    """This tenant has no batch with that id; another tenant's is treated like a missing one."""

    def __init__(self) -> None:
        super().__init__("unknown_batch", "There is no batch with this id.")


@dataclass(frozen=True, kw_only=True)
class ManageBatchesPorts:
    """What managing batches needs."""

    batches: Batches
    has_recipient: HasRecipient = no_recipient
    clock: Clock
    randomness: Randomness


@dataclass(frozen=True, kw_only=True)
class WantedBatch:
    """A batch that a client asks for."""

    name: str | None = None
    parallelism: int | None = None
    on_failure: OnFailure = OnFailure.CONTINUE
    notify: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadBatch:
    """A batch, and what was counted of it."""

    batch: Batch
    sums: Sums


def create_batch(
    ports: ManageBatchesPorts,
    tenant_id: str,
    wanted: WantedBatch,
    *,
    idempotency_key: str | None,
    of_import: str = "",
) -> tuple[Batch, bool]:
    """Makes the batch; returns it, and whether an earlier request with the same key had made it. `of_import` is what
    else the request asked for if it is one for an import. Raises Rejected (`unknown_notify`, `part_not_deployed`,
    `invalid_idempotency_key`, `idempotency_key_reused`) and Retryable."""
    check_idempotency_key(idempotency_key)
    if wanted.notify is not None and not ports.has_recipient(tenant_id, wanted.notify):  # guard: bulk-notify-own-tenant
        raise unknown_notify()
    batch = open_batch(
        batch_id_from_bits(ports.randomness(16))
        if idempotency_key is None
        else batch_id_for_key(tenant_id, idempotency_key, is_import=bool(of_import)),
        tenant_id=tenant_id,
        now=ports.clock(),
        name=wanted.name,
        parallelism=wanted.parallelism,
        on_failure=wanted.on_failure,
        notify=wanted.notify,
        of_import=of_import,
    )
    kept = ports.batches.create(batch)
    if kept.fingerprint != batch.fingerprint:  # guard: bulk-key-reuse-refused
        raise key_reused()
    return kept, kept != batch


def read_batch(ports: ManageBatchesPorts, tenant_id: str, batch_id: str) -> ReadBatch:
    """The batch with its sums. Raises UnknownBatch, and Retryable."""
    batch = ports.batches.get(batch_id) if is_batch_id(batch_id) else None
    if batch is None or batch.tenant_id != tenant_id:  # guard: bulk-read-own-only
        raise UnknownBatch
    return ReadBatch(batch=batch, sums=ports.batches.sums(batch_id))


def list_batches(ports: ManageBatchesPorts, tenant_id: str, *, after: BatchCursor | None, limit: int) -> BatchPage:
    """The tenant's batches, the newest first. Raises Retryable."""
    return ports.batches.of_tenant(tenant_id, after=after, limit=limit)


def close_batch(ports: ManageBatchesPorts, tenant_id: str, batch_id: str) -> ReadBatch:
    """Closes the batch, which ends with its last image; repeating it changes nothing. Raises UnknownBatch, and
    Retryable."""
    return _change(ports, tenant_id, batch_id, lambda row: close(row, now=ports.clock()))


def cancel_batch(ports: ManageBatchesPorts, tenant_id: str, batch_id: str) -> ReadBatch:
    """Has the batch begin nothing more: what was not begun is deleted within minutes, and the rest ends. Repeating it
    changes nothing, and neither does cancelling a batch that has ended. Raises UnknownBatch, and Retryable."""
    return _change(ports, tenant_id, batch_id, lambda row: stop(row, Stop.CLIENT, now=ports.clock()))


def _change(ports: ManageBatchesPorts, tenant_id: str, batch_id: str, decide: Callable[[Batch], Batch]) -> ReadBatch:
    read = read_batch(ports, tenant_id, batch_id)
    return replace(read, batch=change_batch(ports, read.batch, decide))
