"""What a tenant used in a day, and what it stores, counted from events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from darkroom.domain.kernel.figures import added
from darkroom.domain.kernel.instants import Milliseconds, day_of
from darkroom.domain.kernel.stored import NOTHING, Stored

if TYPE_CHECKING:
    from darkroom.domain.events.event import ReceivedEvent

DAY_MILLISECONDS = 24 * 3600 * 1000

REMEMBERED_DAYS = 45
"""How long a counted event is remembered: a repetition of it is not counted again."""

COUNTED_DAYS = 40
"""How old an event may be to be counted. SNS delivers for up to 23 days, and a queue and its dead letters keep a
message for up to 14: what is older was published again after it had been counted and forgotten."""


USUAL_DAYS, MAX_DAYS = 31, 366
"""How many days a tenant is told about: usually, and at most. So many are read with less than eight read units, and of
a tenant with hundreds of events a second with up to 32."""

MOST_ITEMS = 100
"""How many items one transaction changes at most
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html)."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Images accepted, and their files' bytes; runs that made variants, and these variants' bytes and pixels."""

    images: int = 0
    image_bytes: int = 0
    runs: int = 0
    variant_bytes: int = 0
    variant_pixels: int = 0

    def __add__(self, other: Usage) -> Usage:
        return added(self, other)


@dataclass(frozen=True, kw_only=True)
class Count:
    """What one event adds to its tenant's day (UTC), how it changes what the tenant stores, and when it may be
    forgotten."""

    event_id: str
    tenant_id: str
    day: str
    usage: Usage
    stored: Stored = NOTHING
    forget_at: Milliseconds


def count_of(event: ReceivedEvent, now: Milliseconds) -> Count | None:
    """What the event adds, None if it adds nothing. Raises ValueError for a figure that is none.

    An event that was published again after its image was deleted has no figures: then it adds none.
    """
    from darkroom.domain.events.event import EventType  # noqa: PLC0415 -- reading usage needs no events

    if now - event.time > COUNTED_DAYS * DAY_MILLISECONDS:  # guard: usage-forgotten-not-recounted
        return None
    stored = Stored.read(event.data.get("stored"))
    match event.type:
        case EventType.ACCEPTED:
            usage = Usage(images=1, image_bytes=_whole(event.data.get("bytes", 0)))
        case EventType.DONE | EventType.VARIANTS_ADDED:
            variants = event.data.get("variants", [])
            usage = Usage(
                runs=1,
                variant_bytes=sum(_whole(variant["bytes"]) for variant in variants),
                variant_pixels=sum(_whole(variant["width"]) * _whole(variant["height"]) for variant in variants),
            )
        case _ if stored != NOTHING:  # guard: unfinished-failure-counted
            usage = Usage()
        case _:
            return None
    return Count(
        event_id=event.event_id,
        tenant_id=event.tenant_id,
        day=day_of(event.time),
        usage=usage,
        stored=stored,
        forget_at=max(now, event.time) + REMEMBERED_DAYS * DAY_MILLISECONDS,
    )


def transactions_of(counts: Iterable[Count]) -> Iterator[list[Count]]:
    """The counts in as few batches as can be, each for one transaction: it changes an item for each event, one for each
    tenant's day, and one for what each tenant stores."""
    batch: list[Count] = []
    items: set[tuple[str, ...]] = set()
    for count in sorted(counts, key=lambda count: (count.tenant_id, count.day)):
        items_of_count = {(count.event_id,), (count.tenant_id, count.day), (count.tenant_id, "", "stored")}
        if len(items | items_of_count) > MOST_ITEMS:  # guard: usage-transaction-size-bound
            yield batch
            batch, items = [], set()
        batch.append(count)
        items |= items_of_count
    if batch:
        yield batch


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number of bytes or pixels")
    return value
