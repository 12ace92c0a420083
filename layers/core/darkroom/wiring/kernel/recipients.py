"""Who may be named to hear of an image: a webhook of its tenant, or nobody where no webhooks are deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.ports.images import HasRecipient, no_recipient
from darkroom.wiring.kernel.parts import WebhooksForCore, load_part

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def has_recipient_of(endpoints_table: str, dynamodb: DynamoDBClient) -> HasRecipient:
    """Whether a webhook of that id can be told, by the table that a stack without webhooks does not name."""
    if not endpoints_table:  # guard: webhooks-off-no-recipient
        return no_recipient
    webhooks: WebhooksForCore = load_part("wiring.webhooks.for_core")
    return webhooks.has_recipient_of(endpoints_table, dynamodb)
