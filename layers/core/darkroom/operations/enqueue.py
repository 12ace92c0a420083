"""Sending an image's message; what cannot be sent now is due at once, so that the sweeper sends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from darkroom.domain.errors import Retryable
from darkroom.domain.hold import LANE_DELAY_SECONDS
from darkroom.domain.image import Image, message_for
from darkroom.domain.instants import Milliseconds
from darkroom.domain.transitions import due_now
from darkroom.ports import Clock, Fenced, HoldQueue, Images, Lanes, UploadQueue

DUE_FENCE = ("status", "run", "attempt", "due_at")
"""What a write that moves `due_at` decides on: of two that read the same row only one moves it."""


def enqueue(image: Image, *, images: Images, lanes: Lanes, clock: Clock) -> bool:
    """Sends the message of `image` to its lane; returns whether it was sent. A queue that cannot answer is no error."""
    return _sent(lambda: lanes.send(message_for(image)), image, images=images, clock=clock)


def enqueue_in_time(image: Image, *, images: Images, lanes: Lanes, hold_queue: HoldQueue, clock: Clock) -> bool:
    """As `enqueue`, so that the message shows in its lane when the image is due: what the lane cannot hold that long
    goes to the hold queue."""
    delay_seconds = seconds_until(image.process_at, clock())

    def send() -> None:
        if delay_seconds > LANE_DELAY_SECONDS:
            hold_queue.put(message_for(image).model_copy(update={"process_at": image.process_at}))
        else:
            lanes.send(message_for(image), delay_seconds=delay_seconds)

    return _sent(send, image, images=images, clock=clock)


def remind(image: Image, *, images: Images, upload_queue: UploadQueue, clock: Clock) -> bool:
    """As `enqueue`, for an image whose upload is here and was not noticed."""
    return _sent(lambda: upload_queue.put(message_for(image)), image, images=images, clock=clock)


def _sent(send: Callable[[], None], image: Image, *, images: Images, clock: Clock) -> bool:
    try:
        send()
    except Retryable:
        # If that fails too, the row keeps the due_at that it has, or somebody has already taken the image up.
        with suppress(Retryable, Fenced):
            images.change(image, due_now(image, now=clock()), fence=DUE_FENCE)
        return False
    return True


def seconds_until(instant: Milliseconds | None, now: Milliseconds) -> int:
    """Whole seconds from now until that instant, rounded up so that nothing is early; 0 for none or a past one."""
    return 0 if instant is None else max(0, -(-(instant - now) // 1000))
