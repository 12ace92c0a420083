"""Begins an ended image's next run: its row is reopened under a condition, then its message is sent.

After a crash midway the row decides: a run that it has left is never opened again, and if no message was sent for a
reopened row, the sweeper sends it.
"""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.images.enqueue import EnqueuePorts, enqueue
from darkroom.ports.kernel import Fenced

OPENING_FENCE = ("version", "status", "run")  # guard: fence-on-replay
"""An operator decides on the whole row that was read: of two concurrent decisions one opens it."""

_TRIES = 5
"""The sweeper may change a row between its read and its write; not five times in a row."""


def reopen_run(
    ports: EnqueuePorts,
    image: Image,
    *,
    why_not: Callable[[Image | None], str | None],
    opened: Callable[[Image], Image],
) -> tuple[Image | None, bool]:
    """Returns the row reopened for its next run, or as another writer left it, and whether this call opened it.
    `why_not` says why a row cannot be opened, `opened` returns the opened row.

    Raises Retryable if the table cannot answer.
    """
    current: Image | None = image
    for _ in range(_TRIES):
        if current is None or current.run > image.run or why_not(current) is not None:
            return current, False
        try:
            return ports.images.change(current, opened(current), fence=OPENING_FENCE), True
        except Fenced as lost:
            current = lost.current
    raise Retryable("the image changed under every attempt to open it")


def send_first_message(ports: EnqueuePorts, image: Image) -> None:
    """Sends the message of a run that no worker has begun."""
    if image.status is Status.PENDING and image.attempt == 0:
        enqueue(ports, image)
