"""Lets a received message be processed if this stack has sent it; any other becomes a dead letter that says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from darkroom.domain.kernel.lanes import DELIVERY, EDITS, EVENTS
from darkroom.domain.kernel.signature import NotVerified, Received, VerificationFailure, is_from_before, read_signature
from darkroom.ports.dead_letters import RejectedMessages
from darkroom.ports.kernel import Secret

_GROUP_IN: Mapping[str, tuple[str, ...]] = {
    EVENTS: ("data", "tenant_id"),  # guard: signatures-event-group
    DELIVERY: ("endpoint_id",),  # guard: signatures-endpoint-group
    EDITS: ("image_id",),  # guard: bulk-edit-fifo-group-in-body
}
"""Where a message's body has its group, by the name of its queue; elsewhere it is the tenant at its top."""


@dataclass(frozen=True, kw_only=True)
class CheckPorts:
    """What checking a message needs: the keys of messages, and where those that do not verify go."""

    message_keys: Secret
    rejected_messages: RejectedMessages


def never(body: str) -> bool:
    """Whether a body may come without a signature, in a queue to which only our own code sends."""
    return False


def check_message(
    ports: CheckPorts,
    queue: str,
    received: Received,
    *,
    may_be_unsigned: Callable[[str], bool] = never,
) -> VerificationFailure | None:
    """None if the message may be processed. Otherwise why not: then its dead letter is placed, and it may go; no row
    was read for it.

    `queue` is the name of the queue's lane or purpose, and `may_be_unsigned` tells the bodies of those who cannot sign
    and whom the queue's policy lets send. Raises Retryable if the keys cannot be read or the dead letter cannot be
    placed: the message must come again.
    """
    try:
        verify(ports.message_keys, queue, received, may_be_unsigned=may_be_unsigned)
    except NotVerified as error:
        reject_message(ports, queue, received, error.mistrust)
        return error.mistrust
    return None


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What became of messages that came together, by their index: which may be processed, why others were rejected, and
    which must come again, with what went wrong."""

    trusted: Sequence[int]
    rejected: Mapping[int, VerificationFailure]
    failures: Mapping[int, Exception]


def check_messages(ports: CheckPorts, queue: str, messages: Sequence[Received]) -> Checked:
    """Checks each message alone."""
    rejected: dict[int, VerificationFailure] = {}
    failures: dict[int, Exception] = {}
    for place, received in enumerate(messages):
        try:
            mistrust = check_message(ports, queue, received)
        except Exception as error:  # whatever it is, it is this message's, and no reason to fail any other
            failures[place] = error  # guard: signatures-unchecked-event
            continue
        if mistrust is not None:
            rejected[place] = mistrust
    trusted = [place for place in range(len(messages)) if place not in rejected and place not in failures]
    return Checked(trusted=trusted, rejected=rejected, failures=failures)


def reject_message(ports: CheckPorts, queue: str, received: Received, mistrust: VerificationFailure) -> None:
    """Places the dead letter of a message that does not verify. Raises Retryable if that may not have succeeded."""
    from darkroom.domain.dead_letters.rejection import explanation_of_rejection, rejected_message  # noqa: PLC0415 -- seldom

    rejected = rejected_message(received.message_id, received.body)
    ports.rejected_messages.put_rejected(queue, rejected, explanation_of_rejection(mistrust, queue=queue))


def verify(
    message_keys: Secret, queue: str, received: Received, *, may_be_unsigned: Callable[[str], bool] = never
) -> None:
    """Raises NotVerified unless this stack has sent the message to that queue, and Retryable if that cannot be told.

    It says nothing about when: a message may be days old, or a copy. The row decides that, by its run and schedule.
    """
    if received.signature is None:
        # guard: signatures-unsigned-rejected
        if may_be_unsigned(received.body) or _is_from_before(message_keys, received):
            return
        from darkroom.domain.dead_letters.rejection import read_rejected_message  # noqa: PLC0415 -- seldom

        is_back = read_rejected_message(received.body) is not None
        raise NotVerified(VerificationFailure.MOVED_BACK if is_back else VerificationFailure.UNSIGNED)
    signature = read_signature(received.signature)
    key = message_keys.version(signature.key_id)
    if key is None:
        raise NotVerified(VerificationFailure.UNKNOWN_KEY)
    group = _group_in(queue, received.body) if received.group is None else received.group
    # guard: signatures-match-required
    if not signature.covers(secret=key.text, queue=queue, group=group, body=received.body):
        raise NotVerified(VerificationFailure.FORGED)


def _is_from_before(message_keys: Secret, received: Received) -> bool:
    """Whether the version before signatures may have sent it. Once the first key was replaced, nothing is."""
    # guard: signatures-after-rotation
    return is_from_before(message_keys.current().created_at, received.sent_at) and message_keys.previous() is None


def _group_in(queue: str, body: str) -> str:
    """The group that our code gives a message to that queue with this body."""
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        group = json.loads(body)
        for name in _GROUP_IN.get(queue, ("tenant_id",)):
            group = group[name]
        return group if isinstance(group, str) else ""
    return ""
