"""The real handlers, loaded from functions/ with their own environment, and events as AWS makes them."""

from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

import boto3
import pytest
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.tenants import Caller, Tier, context_of
from tests.conformity import assert_described
from tests.support.fakes.pictures import jpeg
from tests.support.notifications import event as notification_of

if TYPE_CHECKING:
    from tests.contract.conftest import Aws

ROOT = Path(__file__).parents[2]
PHOTO = jpeg(320, 240)
SMALL_PHOTO = jpeg(64, 48)
URL = "https://hooks.example.com/darkroom"


@dataclass(frozen=True)
class Context:
    """A Lambda context with the attributes that the handlers read."""

    function_name: str
    aws_request_id: str = "1b7b0f0e-0000-4000-8000-000000000001"
    memory_limit_in_mb: int = 512
    remaining_milliseconds: int = 60_000

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:us-east-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_milliseconds


def load(name: str, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """functions/<name>/app.py as Lambda imports it: once, at init, with the function's environment."""
    for variable, value in aws.environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    if name == "serve_page":
        monkeypatch.syspath_prepend(packed_page())
    path = ROOT / "functions" / name / "app.py"
    spec = importlib.util.spec_from_file_location(f"app_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def packed_page() -> str:
    """The layer's folder of Python with the page, made once per process."""
    layer = ROOT / "layers" / "page"
    folder = tempfile.TemporaryDirectory(prefix="darkroom-page-")
    atexit.register(folder.cleanup)
    subprocess.run([sys.executable, layer / "pack.py", layer / "web", folder.name], check=True)
    return folder.name


def call(module: ModuleType, event: dict[str, Any], **context: Any) -> dict[str, Any]:
    """The handler's answer; for a request to the API, openapi.json must describe it."""
    answer: dict[str, Any] = module.handler(event, Context(module.__name__.removeprefix("app_"), **context))
    json.dumps(answer)  # Lambda does
    # An authorizer answers the gateway, in another form, and the page is no part of the API.
    if "statusCode" in answer and hasattr(module, "app"):
        request = event["requestContext"]["http"]
        assert_described(
            request["method"],
            request["path"],
            access=module.app.access.access,
            status=answer["statusCode"],
            headers=answer["headers"],
            body=answer.get("body"),
        )
    return answer


def is_passed_as_text(content_type: str) -> bool:
    """Whether API Gateway passes a body of that type as text; AWS names no types, and these are what it was seen to do
    (https://github.com/ministackorg/ministack/pull/766)."""
    media_type = content_type.partition(";")[0].strip().lower()
    of_text = ("application/json", "application/xml", "application/javascript")
    return media_type.startswith("text/") or media_type in of_text


def http_event(
    method: str, path: str, *, body: bytes | None = None, headers: dict[str, str] | None = None, query: str = ""
) -> dict[str, Any]:
    """An HTTP API event, payload 2.0, with the body as text or base64 by its `content-type`; several values of one
    parameter are joined by a comma."""
    is_text = is_passed_as_text((headers or {}).get("content-type", ""))
    pairs = {name: ",".join(values) for name, values in parse_qs(query, keep_blank_values=True).items()}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers or {},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
            "requestId": "gateway-request-1",
            "stage": "$default",
        },
        "isBase64Encoded": body is not None and not is_text,
    }
    if pairs:
        event["queryStringParameters"] = pairs
    if body is not None:
        event["body"] = body.decode(errors="replace") if is_text else base64.b64encode(body).decode()
    return event


def received(queue_url: str) -> dict[str, Any]:
    """An SQS event with the messages that the queue delivers now."""
    sqs = boto3.client("sqs")
    messages = sqs.receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    ).get("Messages", [])
    return {"Records": [record(message, queue=queue_url.rpartition("/")[2]) for message in messages]}


def written(table: str) -> list[dict[str, Any]]:
    """The records of a table's stream, none if the table is gone; moto's own API of streams does not describe them."""
    tables = get_backend("dynamodb")[DEFAULT_ACCOUNT_ID]["us-east-1"].tables
    shard = tables[table].stream_shard if table in tables else None
    return [] if shard is None else [item.to_json() for item in shard.items]


def record(message: Any, queue: str) -> dict[str, Any]:
    """One record of an SQS event, from a message received from that queue."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {name[0].lower() + name[1:]: value for name, value in attribute.items()}
            for name, attribute in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }


class Functions:
    """All functions of the template, loaded."""

    def __init__(self, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
        self.aws = aws
        self._monkeypatch = monkeypatch
        self._loaded: dict[str, ModuleType] = {}

    def __getattr__(self, name: str) -> ModuleType:
        if name not in self._loaded:
            self._loaded[name] = load(name, self.aws, self._monkeypatch)
        return self._loaded[name]

    def post(self, body: bytes | None = PHOTO, query: dict[str, str] | None = None, **headers: str) -> dict[str, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        event = http_event("POST", "/images", body=body, headers=named, query=urlencode(query or {}))
        return call(self.submit_image, event)

    def get(self, path: str, **headers: str) -> dict[str, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        return call(self.read_image, http_event("GET", path, headers=named, query=query))

    def work(self) -> dict[str, Any]:
        return call(self.transcode_image, received(self.aws.slow_queue_url))

    def begin(self, body: bytes = PHOTO, key: str | None = None, **announced: Any) -> dict[str, Any]:
        written = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), **announced}
        headers = {} if key is None else {"idempotency-key": key}
        return call(
            self.begin_upload, http_event("POST", "/uploads", body=json.dumps(written).encode(), headers=headers)
        )

    def upload(self, image_id: str, body: bytes = PHOTO) -> None:
        """What S3 does with an accepted form, and a second time: events may come twice."""
        boto3.client("s3").put_object(Bucket=self.aws.uploads_bucket, Key=f"uploads/{image_id}", Body=body)
        for _ in range(2):
            self.tell(notification_of(f"uploads/{image_id}"))

    def tell(self, body: str) -> None:
        boto3.client("sqs").send_message(QueueUrl=self.aws.upload_queue_url, MessageBody=body)

    def hear(self, **context: Any) -> dict[str, Any]:
        return call(self.accept_upload, received(self.aws.upload_queue_url), **context)

    def row(self, image_id: str) -> Image:
        image = self.table.get(image_id)
        assert image is not None
        return image

    @property
    def table(self) -> ImagesTable:
        return ImagesTable(boto3.client("dynamodb"), self.aws.images_table)

    def objects(self, bucket: str) -> list[str]:
        return [entry["Key"] for entry in boto3.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]


def document(answer: dict[str, Any]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(answer["body"])
    return parsed


def problem(answer: dict[str, Any], status: int, code: str) -> dict[str, Any]:
    assert answer["statusCode"] == status
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    body = document(answer)
    assert body["status"] == status
    assert (body["type"], body["code"]) == (f"urn:darkroom:problem:{code.replace('_', '-')}", code)
    assert body["title"] and body["detail"] and body["correlation_id"] == "gateway-request-1"
    return body


type Measure = tuple[str, frozenset[tuple[str, str]]]
"""A metric's name and its dimensions."""


def emitted(output: str) -> Iterator[Measure]:
    """The metrics in a function's log, in the embedded metric format."""
    for line in output.splitlines():
        entry = json.loads(line) if line.startswith("{") else {}
        for directive in entry.get("_aws", {}).get("CloudWatchMetrics", ()):
            for names in directive["Dimensions"]:
                for metric in directive["Metrics"]:
                    yield metric["Name"], frozenset((name, entry[name]) for name in names)


def keyed(event: dict[str, Any], **caller: Any) -> dict[str, Any]:
    """The event that the gateway makes of a request by a tenant with a key."""
    acme = Caller(tenant_id="acme", tier=Tier.FREE, allowance=Tier.FREE.allowance, key_id="00000000")
    event["requestContext"]["authorizer"] = {"lambda": context_of(replace(acme, **caller))}
    return event


def problem_of(answer: dict[str, Any]) -> tuple[int, str]:
    document = json.loads(answer["body"])
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert document["type"] == f"urn:darkroom:problem:{document['code'].replace('_', '-')}"
    return answer["statusCode"], document["code"]


def asked(functions: Functions, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """The answer to a request about webhooks."""
    path, _, query = path.partition("?")
    content = None if body is None else json.dumps(body).encode()
    return call(functions.manage_webhooks, http_event(method, path, body=content, query=query))


def made(functions: Functions, url: str = URL) -> str:
    """The id of a new webhook."""
    answer = asked(functions, "POST", "/webhooks", {"url": url})
    assert answer["statusCode"] == 201
    webhook_id: str = document(answer)["id"]
    return webhook_id


def post(
    module: Any, *, query: str = "", key: str | None = None, body: bytes = SMALL_PHOTO, **caller: Any
) -> dict[str, Any]:
    headers = {} if key is None else {"idempotency-key": key}
    return call(module, keyed(http_event("POST", "/images", body=body, query=query, headers=headers), **caller))


def announce(functions: Functions, photo: bytes = SMALL_PHOTO, key: str | None = None, **caller: Any) -> dict[str, Any]:
    body = json.dumps({"bytes": len(photo), "sha256": hashlib.sha256(photo).hexdigest()}).encode()
    headers = {} if key is None else {"idempotency-key": key}
    return call(functions.begin_upload, keyed(http_event("POST", "/uploads", body=body, headers=headers), **caller))
