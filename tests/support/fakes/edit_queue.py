"""A FIFO queue of edits as SQS delivers what is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from darkroom.domain.images.transitions import EDIT_DELAY_SECONDS
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message

DEDUPLICATED_SECONDS, KEPT_SECONDS = 300, 3600


@dataclass(kw_only=True)
class QueuedEdit:
    """A message in the queue: hidden until `shows_at`, whether it is delayed, in flight or backing off."""

    message: Message
    number: int
    sent_at: Milliseconds
    shows_at: Milliseconds
    receives: int = 0


@dataclass
class FakeEditQueue:
    """The `EditQueue` port. Of an image nothing is delivered while an earlier message of it is hidden, and a number is
    put once in five minutes, also if its message was deleted meanwhile."""

    clock: Callable[[], Milliseconds]
    queued: list[QueuedEdit] = field(default_factory=list)
    dropped: int = 0
    put_at: dict[tuple[str, int], Milliseconds] = field(default_factory=dict)

    def put(self, message: Message, *, number: int) -> None:
        now, key = self.clock(), (message.image_id, number)
        if now - self.put_at.get(key, now - DEDUPLICATED_SECONDS * 1000) < DEDUPLICATED_SECONDS * 1000:
            self.dropped += 1
            return
        self.put_at[key] = now
        shows_at = now + EDIT_DELAY_SECONDS * 1000
        self.queued.append(QueuedEdit(message=message, number=number, sent_at=now, shows_at=shows_at))

    def receive(self, *, visibility_seconds: int = 360) -> QueuedEdit | None:
        """The first message that may be delivered, hidden from now on."""
        now, waiting = self.clock(), set[str]()
        self.queued = [each for each in self.queued if now - each.sent_at < KEPT_SECONDS * 1000]
        for each in self.queued:
            if each.shows_at <= now and each.message.image_id not in waiting:
                self.hide(each, visibility_seconds)
                each.receives += 1
                return each
            waiting.add(each.message.image_id)
        return None

    def hide(self, each: QueuedEdit, seconds: int) -> None:
        each.shows_at = self.clock() + seconds * 1000

    def delete(self, each: QueuedEdit) -> None:
        self.queued = [other for other in self.queued if other is not each]
