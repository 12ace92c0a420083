"""Rows of webhooks and their deliveries, and the function behind their API."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

from darkroom.domain.kernel.tenants import Allowance, Caller, Tier, context_of
from darkroom.domain.webhooks.delivery import (
    Delivery,
    new_delivery,
)
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from darkroom.egress import EgressPolicy, read_url
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.wiring.webhooks import manage_webhooks
from repository.report import ROOT
from tests.conformity import assert_described
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.world import TENANT, WebhooksWorld
from tests.support.images import NOW


def endpoint(place: int = 0, *, tenant_id: str = "acme", number: int = 1, **stated: Any) -> Endpoint:
    usual: dict[str, Any] = {"url": "https://hooks.example.com/", "events": ("image.*",), "created_at": NOW}
    return Endpoint(tenant_id=tenant_id, endpoint_id=endpoint_id_from(place, number.to_bytes(10)), **usual | stated)


def delivery(number: int = 1, *, to: Endpoint | None = None, **stated: Any) -> Delivery:
    target = to or endpoint()
    row = new_delivery(
        endpoint_id=target.endpoint_id,
        tenant_id=target.tenant_id,
        event_id=f"{number:026d}-3",
        event_type="image.done",
        time=NOW + number,
        body='{"data":{"a":"é"}}',
        now=NOW + number,
    )
    return replace(row, **stated)


URL = "https://hooks.example.com/darkroom"


class Told(NamedTuple):
    """An answer of the API."""

    status: int
    headers: dict[str, str]
    body: Any


class Api:
    """The function behind the API: `world` has its stores."""

    def __init__(self, world: WebhooksWorld, function: str = "manage_webhooks") -> None:
        self.world = world
        spec = importlib.util.spec_from_file_location("app", ROOT / "functions" / function / "app.py")
        assert spec is not None and spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        tenant: str = TENANT,
        scopes: frozenset[str] | None = None,
        content_type: str = "application/json",
    ) -> Told:
        path, _, query = path.partition("?")
        allowance = Allowance(requests_per_second=1_000, burst=10_000)
        caller = Caller(tenant_id=tenant, tier=Tier.FREE, allowance=allowance, key_id="k", scopes=scopes)
        sent = {
            "version": "2.0",
            "rawPath": path,
            "headers": {"content-type": content_type},
            "queryStringParameters": {name: values[-1] for name, values in parse_qs(query, True).items()},
            "requestContext": {
                "http": {"method": method, "path": path},
                "requestId": "request-1",
                "stage": "$default",
                "authorizer": {"lambda": context_of(caller)},
            },
            "body": body if body is None or isinstance(body, str) else json.dumps(body),
        }
        context = SimpleNamespace(
            function_name="f", memory_limit_in_mb=512, invoked_function_arn="arn", aws_request_id="invocation-1"
        )
        answer = self.module.handler(sent, context)
        assert_described(
            method,
            path,
            access="keys",
            status=answer["statusCode"],
            headers=answer["headers"],
            body=answer.get("body"),
        )
        content = answer.get("body")
        return Told(answer["statusCode"], answer["headers"], json.loads(content) if content else None)

    def make(self, url: str = URL, **more: Any) -> Any:
        made = self("POST", "/webhooks", {"url": url, **more})
        assert made.status == 201, made.body
        return made.body

    def refusal(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
        response = self(method, path, body, **more)
        return response.status, response.body["code"]


def webhooks_api(monkeypatch: pytest.MonkeyPatch) -> Api:
    """The function behind the API, over a world of its own."""

    def check_url(url: str) -> None:
        read_url(url, EgressPolicy())

    world = WebhooksWorld(check_url=check_url)
    rate_limit = TakeTokenPorts(token_buckets=FakeTokenBuckets(), clock=world.clock)
    monkeypatch.setenv("ACCESS", "keys")
    monkeypatch.setattr(manage_webhooks, "wire", lambda: (world.manage(), rate_limit))
    return Api(world)
