"""Reads an endpoint's row with those of its tenant's other endpoints at the same host."""

from __future__ import annotations

from darkroom.domain.webhooks.endpoint import Endpoint, at_one_host
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Endpoints


def read_host(endpoints: Endpoints, tenant_id: str, endpoint_id: str) -> tuple[Endpoint, ...]:
    """The endpoint and then the others, by one consistent read; empty if the endpoint is gone. Raises UnreadableRow if
    its own row is; another that cannot be read is left out, and holds it up in nothing."""
    rows = endpoints.of_tenant(tenant_id)
    for row in rows:
        if isinstance(row, UnreadableRow):
            if row.row_id == endpoint_id:
                raise row
        elif row.endpoint_id == endpoint_id:
            return at_one_host(row, rows)
    return ()
