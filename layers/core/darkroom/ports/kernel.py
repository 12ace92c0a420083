"""What every part needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from darkroom.domain.kernel.instants import Milliseconds


type Clock = Callable[[], Milliseconds]
"""Returns the current instant."""


type Randomness = Callable[[int], bytes]
"""Returns that many random bytes."""


type Jitter = Callable[[], float]
"""Returns a random number in [0, 1), by which pauses differ."""


type AtOnce = Callable[[Sequence[Callable[[], Any]]], Sequence[Any]]
"""Does several works at the same time, in any order, and returns their results in the given order. If some fail, it
waits for the others and raises the failure of the first in the given order."""


class Fenced(Exception):
    """A conditional write lost its race: the row is not the one that it was decided on. `current` is the current
    row."""

    def __init__(self, current: Any) -> None:
        super().__init__("the row changed since it was read")
        self.current = current


class UnreadableRow(Retryable):
    """A row says something that this version does not know, because a newer one wrote it; a version that can read it
    will.

    It concerns only this row: all others are fine. `row_id` is the image's id (or the tenant's, the key's, the
    endpoint's; a delivery's comes after its endpoint's and a slash) and `reason` what cannot be read. Ids and the keys
    of indexes can always be read: whose it is, when the sweeper must look at it again, and since when an image waits.
    `events` are the types that an endpoint wants, None if that cannot be read.
    """

    def __init__(
        self,
        row_id: str,
        reason: str,
        *,
        tenant_id: str | None = None,
        due_at: Milliseconds | None = None,
        waiting_since: Milliseconds | None = None,
        events: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(
            f"the row of {row_id} cannot be read ({reason}): a newer version wrote it; deploy that version again",
            retry_after_seconds=UNREADABLE_SECONDS,
        )
        self.row_id, self.reason, self.tenant_id = row_id, reason, tenant_id
        self.due_at, self.waiting_since, self.events = due_at, waiting_since, events


UNREADABLE_SECONDS = 60
"""How long it is pointless to ask for an unreadable row again: a deployment takes longer than that."""


@dataclass(frozen=True, kw_only=True)
class SecretVersion:
    """One version of a secret: its id, its text, which is in no `repr`, and when it was made."""

    version_id: str
    text: str = field(repr=False)
    created_at: Milliseconds


class Secret(Protocol):
    """A secret that operators may replace; the version before the current one stays known. Every method raises
    Retryable if what it needs was never read, and cannot be read now."""

    def current(self) -> SecretVersion:
        """The version in use, perhaps minutes out of date."""

    def previous(self) -> SecretVersion | None:
        """The version that was in use before the current one, or None."""

    def version(self, version_id: str) -> SecretVersion | None:
        """The current or the previous version, if it is the one with that id; None if neither is, as far as was known
        less than ten seconds ago."""
