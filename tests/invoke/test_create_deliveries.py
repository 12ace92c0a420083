"""`sam local invoke` of create_deliveries."""

import json
from pathlib import Path

from darkroom.domain.webhooks.delivery import Delivery
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_an_event_is_noted_for_an_endpoint(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("create_deliveries")
    published = json.loads(event["Records"][0]["body"])
    endpoint = Endpoint(
        tenant_id=published["data"]["tenant_id"],
        endpoint_id=endpoint_id_from(0, bytes(10)),
        url="http://127.0.0.1:9/",
        events=("*",),
        created_at=1,
    )
    stack.endpoints.create(endpoint)

    assert stack.invoke("create_deliveries", event, tmp_path) == {"batchItemFailures": []}

    (delivery,) = stack.deliveries.page(endpoint.endpoint_id, limit=10).deliveries
    assert isinstance(delivery, Delivery)
    assert (delivery.event_id, delivery.body) == (published["id"], event["Records"][0]["body"])
    stack.endpoints.remove(endpoint.tenant_id, endpoint.endpoint_id)
    stack.deliveries.remove_all(endpoint.endpoint_id)
