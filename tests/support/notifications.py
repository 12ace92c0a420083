"""What S3 writes when an upload has arrived."""

from __future__ import annotations

import json
from typing import Any


def event(*keys: str, **more: Any) -> str:
    """As S3 writes it (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html)."""
    return json.dumps(
        {
            "Records": [
                {
                    "eventVersion": "2.6",
                    "eventSource": "aws:s3",
                    "eventName": "ObjectCreated:Post",
                    "s3": {"bucket": {"name": "uploads"}, "object": {"key": key, "size": 5, "sequencer": "00"}},
                }
                for key in keys
            ],
            **more,
        }
    )


TEST_EVENT = json.dumps(
    {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": "2026-11-21T09:00:00.000Z",
        "Bucket": "uploads",
        "RequestId": "r",
        "HostId": "h",
    }
)
