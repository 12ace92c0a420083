"""`sam local invoke` of authorize_request."""

import secrets
from pathlib import Path

from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from tests.invoke.deployed_stack import DeployedStack, sample_event
from tests.support.fakes.audit import trail_of


def test_a_key_opens_for_its_tenant(stack: DeployedStack, tmp_path: Path) -> None:
    stack.tenants.add_tenant(Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1))
    key, stored = create_key(
        CreateKeyPorts(audit=trail_of(), tenants=stack.tenants, clock=lambda: 1, randomness=secrets.token_bytes),
        "acme",
        label=None,
    )
    event = sample_event("authorize_request")
    event |= {"identitySource": [f"Bearer {key}"]}

    answer = stack.invoke("authorize_request", event, tmp_path)

    assert answer["isAuthorized"] is True
    assert (answer["context"]["tenant_id"], answer["context"]["key_id"]) == ("acme", stored.key_id)
