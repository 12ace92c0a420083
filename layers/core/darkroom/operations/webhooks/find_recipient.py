"""Finds the webhook that is to hear of an image."""

from __future__ import annotations

from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Endpoints


def has_recipient(endpoints: Endpoints, tenant_id: str, endpoint_id: str) -> bool:
    """Whether the tenant has this webhook. Raises Retryable."""
    try:
        return endpoints.get(tenant_id, endpoint_id) is not None
    # guard: unreadable-webhook-may-be-named
    except UnreadableRow:  # it hears of the image from a version that can read it
        return True
