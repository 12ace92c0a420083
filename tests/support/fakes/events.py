"""In-memory fakes of what events go through and end in: the topic, the notes of unpublished ones, and usage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.events.event import PublishedEvent
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.stored import NOTHING, Stored
from darkroom.domain.usage.usage import Count, Usage
from darkroom.ports.events import Unpublishable
from darkroom.ports.usage import DayOfUsage


@dataclass
class FakeTopic:
    """The `Topic` port: `published` has all that was ever published. A test makes it fail: as a whole if `is_down`, or
    for the subjects in `throttled` and `refused`."""

    published: list[PublishedEvent] = field(default_factory=list)
    is_down: bool = False
    throttled: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def publish_all(self, events: Sequence[PublishedEvent]) -> Mapping[int, Exception]:
        unpublished: dict[int, Exception] = {}
        for place, event in enumerate(events):
            if self.is_down or event.subject in self.throttled:
                unpublished[place] = Retryable("the topic does not answer")
            elif event.subject in self.refused:
                unpublished[place] = Unpublishable("the topic refuses it")
            else:
                self.published.append(event)
        return unpublished


@dataclass
class FakeUnpublished:
    """The `Unpublished` port."""

    notes: list[tuple[str, int | None, str]] = field(default_factory=list)
    is_down: bool = False

    def put(self, subject: str, version: int | None, reason: str) -> None:
        if self.is_down:
            raise Retryable("the queue does not answer")
        self.notes.append((subject, version, reason))


@dataclass
class FakeUsage:
    """The `UsageCounts` port over dictionaries."""

    sums: dict[tuple[str, str], Usage] = field(default_factory=dict)
    store: dict[str, Stored] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    is_down: bool = False
    reads: int = 0

    def _answer(self) -> None:
        if self.is_down:
            raise Retryable("the table does not answer")

    def add(self, counts: Sequence[Count]) -> Sequence[Count]:
        self._answer()
        added = []
        for count in counts:
            if count.event_id not in self.counted:
                self.counted.add(count.event_id)
                if count.usage != Usage():
                    place = (count.tenant_id, count.day)
                    self.sums[place] = self.sums.get(place, Usage()) + count.usage
                if count.stored != NOTHING:
                    self.store[count.tenant_id] = self.store.get(count.tenant_id, NOTHING) + count.stored
                added.append(count)
        return added

    def stored(self, tenant_id: str) -> Stored:
        self._answer()
        self.reads += 1
        return self.store.get(tenant_id, NOTHING)

    def all_stored(self) -> Mapping[str, Stored]:
        self._answer()
        return dict(self.store)

    def correct(self, tenant_id: str, before: Stored, after: Stored) -> bool:
        self._answer()
        if self.store.get(tenant_id, NOTHING) != before:
            return False
        self.store[tenant_id] = after
        return True

    def days(self, *, since: str, until: str) -> Iterator[DayOfUsage]:
        for (tenant_id, day), usage in self.sums.items():
            if since <= day <= until:
                yield DayOfUsage(tenant_id=tenant_id, day=day, usage=usage)

    def days_of(self, tenant_id: str, *, since: str, until: str) -> Iterator[DayOfUsage]:
        self._answer()
        days = self.days(since=since, until=until)
        return iter(sorted((day for day in days if day.tenant_id == tenant_id), key=lambda day: day.day))

    def forget(self, tenant_id: str) -> int:
        theirs = [place for place in self.sums if place[0] == tenant_id]
        for place in theirs:
            del self.sums[place]
        return len(theirs) + (self.store.pop(tenant_id, None) is not None)
