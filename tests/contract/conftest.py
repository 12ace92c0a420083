"""AWS by moto, in this process: tables, buckets and queues as template.yaml declares them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse

TEMPLATE = yaml_parse((Path(__file__).parents[2] / "template.yaml").read_text())
REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class Aws:
    """The names of what the functions use."""

    images_table: str
    idempotency_table: str
    originals_bucket: str
    outputs_bucket: str
    fast_queue_url: str
    slow_queue_url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "IMAGES_TABLE": self.images_table,
            "IDEMPOTENCY_TABLE": self.idempotency_table,
            "ORIGINALS_BUCKET": self.originals_bucket,
            "OUTPUTS_BUCKET": self.outputs_bucket,
            "FAST_QUEUE_URL": self.fast_queue_url,
            "SLOW_QUEUE_URL": self.slow_queue_url,
            "VISIBILITY_SECONDS": "360",
            "POWERTOOLS_SERVICE_NAME": "darkroom",
            "POWERTOOLS_METRICS_NAMESPACE": "Darkroom",
            "POWERTOOLS_TRACE_DISABLED": "true",
        }


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that are nobody's."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture
def aws(ambient: None) -> Iterator[Aws]:
    """A fresh moto with the template's stores."""
    with mock_aws():
        s3, sqs = boto3.client("s3"), boto3.client("sqs")
        s3.create_bucket(Bucket="originals")
        s3.put_bucket_versioning(Bucket="originals", VersioningConfiguration={"Status": "Enabled"})
        s3.create_bucket(Bucket="outputs")
        yield Aws(
            images_table=_table("ImagesTable"),
            idempotency_table=_table("IdempotencyTable"),
            originals_bucket="originals",
            outputs_bucket="outputs",
            fast_queue_url=sqs.create_queue(QueueName="fast", Attributes={"VisibilityTimeout": "360"})["QueueUrl"],
            slow_queue_url=sqs.create_queue(QueueName="slow", Attributes={"VisibilityTimeout": "360"})["QueueUrl"],
        )


def _table(logical_id: str) -> str:
    properties: dict[str, Any] = dict(TEMPLATE["Resources"][logical_id]["Properties"])
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    boto3.client("dynamodb").create_table(
        TableName=logical_id, **{name: properties[name] for name in wanted if name in properties}
    )
    return logical_id
