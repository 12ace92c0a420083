"""Messages as queues deliver them: signed as our senders sign them, by the real signer."""

from __future__ import annotations

from typing import Any

from darkroom.aws.kernel.signing import MessageSigner
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.signature import SIGNATURE, Received
from darkroom.ports.kernel import Secret
from tests.support.fakes.secrets import FakeSecret

KEYS = FakeSecret()
"""Keys that nobody replaces."""

NOW: Milliseconds = 1_795_251_600_000

SIGNER = MessageSigner(KEYS, lambda: NOW)


def received(
    queue: str,
    message: Message | str,
    *,
    group: str = "default",
    signer: MessageSigner = SIGNER,
    message_id: str = "message-1",
    sent_at: Milliseconds = NOW,
) -> Received:
    """A message to that queue as its receiver gets it; its own tenant's, if it has one, and else of that group."""
    body = message if isinstance(message, str) else message.model_dump_json()
    own = group if isinstance(message, str) else message.tenant_id
    return _as_received(signer.signed(queue, group=own, body=body), message_id=message_id, sent_at=sent_at)


def unsigned(body: str, *, group: str | None = None, message_id: str = "message-1") -> Received:
    """A message that anyone may have sent, long after the first key was made."""
    return Received(message_id=message_id, body=body, group=group, signature=None, sent_at=NOW)


def keys_of(secret: Secret, now: Milliseconds = NOW) -> MessageSigner:
    """The signer with these keys at that instant."""
    return MessageSigner(secret, lambda: now)


def signature_in(sent: Any) -> str:
    """The signature in a message as SQS's API takes it."""
    return str(sent["MessageAttributes"][SIGNATURE]["StringValue"])


def _as_received(sent: Any, *, message_id: str, sent_at: Milliseconds) -> Received:
    return Received(
        message_id=message_id,
        body=sent["MessageBody"],
        group=sent["MessageGroupId"],
        signature=signature_in(sent),
        sent_at=sent_at,
    )
