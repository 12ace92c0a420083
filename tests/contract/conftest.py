"""AWS by moto, in this process: tables, buckets and queues as template.yaml declares them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sqs.models import Message, SQSBackend

from darkroom import telemetry
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from repository.expand_template import is_optional, raw_template
from tests.contract.drilled import stack
from tests.contract.functions import Functions
from tests.support import quick_aws  # noqa: F401 - imported for what it does
from tests.support.fakes.audit import trail_of

__all__ = ["stack"]  # a fixture

_receive_message = SQSBackend.receive_message


def _receive_at_once(backend: SQSBackend, queue: str, count: int, _: int, *others: Any) -> list[Message]:
    """No long poll of an empty queue: these tests send nothing meanwhile."""
    return _receive_message(backend, queue, count, 0, *others)


SQSBackend.receive_message = _receive_at_once  # type: ignore[assignment, method-assign]

TEMPLATE = raw_template()
REGION = "us-east-1"
MESSAGE_KEY = "s" * 64
TRACE = "Root=1-6ba7b810-9dad11d180b400c04fd430c8;Parent=53995c3f42cd8ad8;Sampled=1"
"""What Lambda tells an invocation about its trace."""


@dataclass(frozen=True, kw_only=True)
class Aws:
    """The names of the resources that the functions use."""

    images_table: str
    tenants_table: str
    idempotency_table: str
    reservations_table: str
    uploads_bucket: str
    token_buckets_table: str
    throughput_table: str
    originals_bucket: str
    outputs_bucket: str
    archive_bucket: str
    holds_bucket: str
    hold_state_machine: str
    queue_urls: dict[str, str]
    hold_queue_url: str
    upload_queue_url: str
    fetch_queue_url: str
    dead_letter_urls: dict[str, str]
    events_topic: str
    usage_queue_url: str
    unpublished_events_url: str
    usage_dead_letters_url: str
    usage_table: str
    counted_events_table: str
    pauses_table: str
    batches_table: str
    endpoints_table: str
    deliveries_table: str
    webhooks_queue_url: str
    delivery_queue_url: str
    webhooks_secret: str
    message_key: str

    @property
    def fast_queue_url(self) -> str:
        return self.queue_urls["fast"]

    @property
    def slow_queue_url(self) -> str:
        return self.queue_urls["slow"]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TENANTS_TABLE": self.tenants_table,
            "IMAGES_TABLE": self.images_table,
            "IDEMPOTENCY_TABLE": self.idempotency_table,
            "UPLOADS_BUCKET": self.uploads_bucket,
            "ORIGINALS_BUCKET": self.originals_bucket,
            "OUTPUTS_BUCKET": self.outputs_bucket,
            "ARCHIVE_BUCKET": self.archive_bucket,
            **{f"{lane.upper()}_QUEUE_URL": url for lane, url in self.queue_urls.items()},
            **{f"{lane.upper()}_CONCURRENCY": str(LANES[lane].concurrency) for lane in self.queue_urls},
            "HOLD_QUEUE_URL": self.hold_queue_url,
            "UPLOAD_QUEUE_URL": self.upload_queue_url,
            "FETCH_QUEUE_URL": self.fetch_queue_url,
            "RESERVATIONS_TABLE": self.reservations_table,
            "TOKEN_BUCKETS_TABLE": self.token_buckets_table,
            "THROUGHPUT_TABLE": self.throughput_table,
            "HOLDS_BUCKET": self.holds_bucket,
            "HOLD_STATE_MACHINE": self.hold_state_machine,
            "DEAD_LETTER_QUEUES": ",".join(f"{name}={url}" for name, url in self.dead_letter_urls.items()),
            "EVENT_DEAD_LETTER_QUEUES": (
                f"unpublished={self.unpublished_events_url},usage={self.usage_dead_letters_url}"
            ),
            "EVENTS_TOPIC": self.events_topic,
            "EVENT_SOURCE": "/darkroom/contract",
            "UNPUBLISHED_EVENTS_URL": self.unpublished_events_url,
            "USAGE_TABLE": self.usage_table,
            "COUNTED_EVENTS_TABLE": self.counted_events_table,
            "PAUSES_TABLE": self.pauses_table,
            "BATCHES_TABLE": self.batches_table,
            "ENDPOINTS_TABLE": self.endpoints_table,
            "DELIVERIES_TABLE": self.deliveries_table,
            "DELIVERY_QUEUE_URL": self.delivery_queue_url,
            "WEBHOOKS_SECRET": self.webhooks_secret,
            "WEBHOOK_PORTS": "443,8443",
            "WEBHOOK_HOSTS": "loopback",
            "MESSAGE_KEY": self.message_key,
            "VISIBILITY_SECONDS": "360",
            "MAX_FILE_BYTES": "25000000",
            "AWS_REGION": REGION,
            "URL_SUFFIX": "amazonaws.com",
            "POWERTOOLS_SERVICE_NAME": "darkroom",
            "POWERTOOLS_METRICS_NAMESPACE": "Darkroom",
        }


@pytest.fixture(params=["fake", "aws"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which implementation of a port the test is about: every one that asks for this is about both."""
    which: str = request.param
    return which


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invalid credentials, an API that requires none, and one client of a service for all that asks boto3 for it: to
    make one takes longer than most calls."""
    monkeypatch.setattr(boto3, "client", cache(boto3.client))
    monkeypatch.setenv("ACCESS", "anonymous")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACE)


@pytest.fixture
def aws(ambient: None) -> Iterator[Aws]:
    """A fresh moto with the template's stores."""
    with mock_aws():
        s3 = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]
        buckets = {
            name: s3.create_bucket(name, REGION) for name in ("originals", "uploads", "outputs", "archive", "holds")
        }
        buckets["originals"].versioning_status = "Enabled"
        yield Aws(
            images_table=_table("ImagesTable"),
            tenants_table=_table("TenantsTable"),
            idempotency_table=_table("IdempotencyTable"),
            reservations_table=_table("ReservationsTable"),
            uploads_bucket="uploads",
            token_buckets_table=_table("TokenBucketsTable"),
            throughput_table=_table("ThroughputTable"),
            originals_bucket="originals",
            outputs_bucket="outputs",
            archive_bucket="archive",
            holds_bucket="holds",
            hold_state_machine=_state_machine(),
            dead_letter_urls={
                lane: _queue(f"{lane}-dead-letters", {})
                for lane in (*LANES, "hold", "upload", "fetch", "delivery", "events")
            },
            queue_urls={lane: _lane(lane) for lane in LANES},
            hold_queue_url=_queue("hold-queue", {"VisibilityTimeout": "420"}),
            upload_queue_url=_lane("upload"),
            fetch_queue_url=_lane("fetch"),
            events_topic=_backend("sns").create_topic("events").arn,
            usage_queue_url=_consumer("usage"),
            unpublished_events_url=_queue("unpublished-events", {}),
            usage_dead_letters_url=_queue("usage-dead-letters", {}),
            usage_table=_table("UsageTable"),
            counted_events_table=_table("CountedEventsTable"),
            pauses_table=_table("PausesTable"),
            batches_table=_table("BatchesTable"),
            endpoints_table=_table("EndpointsTable"),
            deliveries_table=_table("DeliveriesTable"),
            webhooks_queue_url=_consumer("webhooks"),
            delivery_queue_url=_queue("delivery", {"VisibilityTimeout": "270"}),
            webhooks_secret=_secret("webhooks", "w" * 64),
            message_key=_secret("message-key", MESSAGE_KEY, made_seconds_ago=120),
        )


@pytest.fixture
def functions(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Functions:
    """All functions of the template."""
    return Functions(aws, monkeypatch)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The functions' log."""
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    return stream


@pytest.fixture
def bearer(aws: Aws) -> dict[str, str]:
    """The credential of a paying tenant."""
    tenants = TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)
    tenants.add_tenant(Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1))
    key, _ = create_key(
        CreateKeyPorts(audit=trail_of(), tenants=tenants, clock=lambda: 1, randomness=random.Random(7).randbytes),
        "acme",
        label=None,
    )
    return {"authorization": f"Bearer {key}"}


def _state_machine() -> str:
    definition = {"StartAt": "Hold", "States": {"Hold": {"Type": "Pass", "End": True}}}
    role = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/hold"
    arn: str = _backend("stepfunctions").create_state_machine("hold", json.dumps(definition), role).arn
    return arn


def _lane(name: str) -> str:
    redrive = {"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:123456789012:{name}-dead-letters", "maxReceiveCount": 5}
    return _queue(name, {"VisibilityTimeout": "360", "RedrivePolicy": json.dumps(redrive)})


def _consumer(name: str) -> str:
    """A queue that hears of all events."""
    url = _queue(name, {"VisibilityTimeout": "180"})
    of, to = (f"arn:aws:{service}:{REGION}:{DEFAULT_ACCOUNT_ID}" for service in ("sns", "sqs"))
    subscription = _backend("sns").subscribe(f"{of}:events", f"{to}:{name}", "sqs")
    subscription.attributes["RawMessageDelivery"] = "true"
    return url


def _queue(name: str, attributes: dict[str, str]) -> str:
    _backend("sqs").create_queue(name, **attributes)
    return f"https://sqs.{REGION}.amazonaws.com/{DEFAULT_ACCOUNT_ID}/{name}"


def _secret(name: str, text: str, *, made_seconds_ago: int = 0) -> str:
    """A secret of that age; younger ones do not sign yet."""
    secret, _ = _backend("secretsmanager")._add_secret(name, secret_string=text)
    for version in secret.versions.values():
        version["createdate"] -= made_seconds_ago
    arn: str = secret.arn
    return arn


def _table(logical_id: str) -> str:
    properties: dict[str, Any] = dict(TEMPLATE["Resources"][logical_id]["Properties"])
    stream = properties.get("StreamSpecification")
    _backend("dynamodb").create_table(
        logical_id,
        schema=properties["KeySchema"],
        attr=[attribute for attribute in properties["AttributeDefinitions"] if not is_optional(attribute)],
        global_indexes=[index for index in properties.get("GlobalSecondaryIndexes", []) if not is_optional(index)],
        indexes=[],
        streams=stream and {"StreamEnabled": True, **stream},
        billing_mode=properties["BillingMode"],
        throughput=None,
        sse_specification=None,
        tags=[],
        deletion_protection_enabled=None,
        warm_throughput=None,
    )
    return logical_id


def _backend(service: str) -> Any:
    """moto's own store of a service. Each test has two dozen fresh queues and tables: made by calls of the API they
    would take most of its time."""
    return get_backend(service)[DEFAULT_ACCOUNT_ID][REGION]  # type: ignore[call-overload]
