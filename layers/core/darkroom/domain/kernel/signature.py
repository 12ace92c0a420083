"""The signature of a queue message: who has the key has sent exactly this, to this queue."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum

from darkroom.domain.kernel.instants import Milliseconds

SIGNATURE = "signature"
"""The message attribute that carries it."""

_LABEL = "darkroom message v1"
"""The first thing that is signed: no signature of anything else, or of another version, is one of a message."""

# The key's id comes last: it is the id of a version in Secrets Manager, which may have any characters.
_SIGNATURE = re.compile(r"v1\.([0-9a-f]{64})\.(.{1,64})")

SETTLING_SECONDS = 60
"""How long a new key only verifies before it signs: longer than a reader may think that there is no such key."""

UPDATE_SECONDS = 3600
"""How long after the first key was made messages without a signature count: the update that brings signatures takes
minutes, and until its end the version before it sends messages too."""


class VerificationFailure(StrEnum):
    """Why a message does not verify."""

    UNSIGNED = "unsigned"
    MALFORMED = "malformed_signature"
    """What it has is no signature, or one of a newer version."""
    UNKNOWN_KEY = "unknown_key"
    FORGED = "forged"
    """The signature is of another body, group or queue, or made with another key."""
    MOVED_BACK = "moved_back"
    """It was rejected before, and moved back from the dead letters."""


class NotVerified(ValueError):
    """A message does not verify; `mistrust` says why."""

    def __init__(self, mistrust: VerificationFailure) -> None:
        super().__init__(mistrust.value)
        self.mistrust = mistrust


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A message's signature: the id of its key, and the HMAC-SHA256 in hexadecimal digits."""

    key_id: str
    digest: str

    def __str__(self) -> str:
        return f"v1.{self.digest}.{self.key_id}"

    def covers(self, *, secret: str, queue: str, group: str, body: str) -> bool:
        """Whether it was made with that key over exactly this message."""
        return hmac.compare_digest(self.digest, _digest(secret, queue, group, body))


@dataclass(frozen=True, kw_only=True)
class Received:
    """A message as a queue delivers it, before anything of it is believed but what the queue itself says: its id, its
    group if it is known, and when it was sent. `signature` is None if it has none."""

    message_id: str
    body: str
    group: str | None
    signature: str | None
    sent_at: Milliseconds


def sign(*, key_id: str, secret: str, queue: str, group: str, body: str) -> Signature:
    """The signature of a message of that group to the queue with that name, which is its lane's or its purpose."""
    return Signature(key_id=key_id, digest=_digest(secret, queue, group, body))


def read_signature(text: str) -> Signature:
    """The signature that a message carries. Raises NotVerified."""
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise NotVerified(VerificationFailure.MALFORMED)
    return Signature(key_id=match[2], digest=match[1])


def may_sign(created_at: Milliseconds, now: Milliseconds) -> bool:
    """Whether a key that was made at `created_at` is old enough for every reader to know it."""
    return now >= created_at + SETTLING_SECONDS * 1000  # guard: signatures-new-key-settling


def is_from_before(first_key_at: Milliseconds, sent_at: Milliseconds) -> bool:
    """Whether a message that was sent then may be the version's before signatures: `first_key_at` is when the first key
    was made."""
    return sent_at <= first_key_at + UPDATE_SECONDS * 1000  # guard: signatures-update-period-end


def _digest(secret: str, queue: str, group: str, body: str) -> str:
    # Each part with its length, so that nothing can move from one to the next.
    # guard: signatures-group-covered, signatures-queue-covered
    parts = [part.encode() for part in (_LABEL, queue, group, body)]
    signed = b"".join(b"%d:%b" % (len(part), part) for part in parts)  # guard: signatures-parts-delimited
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
