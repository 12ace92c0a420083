"""Sending an image's message; what cannot be sent now is due at once, so that the sweeper sends it."""

from __future__ import annotations

from contextlib import suppress

from darkroom.domain.errors import Retryable
from darkroom.domain.image import Image, due_now, message_for
from darkroom.ports import Clock, Fenced, Images, Lanes

DUE_FENCE = ("status", "run", "attempt", "due_at")
"""What a write that moves `due_at` decides on: of two that read the same row only one moves it."""


def enqueue(image: Image, *, images: Images, lanes: Lanes, clock: Clock) -> bool:
    """Sends the message of `image` to its lane; returns whether it was sent. A queue that cannot answer is no error."""
    try:
        lanes.send(message_for(image))
    except Retryable:
        # If that fails too, the row keeps the due_at that it has, or somebody has already taken the image up.
        with suppress(Retryable, Fenced):
            images.change(image, due_now(image, now=clock()), fence=DUE_FENCE)
        return False
    return True
