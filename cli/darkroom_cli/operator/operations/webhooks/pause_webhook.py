"""Pauses a tenant's endpoint, or lets it go on, for an operator: its row says so, and nothing else does."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.webhooks import endpoint as endpoints
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.errors import UnknownWebhook
from darkroom.operations.webhooks.change_endpoint import change_endpoint
from darkroom.ports.kernel import Clock
from darkroom.ports.webhooks import Endpoints
from darkroom_cli.operator.operations.kernel.audit_trail import Trail


@dataclass(frozen=True, kw_only=True)
class PauseWebhookPorts:
    """What pausing an endpoint needs."""

    endpoints: Endpoints
    clock: Clock
    audit: Trail


def pause_webhook(ports: PauseWebhookPorts, row: Endpoint, *, is_paused: bool) -> Endpoint:
    """The endpoint, paused from now on, or no longer. One that is so already is left as it is.

    Raises UnknownWebhook if it is gone, and Retryable if the table cannot answer.
    """
    if (row.paused_at is not None) is is_paused:
        return row

    def decide(current: Endpoint) -> Endpoint:
        now = ports.clock()
        return endpoints.pause(current, now=now) if is_paused else endpoints.resume(current, now=now)

    name = "pause_webhook" if is_paused else "resume_webhook"
    with ports.audit.action(name, row.endpoint_id, tenant_id=row.tenant_id):
        changed = change_endpoint(ports.endpoints, row, decide)
        if changed is None:
            raise UnknownWebhook
    return changed
