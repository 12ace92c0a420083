"""`sam local invoke` of deliver_event."""

import json
import time
from pathlib import Path

from darkroom.domain.webhooks.delivery import message_for, new_delivery
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_an_attempt_is_made_and_recorded(stack: DeployedStack, tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000  # of a delivery noted longer ago than a month, the table would forget the row
    endpoint = Endpoint(
        tenant_id="acme",
        endpoint_id=endpoint_id_from(1, bytes(10)),
        url="https://darkroom.invalid/",  # a name that nobody has (RFC 6761)
        events=("*",),
        created_at=now,
    )
    delivery = new_delivery(
        endpoint_id=endpoint.endpoint_id,
        tenant_id="acme",
        event_id="ping-1",
        event_type="webhook.ping",
        time=now,
        body="{}",
        now=now,
    )
    stack.endpoints.create(endpoint)
    stack.deliveries.create(delivery)
    event = sample_event("deliver_event")
    event["Records"][0]["body"] = json.dumps(json.loads(message_for(delivery).model_dump_json()))

    assert stack.invoke("deliver_event", event, tmp_path) == {"batchItemFailures": []}

    tried = stack.deliveries.get(endpoint.endpoint_id, delivery.delivery_id)
    assert tried is not None
    assert [attempt.number for attempt in tried.attempts] == [1]
    assert (tried.attempts[0].error or "").startswith("dns:")
    stack.endpoints.remove(endpoint.tenant_id, endpoint.endpoint_id)
    stack.deliveries.remove_all(endpoint.endpoint_id)
