"""Has the edge forget images, within a monthly budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.domain.edge.forgetting import bill_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.edge import Edge, Invalidations, MadeVariants
from darkroom.ports.kernel import Clock


@dataclass(frozen=True, kw_only=True)
class InvalidateEdgePorts:
    """What invalidating needs; `limit` is the budget of a month, in images. Where nothing is made on request, there is
    no `made`."""

    distribution: Edge
    invalidations: Invalidations
    clock: Clock
    limit: int
    made: MadeVariants | None = None


@dataclass(frozen=True, kw_only=True)
class Forgetting:
    """How many images the edge was told to forget, and how many not."""

    invalidated: int
    skipped: int


_PAYMENTS = 6
"""How many payments that others have left open one invocation ends, at most: it is one of two at a time."""


def invalidate_edge(ports: InvalidateEdgePorts, owed: Mapping[str, str]) -> Forgetting:
    """Has the edge forget the images of these messages, by their ids.

    They are paid for first, and a payment stays open until the edge was certainly told: who finds one, tells it then,
    by the reference that it had, so neither a crash nor an outage of a day exceeds the budget or wastes it. Raises
    Retryable, or what CloudFront refuses, if the edge may not have been told: all messages must come back.

    What was made of them on request goes before: a request that died may have left it after the image was deleted or
    hidden, and by the second message for that none is left which could.
    """
    if ports.made is not None:  # guard: on-request-left-over-removed
        for image_id in sorted(set(owed.values())):
            ports.made.remove_all(image_id)
    bill = bill_of(owed, ports.clock())
    for _ in range(_PAYMENTS):
        payment = ports.invalidations.pay(bill, ports.limit)
        if payment.image_ids:
            ports.distribution.invalidate(payment)
            ports.invalidations.settle(payment)  # guard: edge-told-payment-settled
        if payment.reference == bill.reference:
            break
    else:
        raise Retryable("others left a payment open under every attempt")
    skipped = len(bill.image_ids) - len(payment.image_ids)
    if skipped:
        ports.invalidations.skip(bill, skipped)  # guard: edge-skipped-noted
    return Forgetting(invalidated=len(payment.image_ids), skipped=skipped)
