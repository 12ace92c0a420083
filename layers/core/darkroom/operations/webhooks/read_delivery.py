"""Reads a delivery's row; one that this version cannot read is moved out of the way of those behind it."""

from __future__ import annotations

from contextlib import suppress

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import SECOND, Delivery
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Deliveries, DueDelivery

POSTPONED_SECONDS = 3600
"""How long a delivery is postponed whose row is unreadable: it stays due, before all others, and a look at its endpoint
lists only the first."""


def read_delivery(
    deliveries: Deliveries, endpoint_id: str, delivery_id: str, *, now: Milliseconds
) -> Delivery | UnreadableRow | None:
    """The delivery's row, None if there is none, or why it cannot be read: then it is postponed if it is due. Raises
    Retryable."""
    try:
        return deliveries.get(endpoint_id, delivery_id)
    except UnreadableRow as error:  # guard: unreadable-endpoint-rest-ends
        if error.due_at is not None and error.due_at <= now:
            with suppress(Retryable):  # the next look meets it again
                due = DueDelivery(error.due_at, delivery_id)
                # guard: unreadable-delivery-postponed
                deliveries.postpone(endpoint_id, due, now + POSTPONED_SECONDS * SECOND)
        return error
