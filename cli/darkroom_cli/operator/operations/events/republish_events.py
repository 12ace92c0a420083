"""Publishes events again from what rows say, when a stream has forgotten them or a consumer has lost them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import batched, chain

from darkroom.domain.events.event import PublishedEvent
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.row_events import events_of
from darkroom.ports.events import Topic
from darkroom.ports.kernel import UnreadableRow
from darkroom.ports.webhooks import Endpoints
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.ports import BatchRegistry, ImageRegistry

AT_ONCE = 100
"""How many events are published before the next pause: a pace counts these hundreds."""


@dataclass(frozen=True, kw_only=True)
class RepublishEventsPorts:
    """What publishing again needs; `edge` is where public images are."""

    images: ImageRegistry
    endpoints: Endpoints
    batches: BatchRegistry
    topic: Topic
    audit: Trail
    edge: EdgeUrls = NO_EDGE


@dataclass(frozen=True, kw_only=True)
class RepublishSelection:
    """Which events: those that happened from `since` until just before `until`, of that tenant and of these types;
    None for all."""

    since: Milliseconds
    until: Milliseconds | None = None
    tenant_id: str | None = None
    types: frozenset[str] | None = None

    def includes(self, event: PublishedEvent) -> bool:
        """Whether it is one of them."""
        return (
            self.since <= event.time
            and (self.until is None or event.time < self.until)
            and self.tenant_id in (None, event.tenant_id)
            and (self.types is None or event.type.value in self.types)
        )


@dataclass(kw_only=True)
class Republishing:
    """What was found: rows read, events by type, rows that this version cannot read, and what the topic refused, by the
    event's id. `published` is how many were published."""

    rows: int = 0
    events: Counter[str] = field(default_factory=Counter)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    published: int = 0


def republish_events(
    ports: RepublishEventsPorts,
    wanted: RepublishSelection,
    *,
    pace: RateLimiter | None,
    on_progress: Callable[[Republishing], None] = lambda so_far: None,
) -> Republishing:
    """Reads every row and publishes its wanted events with the ids that they had, no faster than `pace` allows; without
    a pace it only counts them.

    Raises Retryable if the table or the topic does not answer. Everything may be repeated: consumers know the ids.
    """
    run = Republishing()
    about = {"since": wanted.since, "until": wanted.until, "tenant_id": wanted.tenant_id}
    types = None if wanted.types is None else sorted(wanted.types)
    # How many there were is enough: which ones is told by what was wanted, and they may be millions.
    with ports.audit.action("republish", is_certain=False, types=types, **about) as audited:
        for batch in batched(_found(ports, wanted, run, on_progress), AT_ONCE, strict=False):
            if pace is None:
                continue
            pace.wait()
            audited.begin()  # guard: audit-republish-announced
            problems = ports.topic.publish_all(batch)
            audited.counts["published"] += len(batch) - len(problems)
            for place, error in problems.items():
                if isinstance(error, Retryable):
                    raise error
                run.refused[batch[place].event_id] = str(error)
            pace.spend()
            run.published += len(batch) - len(problems)
            on_progress(run)
    return run


def _found(
    ports: RepublishEventsPorts,
    wanted: RepublishSelection,
    run: Republishing,
    on_progress: Callable[[Republishing], None],
) -> Iterator[PublishedEvent]:
    for row in chain(ports.endpoints.everything(), ports.batches.everything(), ports.images.everything()):
        run.rows += 1
        if run.rows % 1000 == 0:
            on_progress(run)
        if isinstance(row, UnreadableRow):
            run.unreadable.append(row)
            continue
        for event in events_of(row, ports.edge):  # guard: events-republished-with-urls
            if wanted.includes(event):
                run.events[event.type.value] += 1
                yield event
