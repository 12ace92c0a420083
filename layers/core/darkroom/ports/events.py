"""What events need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.bulk.batches import Batch
    from darkroom.domain.bulk.schedules import Schedule
    from darkroom.domain.events.event import PublishedEvent
    from darkroom.domain.images.image import Image
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.domain.webhooks.endpoint import Endpoint
    from darkroom.ports.kernel import UnreadableRow


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """One write of the row of `subject`, an image, an endpoint, a batch or a schedule by its id: the row before and
    after it, None where there was none.

    `place` is where its stream begins again if this write was not told. With `unreadable` this version cannot read the
    row; then both are None.
    """

    place: str
    subject: str
    version: int | None
    before: Image | Endpoint | Batch | Schedule | None
    after: Image | Endpoint | Batch | Schedule | None
    unreadable: UnreadableRow | None = None


class Unpublishable(Exception):
    """The topic refuses this event, now and later; it is available, and takes others."""


class Topic(Protocol):
    """Where events are published for all consumers."""

    def publish_all(self, events: Sequence[PublishedEvent]) -> Mapping[int, Exception]:
        """Publishes events; returns, by index, those that may not have been published: each with Retryable, or with
        Unpublishable, which does not keep the others from being published. Each reaches every consumer that asked for
        its type at least once, in any order."""


class Unpublished(Protocol):
    """Notes for an operator of events that could not be published."""

    def put(self, subject: str, version: int | None, reason: str) -> None:
        """Notes the event of that version of the subject's row, perhaps twice. Raises Retryable."""


class Followers(Protocol):
    """Those who follow the events for a while, each with a queue of its own."""

    def remove_left_behind(self, now: Milliseconds) -> int:
        """Removes the queues of those that died; returns how many. Raises Retryable."""
