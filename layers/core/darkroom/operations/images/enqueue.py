"""Sends an image's message; if that fails, the image is due at once, so that the sweeper sends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.image import Image, message_for
from darkroom.domain.images.transitions import EDIT_DELAY_SECONDS, due_now
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS
from darkroom.ports.images import EditQueue, HoldQueue, Images, Lanes
from darkroom.ports.kernel import Clock, Fenced

END_FENCE = ("status", "run", "attempt", "edit_number")  # guard: bulk-edit-end-fence
"""The fence of a write that ends a run: it says whether an edit waits for that."""

DUE_FENCE = (*END_FENCE, "due_at", "deleted_at")  # guard: fence-on-sweep, fence-on-deleted
"""The fence of a write that moves `due_at`: of two writers that read the same row only one moves it, and none moves
that of an image that was deleted meanwhile, in the very millisecond in which it was due."""


@dataclass(frozen=True, kw_only=True)
class EnqueuePorts:
    """What `enqueue` needs; an operation that sends messages adds its own ports."""

    images: Images
    lanes: Lanes
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class EnqueueInTimePorts(EnqueuePorts):
    """What `enqueue_in_time` needs; an operation that sends messages adds its own ports."""

    hold_queue: HoldQueue


def enqueue(ports: EnqueuePorts, image: Image) -> bool:
    """Sends the message of `image` to its lane; returns whether it was sent. A queue that cannot
    answer, or refuses, is no error: the row stands for the image. One that awaits its turn in a batch is sent when that
    has come."""
    if image.awaits_turn:  # guard: bulk-no-work-before-turn
        return True
    return send_or_mark_due(ports, image, lambda: ports.lanes.send(message_for(image)))


def enqueue_in_time(ports: EnqueueInTimePorts, image: Image) -> bool:
    """Like `enqueue`, but the message shows in its lane when the image is due: if that is later than the lane can delay
    it, the message goes to the hold queue."""
    if image.awaits_turn:  # guard: bulk-no-message-before-turn
        return True
    delay_seconds = seconds_until(image.process_at, ports.clock())

    def send() -> None:
        if delay_seconds > LANE_DELAY_SECONDS:
            ports.hold_queue.put(message_for(image).model_copy(update={"process_at": image.process_at}))
        else:
            ports.lanes.send(message_for(image), delay_seconds=delay_seconds)

    return send_or_mark_due(ports, image, send)


def send_or_mark_due(ports: EnqueuePorts, image: Image, send: Callable[[], None]) -> bool:
    """Calls `send`, which moves the image on; returns whether it was sent. If a queue cannot answer, or
    refuses, the image is due at once."""
    # guard: bookkeeping-unsent-to-sweeper, unsent-message-logged
    with bookkeeping("message not sent", image_id=image.image_id):
        send()
        return True
    mark_due(ports, image)
    return False


def enqueue_edit(ports: EnqueuePorts, edit_queue: EditQueue | None, image: Image) -> bool:
    """Like `enqueue`, but the message shows when no other edit may overtake this one any more, and goes to the queue of
    edits if there is one."""

    def send() -> None:
        if edit_queue is not None and image.edit_number is not None:
            edit_queue.put(message_for(image), number=image.edit_number)
        else:
            ports.lanes.send(message_for(image), delay_seconds=EDIT_DELAY_SECONDS)

    return send_or_mark_due(ports, image, send)


def mark_due(ports: EnqueuePorts, image: Image) -> None:
    """Makes an image due whose message could not be sent. If that fails too, the row keeps its present due_at, or
    another process has already taken the image up."""
    with bookkeeping("image not made due", image_id=image.image_id), suppress(Fenced):
        # guard: sweeper-unsent-due-at-once
        ports.images.change(image, due_now(image, now=ports.clock()), fence=DUE_FENCE)


def seconds_until(instant: Milliseconds | None, now: Milliseconds) -> int:
    """Whole seconds from now until that instant, rounded up so that nothing is early; 0 for none or a past one."""
    return 0 if instant is None else max(0, -(-(instant - now) // 1000))  # guard: delay-rounded-up
