"""Enables a tenant's endpoint again, or has what it has missed sent again, for an operator."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.endpoint import Endpoint, enable, recover
from darkroom.domain.webhooks.endpoint_ids import is_endpoint_id
from darkroom.domain.webhooks.errors import UnknownWebhook
from darkroom.operations.webhooks.change_endpoint import change_endpoint, end_rest_of_host
from darkroom.ports.kernel import Clock
from darkroom.ports.webhooks import Endpoints
from darkroom_cli.operator.operations.kernel.audit_trail import Trail


@dataclass(frozen=True, kw_only=True)
class EnableWebhookPorts:
    """What mending an endpoint needs."""

    endpoints: Endpoints
    clock: Clock
    audit: Trail


def enable_webhook(
    ports: EnableWebhookPorts, tenant_id: str, endpoint_id: str, *, since: Milliseconds | None
) -> Endpoint:
    """The endpoint, enabled; with `since`, deliveries of events since then that have failed are tried again, slowly at
    first.

    Raises UnknownWebhook, and Retryable if the table cannot answer.
    """
    row = ports.endpoints.get(tenant_id, endpoint_id) if is_endpoint_id(endpoint_id) else None
    if row is None:
        raise UnknownWebhook

    def decide(endpoint: Endpoint) -> Endpoint:
        now = ports.clock()
        return enable(endpoint, now=now) if since is None else recover(endpoint, since=since, now=now)

    name = "enable_webhook" if since is None else "recover_webhook"
    with ports.audit.action(name, endpoint_id, tenant_id=tenant_id, since=since):
        changed = change_endpoint(ports.endpoints, row, decide)
        if changed is None:
            raise UnknownWebhook
        end_rest_of_host(ports.endpoints, changed, ports.clock)
    return changed
