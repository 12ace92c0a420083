"""What usage adds to functions of the core, which load it by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.kernel import clients
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.operations.usage.read_usage import ReadUsagePorts
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def sums_of(usage_table: str, dynamodb: DynamoDBClient) -> UsageTable:
    """What tenants store. Its client is unseen by the circuits."""
    return UsageTable(clients.impatient(dynamodb), usage_table)


def read_usage_ports(usage_table: str, dynamodb: DynamoDBClient) -> ReadUsagePorts:
    """The ports of `read_usage`."""
    return ReadUsagePorts(sums=UsageTable(dynamodb, usage_table), clock=clock)
