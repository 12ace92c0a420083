"""Who may be named to hear of an image: a webhook of its tenant, or nobody where no webhooks are deployed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.operations.webhooks.find_recipient import has_recipient
from darkroom.ports.images import HasRecipient, no_recipient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def has_recipient_of(endpoints_table: str, dynamodb: DynamoDBClient) -> HasRecipient:
    """Whether a webhook of that id can be told, by the table that a stack without webhooks does not name."""
    if not endpoints_table:  # guard: webhooks-off-no-recipient
        return no_recipient
    return partial(has_recipient, EndpointsTable(dynamodb, endpoints_table))
