"""`sam local invoke` of manage_webhooks."""

import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_webhook_is_made(stack: DeployedStack, tmp_path: Path) -> None:
    answer = stack.invoke("manage_webhooks", sample_event("manage_webhooks"), tmp_path)

    assert answer["statusCode"] == 201
    made = json.loads(answer["body"])
    assert made["secret"].startswith("whsec_")
    endpoint = stack.endpoints.get("default", made["id"])
    assert endpoint is not None
    assert (endpoint.url, endpoint.events) == (made["url"], tuple(made["events"]))
    stack.endpoints.remove(endpoint.tenant_id, endpoint.endpoint_id)
