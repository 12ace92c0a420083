"""Publishes what the writes of rows have to tell: the one way in which the world hears of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.events.event import PublishedEvent
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.row_events import event_of, is_notice
from darkroom.ports.events import RowChange, Topic, Unpublished


@dataclass(frozen=True, kw_only=True)
class PublishEventsPorts:
    """What publishing needs; `notices` is the operator's topic, None if there is none, and `edge` is where public
    images are."""

    topic: Topic
    unpublished: Unpublished
    notices: Topic | None = None
    edge: EdgeUrls = NO_EDGE


@dataclass(frozen=True, kw_only=True)
class Publishing:
    """What was published, and why other writes were set aside, by the index of their writes; `begin_again_at` is the
    first write that must be handed over again, by its place in the stream, None if there is none, and `problem` why."""

    events: Mapping[int, PublishedEvent] = field(default_factory=dict)
    set_aside: Mapping[int, str] = field(default_factory=dict)
    begin_again_at: str | None = None
    problem: Exception | None = None

    @property
    def published(self) -> Counter[str]:
        """How many events were published, by type."""
        return Counter(event.type.value for event in self.events.values())


def publish_events(ports: PublishEventsPorts, changes: Sequence[RowChange]) -> Publishing:
    """Publishes the event of each write, if it has one.

    After an outage the stream hands over the first unpublished write and all that follow it: what was published of
    those is published twice, under the same id. A write that no repetition can help is set aside, so that it does not
    hold up all others of its shard until the stream forgets them: a row that this version cannot read or that trips a
    bug, or an event that the topic refuses. Its note says which event to republish.
    """
    problems: dict[int, Exception] = {}
    to_set_aside = {place: str(change.unreadable) for place, change in enumerate(changes) if change.unreadable}
    events: dict[int, PublishedEvent] = {}
    for place, change in enumerate(changes):
        try:
            event = event_of(change.before, change.after, ports.edge)
        # guard: isolated-stream-write-bug
        except Exception as bug:  # of this write alone: no other waits for it
            to_set_aside[place] = f"{type(bug).__name__}: {bug}"
            continue
        if event is not None:
            events[place] = event
    places = list(events)
    for number, error in ports.topic.publish_all(list(events.values())).items():
        if isinstance(error, Retryable):  # guard: events-unretryable-set-aside
            problems[places[number]] = error
        else:
            to_set_aside[places[number]] = str(error)
    refused: dict[int, str] = {}
    for place, error in _send_notices(ports, events, before=min(problems, default=len(changes))).items():
        if isinstance(error, Retryable):
            problems[place] = error
        else:
            refused[place] = f"the topic of notices: {type(error).__name__}: {error}"
    noted: dict[int, str] = {}
    for place, reason in sorted((refused | to_set_aside).items()):
        if place > min(problems, default=place):  # guard: events-single-outage-note
            break  # it is handed over again, too, and again until the outage is over: one note is enough
        try:
            ports.unpublished.put(changes[place].subject, changes[place].version, reason)
            noted[place] = reason
        except Retryable as error:
            problems[place] = error
    first = min(problems, default=None)  # guard: events-first-failure-counts
    return Publishing(
        events={place: event for place, event in events.items() if place not in problems.keys() | to_set_aside.keys()},
        set_aside=noted,
        begin_again_at=None if first is None else changes[first].place,  # guard: events-stream-resume-place
        problem=None if first is None else problems[first],
    )


def _send_notices(
    ports: PublishEventsPorts, events: Mapping[int, PublishedEvent], *, before: int
) -> Mapping[int, Exception]:
    """Publishes to the operator's topic what of these events is a notice, of the writes before the first that is handed
    over again; returns what went wrong, by the index of the writes. Somebody else's topic may be gone, or refuse us:
    that is noted, and holds up no event."""
    places = [place for place, event in events.items() if place < before and is_notice(event)]
    if ports.notices is None or not places:
        return {}
    try:
        problems = ports.notices.publish_all([events[place] for place in places])
    except Exception as error:  # guard: webhook-notice-holds-up-nothing
        return dict.fromkeys(places, error)
    return {places[number]: error for number, error in problems.items()}
