"""What scheduled images need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.schedules.hold import ReleaseWindow


class Reservations(Protocol):
    """The stretches of time that releases have reserved in each lane. Every method raises Retryable if it cannot
    answer."""

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        """Reserves a stretch of that length behind all others, and returns when it begins. A repetition after a lost
        answer reserves one more: that costs time, and nothing else."""

    def busy_until(self, lane: str) -> Milliseconds:
        """When the last reserved stretch ends; 0 if there never was one."""

    def note_window(self, key: str, window: ReleaseWindow) -> None:
        """Stores the latest window of the batch under `key`, for the call that continues it. It is deleted after a
        month: no execution repeats a release for that long."""

    def window_of(self, key: str) -> ReleaseWindow | None:
        """The latest window stored for that batch, by a consistent read."""


class Holds(Protocol):
    """The objects in which images wait. Every method raises Retryable if the store cannot answer."""

    def put(self, key: str, dumped: bytes) -> None:
        """Stores the object; an existing one with the same key has the same content."""

    def get(self, key: str) -> bytes | None:
        """The object, or None if there is (or remains) none. Raises UnreadableBatch if it is larger than any batch: it
        might not fit into memory."""

    def delete(self, key: str) -> None:
        """Removes the object; a missing one is not an error."""


class WakeUps(Protocol):
    """What wakes a batch in time."""

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        """Makes sure that the batch under `key` is released at `wake_at`: under `name`, or under another name if that
        one was used up without success. Raises Retryable if that cannot be promised now."""
