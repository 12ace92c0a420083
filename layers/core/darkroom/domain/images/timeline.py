"""When an attempt at an image reached each of its stages, for the one line that its worker logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds

type Mark = Literal["accepted", "enqueued", "received", "claimed", "decoded", "developed", "stored", "finished"]

MARKS: tuple[Mark, ...] = (
    *("accepted", "enqueued", "received", "claimed"),
    *("decoded", "developed", "stored", "finished"),
)
"""In their order: the image was accepted with its bytes; the message that the worker received was sent; the worker
received it; its attempt had begun; the original was read, decoded and scaled; the last variant was encoded; the last
one was stored; the row said how the attempt had ended."""


@dataclass(kw_only=True)
class AttemptTimeline:
    """The instants of the marks that a delivery has reached, and the `run` and `attempt` that it has begun, 0 if none.

    The clocks are those of several machines: a mark may be a little earlier than the one before it.
    """

    instants: dict[Mark, Milliseconds] = field(default_factory=dict)
    run: int = 0
    attempt: int = 0

    def begin(self, claimed: Image, now: Milliseconds) -> None:
        """Notes that the delivery has claimed its image, whose row is given."""
        self.run, self.attempt = claimed.run, claimed.attempt
        self.reach("accepted", claimed.accepted_at or claimed.created_at)
        self.reach("claimed", now)

    def reach(self, mark: Mark, now: Milliseconds) -> None:
        """Notes that the mark is reached; of several threads that reach it, the last one counts."""
        self.instants[mark] = now

    def since_accepted(self) -> dict[Mark, int]:
        """The milliseconds from `accepted` to each mark that was reached, in their order."""
        accepted = self.instants["accepted"]
        return {mark: self.instants[mark] - accepted for mark in MARKS if mark in self.instants}
