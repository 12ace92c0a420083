"""What a tenant may ask for of its batches."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Rejected
from darkroom.operations.bulk.manage_batches import ManageBatchesPorts, UnknownBatch, list_batches, read_batch
from tests.support.fakes.batches import BatchesWorld


@pytest.mark.guards("bulk-key-reuse-refused", "bulk-read-own-only", "bulk-notify-own-tenant")
def test_a_tenant_manages_its_own_batches_and_a_key_makes_one() -> None:
    world = BatchesWorld()
    batch = world.open(key="k", name="a")
    assert world.open(key="k", name="a") == batch
    with pytest.raises(Rejected) as caught:
        world.open(key="k", name="b")
    assert caught.value.code == "idempotency_key_reused"
    with pytest.raises(Rejected) as caught:
        world.open(notify="we_0" + "0" * 15)
    assert caught.value.code == "unknown_notify"
    ports = world.ports(ManageBatchesPorts)
    assert read_batch(ports, "default", batch.batch_id).batch == batch
    for tenant_id, batch_id in (("other", batch.batch_id), ("default", "no id")):
        with pytest.raises(UnknownBatch):
            read_batch(ports, tenant_id, batch_id)
    assert list_batches(ports, "default", after=None, limit=9).batches == (batch,)
