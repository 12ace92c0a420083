"""The fakes of webhooks as AWS has them: a call takes time and costs, and the index of what is due is late."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from darkroom.aws.kernel.attributes import to_attributes
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import Delivery
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.ports.webhooks import DueDelivery
from tests.support.fakes.webhooks import FakeDeliveries
from tests.support.virtual.cloud import Call, Plan, always
from tests.support.virtual.virtual_time import VirtualTime

LAG_MILLISECONDS = 300.0
"""How late an index is: a fraction of a second
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.Sync)."""

UNIT_BYTES = 1024


@dataclass
class Rows(FakeDeliveries):
    """The deliveries, with their index of due times, which shows a write after a while."""

    time: VirtualTime = field(kw_only=True)
    _index: dict[str, list[DueDelivery]] = field(default_factory=dict)

    def create(self, delivery: Delivery) -> Delivery:
        kept = super().create(delivery)
        if kept is delivery:
            self._show(delivery, None, delivery.due_at)
        return kept

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        written = super().change(before, after)
        self._show(written, before.due_at, written.due_at)
        return written

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        return self._index.get(endpoint_id, [])[:limit]

    def _show(self, row: Delivery, was: Milliseconds | None, is_now: Milliseconds | None) -> None:
        def show() -> None:
            index = self._index.setdefault(row.endpoint_id, [])
            if was is not None:
                del index[bisect_left(index, DueDelivery(was, row.delivery_id))]
            if is_now is not None:
                insort(index, DueDelivery(is_now, row.delivery_id))

        if was != is_now:
            self.time.after(LAG_MILLISECONDS, show)


def reads(units: float) -> Plan:
    """A call that reads so many units, whatever its arguments."""
    return always(Call(service="DynamoDB", billed={"DynamoDB read units": units}))


def writes(before: Any, after: Any = None) -> Sequence[Call]:
    """A write, refused or not: a unit for each KB of the whole item, in the index of due times one to remove
    an entry and one to put it, and for a new delivery one in the index of images
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations)."""
    new = before if after is None else after
    was, is_now = None if after is None else before.due_at, new.due_at
    in_index = 0 if was == is_now else (was is not None) + (is_now is not None)
    in_index += after is None and isinstance(before, Delivery)
    return written(-(-size(new) // UNIT_BYTES) + in_index)


def written(units: float) -> Sequence[Call]:
    """A call that writes so many units."""
    return [Call(service="DynamoDB", billed={"DynamoDB write units": units})]


def size(row: Endpoint | Delivery) -> int:
    """The bytes of a row's item, names included
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html)."""
    return item_size(to_attributes(asdict(row)))


def item_size(attributes: Mapping[str, Any]) -> int:
    """The same of an item's attributes."""
    return sum(len(name) + _size_of(attribute) for name, attribute in attributes.items())


def _size_of(attribute: Mapping[str, Any]) -> int:
    ((kind, value),) = attribute.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return len(value) // 2 + 2
        case "L":
            return 3 + sum(1 + _size_of(part) for part in value)
        case "M":
            return 3 + len(value) + item_size(value)
        case _:
            return 1
