"""Develops a done image again, for an operator: its outputs are missing or bad.

Its variants stay, in the row and in the store, until the new run has made others.
"""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.image import DeadLetterState, Image, Status
from darkroom.domain.kernel.ids import is_image_id
from darkroom.operations.images.enqueue import EnqueuePorts
from darkroom_cli.operator.domain.next_run import redo
from darkroom_cli.operator.operations.images.reopen_run import reopen_run, send_first_message
from darkroom_cli.operator.operations.kernel.audit_trail import Trail


class NotRedoable(Exception):
    """This cannot be redone; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class RedoImagePorts(EnqueuePorts):
    """What a redo needs besides the ports of sending its message."""

    audit: Trail


def redo_image(ports: RedoImagePorts, image_id: str) -> Image:
    """Begins the next run of a done image; returns the row afterwards.

    Raises NotRedoable, and Retryable if the table cannot answer.
    """
    image = ports.images.get(image_id) if is_image_id(image_id) else None
    reason = _why_not(image)
    if image is None or reason is not None:
        raise NotRedoable(reason)
    with ports.audit.action("redo", image_id):
        now = ports.clock()
        after, _ = reopen_run(ports, image, why_not=_why_not, opened=lambda row: redo(row, now=now))
        if after is None or after.run == image.run:
            raise NotRedoable(_why_not(after))
        send_first_message(ports, after)  # guard: redo-message-sent
    return after


def _why_not(image: Image | None) -> str | None:
    if image is None:
        return "There is no image with this id."
    if image.is_deleted:  # guard: redo-deleted-refused
        return "Its client has deleted it: there is nothing left to develop."
    if image.status is Status.FAILED:
        return f"It has failed, in run {image.run}: replay it, by `darkroom dlq replay --image {image.image_id}`."
    if image.work is not None:
        return f"Work beside it is under way, in run {image.run} ({image.work.kind}, {image.status}): wait for its end."
    if image.status is not Status.DONE:
        begun = "" if image.run == 1 else ", which a replay has begun"
        return f"It is {image.status}, in run {image.run}{begun}: only an image that is done can be redone."
    if image.dead_letter is DeadLetterState.OWED:  # guard: redo-after-owed-dead-letter
        return f"Work beside it has failed, in run {image.run}: replay it, or wait a minute for its dead letter."
    return None
