"""The real handlers, loaded from functions/ with their own environment, and events as AWS makes them."""

from __future__ import annotations

import atexit
import base64
import functools
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from tests.conformity import assert_described
from tests.contract.conftest import Aws

ROOT = Path(__file__).parents[2]


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
