"""What API handlers need to hold tenants to their allowances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.kernel import clients
from darkroom.aws.tenants.token_buckets_table import TokenBucketsTable
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def rate_limit_of(dynamodb: DynamoDBClient, table_name: str) -> TakeTokenPorts:
    """The ports of taking a token. Their client is unseen by the circuits: a tenant that is throttled at its own bucket
    must not open everybody's."""
    return TakeTokenPorts(token_buckets=TokenBucketsTable(clients.impatient(dynamodb), table_name), clock=clock)
