"""Beginning an ended image's next run: its row is opened under a condition, then its message sent.

Whatever dies in between, the row decides: a run that it has left is never opened again, and where nobody sent a message
for an opened row, the sweeper does.
"""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.errors import Retryable
from darkroom.domain.image import Image, Status
from darkroom.operations.enqueue import EnqueuePorts, enqueue
from darkroom.ports import Fenced

OPENING_FENCE = ("version", "status", "run")
"""An operator decides on the whole row as it was read: of two at once, one opens it."""

_TRIES = 5
"""The sweeper may mark a row between its reading and its writing; five times in a row it does not."""


def open_row(
    ports: EnqueuePorts,
    image: Image,
    *,
    why_not: Callable[[Image | None], str | None],
    opened: Callable[[Image], Image],
) -> tuple[Image | None, bool]:
    """The row after it was opened for its next run, or as whoever came first has left it, and whether it was this call
    that opened it. `why_not` says why a row cannot be opened, `opened` is the row as it is then.

    Raises Retryable where the table cannot answer.
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
    """Sends the message of a run that nobody has begun."""
    if image.status is Status.PENDING and image.attempt == 0:
        enqueue(ports, image)
