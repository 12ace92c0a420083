"""The wiring of `authorize_request`."""

from __future__ import annotations

from darkroom.aws.kernel import circuits, clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.operations.tenants.authorize_request import AuthorizeRequestPorts
from darkroom.settings import AuthorizeRequestSettings
from darkroom.wiring.kernel.runtime import clock


def wire() -> AuthorizeRequestPorts:
    """The ports of `authorize_request`, from the function's environment."""
    settings = AuthorizeRequestSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.tenants_table, key="id")
    message_keys = StoredSecret(clients.secrets_manager_client, settings.message_key, clock=clock)
    return AuthorizeRequestPorts(
        tenants=TenantsTable(dynamodb, settings.tenants_table), message_keys=message_keys, clock=clock
    )
