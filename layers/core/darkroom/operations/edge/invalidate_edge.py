"""Has the edge forget images, within a monthly budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.domain.edge.forgetting import bill_of, reference_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.edge import Edge, Invalidations, Refused
from darkroom.ports.kernel import Clock


@dataclass(frozen=True, kw_only=True)
class InvalidateEdgePorts:
    """What invalidating needs; `limit` is the budget of a month, in tags."""

    distribution: Edge
    invalidations: Invalidations
    clock: Clock
    limit: int


@dataclass(frozen=True, kw_only=True)
class Forgetting:
    """How many images the edge was told to forget, and how many not."""

    invalidated: int
    skipped: int


def invalidate_edge(ports: InvalidateEdgePorts, owed: Mapping[str, str]) -> Forgetting:
    """Has the edge forget the images of these messages, by their ids. Raises Retryable if it may not have been told:
    all messages must come back. They are paid for first, so a crash may waste units of the budget, and never exceeds
    it."""
    image_ids = sorted(set(owed.values()))
    bill = bill_of(len(image_ids), reference_of(owed), ports.clock())
    paid = ports.invalidations.pay(bill, ports.limit)
    if paid < len(image_ids):
        ports.invalidations.skip(bill, len(image_ids) - paid)  # guard: edge-skipped-noted
    if paid:
        try:
            ports.distribution.invalidate(image_ids[:paid], bill.reference)
        except Refused as refusal:
            ports.invalidations.pay_back(bill)
            raise Retryable(str(refusal)) from refusal
    return Forgetting(invalidated=paid, skipped=len(image_ids) - paid)
