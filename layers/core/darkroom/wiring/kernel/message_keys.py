"""The wiring of what signs messages, and of what checks those that come."""

from __future__ import annotations

from darkroom.aws.dead_letters.dead_letters import RejectedMessageQueues
from darkroom.aws.kernel import clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.kernel.signing import MessageSigner
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.settings import DeadLetterSettings, MessageKeySettings
from darkroom.wiring.kernel.runtime import clock


def message_keys_of(settings: MessageKeySettings) -> StoredSecret:
    """The keys of messages; nothing is asked for them before the first message."""
    return StoredSecret(clients.secrets_manager_client, settings.message_key, clock=clock)


def signer_of(message_keys: StoredSecret) -> MessageSigner:
    """Signs messages with these keys."""
    return MessageSigner(message_keys, clock)


def checking_of(message_keys: StoredSecret, settings: DeadLetterSettings) -> CheckPorts:
    """Checks messages with these keys, and places dead letters."""
    return CheckPorts(
        message_keys=message_keys,
        rejected_messages=RejectedMessageQueues(clients.sqs_client_without_retries, settings.dead_letter_queues),
    )
