"""The dead letter of a message that does not verify: what came, and why it was not processed."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from darkroom.domain.kernel.signature import VerificationFailure

KEPT_CHARACTERS = 4096
"""What is kept of a rejected body: ours are far shorter, and a dead letter must fit into a message whatever came."""

_REASONS = {
    VerificationFailure.UNSIGNED: "It has no signature.",
    VerificationFailure.MALFORMED: "What it has for a signature is none of this version.",
    VerificationFailure.UNKNOWN_KEY: "It is signed with a key that is neither the current one nor the one before.",
    VerificationFailure.FORGED: "Its signature is not of this body, to this queue, in this group: it was altered "
    "or copied.",
    VerificationFailure.MOVED_BACK: "It was rejected before and moved back from the dead letters, which does not "
    "make it valid.",
}


class RejectedMessage(BaseModel):
    """What a queue's dead letters hold of a message that did not verify. It is no message of any queue: moved back, it
    is rejected again.

    `message_id` is SQS's id of what came: if it was rejected twice because an answer was lost, both name the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    v: Literal[1] = 1
    rejected: Annotated[str, Field(max_length=KEPT_CHARACTERS)]
    message_id: Annotated[str, Field(min_length=1, max_length=100)]
    sha256: str
    bytes: Annotated[int, Field(ge=0)]


def rejected_message(message_id: str, body: str) -> RejectedMessage:
    """The dead letter's body for that message; one that was rejected before stays as it is."""
    encoded = body.encode()
    return (
        read_rejected_message(body)  # guard: signatures-rejected-kept
        or RejectedMessage(
            rejected=body[:KEPT_CHARACTERS],  # guard: signatures-dead-letter-size
            message_id=message_id,
            sha256=hashlib.sha256(encoded).hexdigest(),
            bytes=len(encoded),
        )
    )


def read_rejected_message(body: str) -> RejectedMessage | None:
    """The rejected message, or None if the body is something else."""
    try:
        return RejectedMessage.model_validate_json(body)
    except ValidationError:
        return None


def explanation_of_rejection(mistrust: VerificationFailure, *, queue: str) -> dict[str, Any]:
    """Explains as JSON why a message was not processed."""
    return {
        "v": 1,
        "lane": queue,
        "cause": mistrust.value,
        "message": f"{_REASONS[mistrust]} No row was read or changed for it.",
    }
