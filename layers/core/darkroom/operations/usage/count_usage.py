"""Counts what tenants use, from events: exactly, however often each event comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.events.event import read_event
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.usage.usage import Count, count_of, transactions_of
from darkroom.ports.kernel import Clock
from darkroom.ports.usage import UsageCounts


@dataclass(frozen=True, kw_only=True)
class CountUsagePorts:
    """What counting needs."""

    usage: UsageCounts
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How many events were counted, the bytes of the files whose acceptance was, and what must come back, by index:
    each with what went wrong."""

    counted: int = 0
    accepted_bytes: int = 0
    failures: Mapping[int, Exception] = field(default_factory=dict)


def count_usage(ports: CountUsagePorts, bodies: Sequence[str]) -> Counting:
    """Counts the events in these messages. One that cannot be read or counted fails alone; if the table cannot answer,
    those of that transaction fail."""
    failures: dict[int, Exception] = {}
    counts: dict[int, Count] = {}
    now = ports.clock()
    for place, body in enumerate(bodies):
        try:
            count = count_of(read_event(body), now)
        except (ValueError, LookupError, TypeError) as error:
            failures[place] = error
            continue
        if count is not None:
            counts[place] = count
    added: list[Count] = []
    failed: dict[str, Exception] = {}
    for batch in transactions_of(counts.values()):
        try:
            added += ports.usage.add(batch)
        except Retryable as error:
            failed |= dict.fromkeys((count.event_id for count in batch), error)
        except (
            Exception
        ):  # one of them, and it keeps the others from being counted: perhaps its day's row is unreadable
            for count in batch:
                try:
                    added += ports.usage.add([count])
                except Exception as error:  # guard: isolated-usage-event
                    failed[count.event_id] = error
    failures |= {place: failed[count.event_id] for place, count in counts.items() if count.event_id in failed}
    accepted_bytes = sum(used.image_bytes for used in (count.usage for count in added))
    return Counting(counted=len(added), accepted_bytes=accepted_bytes, failures=failures)
