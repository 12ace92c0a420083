"""Adapters over moto, what they ask, and answers that get lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
from botocore.client import BaseClient

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.events.event import PublishedEvent
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.tenants.api_keys import RANDOM_BYTES, ApiKey, digest_of, key_from_bits, key_id_of
from darkroom.domain.webhooks.row_events import event_of
from darkroom_cli.operator.aws.image_registry import ImageRegistryTable
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.ports import ImageRegistry
from tests.contract.conftest import Aws
from tests.support.fakes import FakeImages
from tests.support.images import pending


def spy(client: Any, operation: str, answer: Callable[[dict[str, Any], Any], Any]) -> list[dict[str, Any]]:
    """Lets `answer` see, and change, the request and the answer of each call of `operation`."""
    call, asked = client._make_api_call, []

    def make_api_call(name: str, arguments: dict[str, Any]) -> Any:
        if name != operation:
            return call(name, arguments)
        asked.append(arguments)
        return answer(arguments, lambda changed: call(name, changed))

    client._make_api_call = make_api_call
    return asked


def executions(aws: Aws) -> list[dict[str, Any]]:
    client = boto3.client("stepfunctions")
    listed = client.list_executions(stateMachineArn=aws.hold_state_machine)["executions"]
    return [
        json.loads(client.describe_execution(executionArn=execution["executionArn"])["input"]) for execution in listed
    ]


def numbered_event(number: int = 1, **stated: Any) -> PublishedEvent:
    row = pending(image_id=f"{number:026d}", **stated)
    event = event_of(None, row)
    assert event is not None
    return event


def images_of(kind: str, aws: Aws) -> ImageRegistry:
    return FakeImages() if kind == "fake" else ImageRegistryTable(boto3.client("dynamodb"), aws.images_table)


ACME = Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1)
KEY = key_from_bits(bytes(range(RANDOM_BYTES)))
STORED = ApiKey(key_id=key_id_of(KEY) or "", tenant_id="acme", digest=digest_of(KEY), created_at=2, label="ci")


def tenants_table_of(aws: Aws) -> TenantRegistryTable:
    return TenantRegistryTable(boto3.client("dynamodb"), aws.tenants_table)


def lose_first_answer(client: BaseClient, operation: str) -> None:
    """The next call of `operation` is applied, its answer never arrives, and the client sends it again."""
    call: Callable[..., Any] = client._make_api_call  # type: ignore[attr-defined]
    lost: list[str] = []

    def make_api_call(name: str, arguments: dict[str, Any]) -> Any:
        answer = call(name, arguments)
        if name == operation and not lost:
            lost.append(name)
            return call(name, arguments)
        return answer

    client._make_api_call = make_api_call  # type: ignore[attr-defined]


def with_lost_answer(table: ImagesTable, operation: str) -> ImagesTable:
    client = boto3.client("dynamodb")
    lose_first_answer(client, operation)
    return ImagesTable(client, table._table_name)
