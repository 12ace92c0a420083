"""The API against its own description: requests of every kind, and each answer compared with openapi.json."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.fuzz.api.attack import attack
from tests.local.local_stack import LocalStack

pytestmark = pytest.mark.promise("openapi")


def withdraw_unfinished(api_url: str) -> None:
    """Deletes every image that is not developed yet."""
    with httpx.Client(base_url=api_url, trust_env=False, timeout=60) as api:
        query = {"status": "awaiting_upload,scheduled,pending,processing", "limit": "100"}
        while True:
            page = api.get("/images", params=query).json()
            for image in page["images"]:
                assert api.delete(f"/images/{image['id']}").status_code == 204
            if page["next"] is None:
                return
            query["cursor"] = page["next"]


def delete_webhooks(api_url: str) -> None:
    """Deletes every webhook."""
    with httpx.Client(base_url=api_url, trust_env=False, timeout=60) as api:
        for webhook in api.get("/webhooks").json()["webhooks"]:
            assert api.delete(f"/webhooks/{webhook['id']}").status_code == 204


def test_whatever_is_asked_the_answer_is_as_described(stack: LocalStack, tmp_path: Path) -> None:
    findings = attack(stack.api_url, examples=3, seed=1, deterministic=True, folder=tmp_path)
    delete_webhooks(stack.api_url)
    withdraw_unfinished(stack.api_url)  # so that no other test waits for their work
    assert not findings.failures, findings.said
    assert not findings.left_out
    assert findings.requests > 300
    # An attack whose requests are all refused proves nothing: good requests are accepted, and none is refused.
    accepted = findings.good_requests("accepted")
    assert len(accepted) == 42
    # A variant exists, and others can be added, once a worker has had time; a delivery once there was an event for its
    # webhook.
    late = {f"{method} /images/{{id}}/variants/{{name}}" for method in ("GET", "HEAD")}
    late |= {"POST /images/{id}/variants", "POST /webhooks/{id}/deliveries/{delivery_id}/resend"}
    assert {name for name, count in accepted.items() if not count} <= late
    assert accepted["POST /images"] >= 20
    assert not any(findings.good_requests("rejected").values())
