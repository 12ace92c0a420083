"""The wiring of `authorize_request`."""

from __future__ import annotations

from darkroom.aws import circuits, clients
from darkroom.aws.tenants_table import TenantsTable
from darkroom.operations.authorize_request import Ports
from darkroom.settings import AuthorizeRequestSettings
from darkroom.wiring.runtime import clock


def wire() -> Ports:
    """The ports of `authorize_request`, from the function's environment."""
    settings = AuthorizeRequestSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.tenants_table, key="id")
    return Ports(tenants=TenantsTable(dynamodb, settings.tenants_table), clock=clock)
