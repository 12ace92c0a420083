"""Takes out of the deliveries of a deleted image what they say of it, whether they still wait or have ended."""

from __future__ import annotations

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import blank
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.webhooks import Deliveries


def blank_deliveries(deliveries: Deliveries, image_id: str, *, now: Milliseconds) -> bool:
    """Blanks all that can be written now; returns whether these are all. Those that wait are still sent, without
    details. Raises Retryable, and at the end UnreadableRow if this version cannot read one of them."""
    are_all = True
    unreadable: UnreadableRow | None = None
    for key in deliveries.of_image(image_id):
        try:
            delivery = deliveries.get(key.endpoint_id, key.delivery_id)
            if delivery is None or (after := blank(delivery)) == delivery:
                continue
            # guard: erasure-leased-delivery-untouched
            if delivery.is_leased(now=now):  # its worker is about to write what was answered
                are_all = False  # guard: erasure-leased-delivery-pending
            else:
                deliveries.change(delivery, after)
        except Fenced:
            are_all = False  # guard: erasure-fenced-delivery-pending
        except UnreadableRow as error:
            unreadable = error  # guard: erasure-unreadable-delivery
    if unreadable is not None:
        raise unreadable
    return are_all
