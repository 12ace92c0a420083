"""The tests' images with AWS's indexes, which show a write after a while, and what waits for workers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from darkroom.domain.images.image import Image, Status, due_shard_of, waiting_shard_of
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import FETCH_WORKERS
from darkroom.domain.kernel.message import Message
from darkroom.ports.images import Due, QueueDepth
from tests.support.fakes.stores import FakeFetchQueue, FakeImages, FakeLanes
from tests.support.virtual.virtual_time import VirtualTime

LAG_MILLISECONDS = 300.0
"""How late the index is: a fraction of a second
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.Sync)."""

_LAST = "~"
"""Behind every id."""

type _Place = tuple[str, Due]
"""A partition of an index and an entry in it."""


def _place_of(row: Image) -> _Place | None:
    shard, due_at = row.due_shard, row.due_at
    return None if shard is None or due_at is None else (shard, Due(due_at, row.image_id))


def _waiting_place_of(row: Image) -> _Place | None:
    if row.waiting_since is None:
        return None
    return waiting_shard_of(row.lane, due_shard_of(row.image_id)), Due(row.waiting_since, row.image_id)


@dataclass
class IndexedImages(FakeImages):
    """The images, which look nothing up by reading all rows: there are hundreds of thousands."""

    time: VirtualTime = field(kw_only=True)
    _due: defaultdict[str, list[Due]] = field(default_factory=lambda: defaultdict(list))
    _waiting: defaultdict[str, list[Due]] = field(default_factory=lambda: defaultdict(list))
    _unshown: deque[tuple[float, _Place | None, _Place | None]] = field(default_factory=deque)

    def put(self, rows: Iterable[Image]) -> None:
        """Rows that are there already, in the index, too."""
        for row in rows:
            self.rows[row.image_id] = row
            if (place := _place_of(row)) is not None:
                self._due[place[0]].append(place[1])
            if (waiting := _waiting_place_of(row)) is not None:
                self._waiting[waiting[0]].append(waiting[1])
        for entries in (*self._due.values(), *self._waiting.values()):
            entries.sort()

    def tenants_of(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        return {image_id: self.rows[image_id].tenant_id for image_id in image_ids if image_id in self.rows}

    def create(self, image: Image) -> Image:
        kept = super().create(image)
        if kept is image:
            self._note(None, image)
        return kept

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        was = self.rows.get(before.image_id)
        written = super().change(before, after, fence=fence)
        self._note(was, written)
        return written

    def postpone(self, due: Due, until: Milliseconds) -> bool:
        was = self.rows.get(due.image_id)
        is_postponed = super().postpone(due, until)
        if is_postponed:
            self._note(was, self.rows[due.image_id])
        return is_postponed

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        entries, until = self._shown(shard, now)
        listed = entries[max(0, until - limit) : until][::-1] if latest_first else entries[: min(until, limit)]
        yield from listed

    def count_due(self, shard: str, now: Milliseconds, limit: int) -> int:
        """How many `due` would list."""
        return min(self._shown(shard, now)[1], limit)

    def oldest_waiting(self, lane: str, shard: str) -> Milliseconds | None:
        waiting = self._waiting[waiting_shard_of(lane, shard)]
        return waiting[0].due_at if waiting else None

    def _shown(self, shard: str, now: Milliseconds) -> tuple[list[Due], int]:
        while self._unshown and self._unshown[0][0] <= self.time.elapsed():
            _, was, is_now = self._unshown.popleft()
            if was is not None:
                entries = self._due[was[0]]
                del entries[bisect_left(entries, was[1])]
            if is_now is not None:
                insort(self._due[is_now[0]], is_now[1])
        entries = self._due[shard]
        return entries, bisect_right(entries, Due(now, _LAST))

    def _note(self, before: Image | None, after: Image) -> None:
        was, is_now = None if before is None else _place_of(before), _place_of(after)
        if was != is_now:
            self._unshown.append((self.time.elapsed() + LAG_MILLISECONDS, was, is_now))
        left, entered = None if before is None else _waiting_place_of(before), _waiting_place_of(after)
        if left == entered:
            return
        if left is not None:
            waiting = self._waiting[left[0]]
            del waiting[bisect_left(waiting, left[1])]
        if entered is not None:
            insort(self._waiting[entered[0]], entered[1])


@dataclass(eq=False)
class Workers:
    """What takes messages one after another, each after so many milliseconds; `waiting` have not been taken."""

    time: VirtualTime
    milliseconds: float
    waiting: int = 0
    _free_at: float = 0.0

    def come(self, work: Callable[[], None]) -> None:
        """Has the work done in its turn; it must not pause."""
        self._free_at = max(self._free_at, self.time.elapsed()) + self.milliseconds
        self.waiting += 1

        def take() -> None:
            self.waiting -= 1
            work()

        self.time.at(self._free_at, take)


@dataclass
class WorkedLanes(FakeLanes):
    """The lanes with workers, which end each image some time after its message; `sent_at` says when each image's first
    one was sent, and `sendings` how many were."""

    images: IndexedImages = field(kw_only=True)
    workers: dict[str, Workers] = field(kw_only=True)
    sent_at: dict[str, float] = field(default_factory=dict)
    sendings: Counter[str] = field(default_factory=Counter)

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        self.sendings[message.image_id] += 1
        workers = self.workers[message.lane]
        self.sent_at.setdefault(message.image_id, workers.time.elapsed())
        workers.come(lambda: self._end(message.image_id))

    def backlog(self, lane: str) -> int:
        return self.workers[lane].waiting

    def _end(self, image_id: str) -> None:
        row = self.images.rows[image_id]
        if not row.status.is_terminal:
            self.images.change(row, replace(row, status=Status.DONE, due_at=None, waiting_since=None), fence=())


@dataclass
class WorkedFetches(FakeFetchQueue):
    """The fetch queue with workers, which call `fetch`."""

    workers: Workers = field(kw_only=True)
    fetch: Callable[[Message], object] = field(kw_only=True)

    def put(self, message: Message) -> None:
        def fetch() -> None:
            self.fetch(message)

        self.workers.come(fetch)

    def depth(self) -> QueueDepth:
        return QueueDepth(waiting=self.workers.waiting, taken=min(self.workers.waiting, FETCH_WORKERS))
