"""`sam local invoke` of count_usage."""

import hashlib
import json
from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_an_event_is_counted(stack: DeployedStack, tmp_path: Path) -> None:
    event = sample_event("count_usage")
    (record,) = event["Records"]
    published = json.loads(record["body"])
    published["data"]["tenant_id"] = "counted-once"
    body = json.dumps(published)
    record |= {"body": body, "md5OfBody": hashlib.md5(body.encode()).hexdigest()}

    assert stack.invoke("count_usage", event, tmp_path) == {"batchItemFailures": []}

    usage = stack.usage("counted-once")
    stored = usage.pop("stored")
    assert (stored["stored_bytes"], stored["stored_images"]) == (928, 1)
    assert {day: (counts["images"], counts["image_bytes"]) for day, counts in usage.items()} == {"2026-11-21": (1, 928)}
