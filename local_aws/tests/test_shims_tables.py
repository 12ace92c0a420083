"""The emulator does what DynamoDB does with a table's limits: its shim next to the gap that it closes in stock
MiniStack."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from local_aws.tests.emulator_server import EmulatorServer
from local_aws.tests.streams import BY_PK

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

WRITES = 20
"""More than a few seconds' worth of writes at one per second."""


def table(server: EmulatorServer) -> str:
    name = f"table-{uuid4().hex[:8]}"
    server.client("dynamodb").create_table(TableName=name, **BY_PK)
    return name


def limit(server: EmulatorServer, name: str, units: int) -> None:
    server.client("dynamodb").update_table(TableName=name, OnDemandThroughput={"MaxWriteRequestUnits": units})


def refusals(server: EmulatorServer, name: str, operation: str, request: dict[str, Any]) -> set[str]:
    """The codes of the errors with which some of many writes were refused."""
    codes = set()
    for _ in range(WRITES):
        try:
            getattr(server.client("dynamodb"), operation)(**request)
        except ClientError as error:
            codes.add(error.response["Error"]["Code"])
    return codes


ITEM = {"pk": {"S": "one"}}


def requests(name: str) -> dict[str, dict[str, Any]]:
    return {
        "put_item": {"TableName": name, "Item": ITEM},
        "update_item": {"TableName": name, "Key": ITEM},
        "delete_item": {"TableName": name, "Key": ITEM},
        "batch_write_item": {"RequestItems": {name: [{"PutRequest": {"Item": ITEM}}]}},
        "transact_write_items": {"TransactItems": [{"Put": {"TableName": name, "Item": ITEM}}]},
    }


def test_gap_stock_takes_more_writes_than_the_limit(stock: EmulatorServer) -> None:
    name = table(stock)
    limit(stock, name, 1)
    assert refusals(stock, name, "put_item", requests(name)["put_item"]) == set()


@pytest.mark.parametrize("operation", requests(""))
def test_writes_beyond_the_limit_are_throttled(emulator: EmulatorServer, operation: str) -> None:
    name = table(emulator)
    limit(emulator, name, 1)
    assert refusals(emulator, name, operation, requests(name)[operation]) == {"ThrottlingException"}


def test_reads_and_other_tables_are_not_throttled(emulator: EmulatorServer) -> None:
    name, other = table(emulator), table(emulator)
    limit(emulator, name, 1)
    assert refusals(emulator, name, "get_item", {"TableName": name, "Key": ITEM}) == set()
    assert refusals(emulator, other, "put_item", requests(other)["put_item"]) == set()


def test_without_the_limit_every_write_is_taken_again(emulator: EmulatorServer) -> None:
    name = table(emulator)
    limit(emulator, name, 1)
    limit(emulator, name, -1)
    assert refusals(emulator, name, "put_item", requests(name)["put_item"]) == set()
