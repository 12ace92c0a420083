"""Finds the webhook that is to hear of an image."""

from __future__ import annotations

from darkroom.domain.webhooks.endpoint_ids import is_endpoint_id
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Endpoints


def has_recipient(endpoints: Endpoints, tenant_id: str, endpoint_id: str) -> bool:
    """Whether the tenant has this webhook; what is no webhook's id is not looked for. Raises Retryable."""
    if not is_endpoint_id(endpoint_id):  # guard: webhook-notify-id-checked
        return False
    try:
        return endpoints.get(tenant_id, endpoint_id) is not None
    # guard: unreadable-webhook-may-be-named
    except UnreadableRow:  # it hears of the image from a version that can read it
        return True
