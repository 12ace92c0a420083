"""Releases a batch when it wakes: each image that is still wanted goes to its lane, or is held once more, in a closer
ring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched, groupby

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS, Lane
from darkroom.domain.schedules.hold import (
    FULL_SLOT,
    RELEASE,
    Batch,
    HeldMessage,
    ReleaseWindow,
    is_near,
    unplaceable_because,
)
from darkroom.operations.images.enqueue import seconds_until
from darkroom.operations.schedules.stored_batch import stored_batch
from darkroom.ports.images import HoldQueue, Images, Lanes
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom.ports.schedules import Holds, Reservations

CHUNK = 100
"""Rows that are read at once: as many as BatchGetItem takes."""

WINDOWS_AHEAD_SECONDS = 30
"""How long before their time images that need windows reserve them. Windows follow each other in the order of their
reservation, so an early reservation would make batches with earlier times wait behind it, and leave the lane idle. It
is long enough for a few calls that die on the way."""

AGAIN_SECONDS = 5
"""How long a release waits after a call that failed midway."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """How far a release has come: `position` entries are settled. Unless it is `done`, it continues at `wake_at`;
    `begins_at` is when the next of them comes to its lane, in the stretch that is reserved for all that are left, and
    None if nothing is reserved.

    `sent` went to their lanes and `held` are held once more; `stale` were cancelled, rescheduled or are gone, and
    `skipped` are left to the sweeper, because this version can bring them to no lane: by their ids, each with the
    reason. So are `unreadable` rows. `latest_seconds` is how late the latest of those sent was, 0 if none was late.
    """

    done: bool
    position: int
    wake_at: Milliseconds
    begins_at: Milliseconds | None = None
    sent: int = 0
    held: int = 0
    stale: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    latest_seconds: float = 0.0
    unreadable: tuple[UnreadableRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReleaseImagesPorts:
    """What a release needs, and each lane's deployed configuration, which sets its pace."""

    images: Images
    lanes: Lanes
    hold_queue: HoldQueue
    holds: Holds
    reservations: Reservations
    clock: Clock
    service: Mapping[str, Lane]


def release_images(
    ports: ReleaseImagesPorts,
    key: str,
    *,
    position: int,
    begins_at: Milliseconds | None,
    out_of_time: Callable[[], bool],
) -> Released:
    """Settles the batch under `key` from `position` on, and removes it when everything is settled.

    Many images with the same time come to their lane one after the other: each hundred reserves its window behind all
    others when it is sent, and once windows are further ahead than the lane can hold, all that is left reserves them at
    once. The state between two calls is `position` and `begins_at`; if a call died, the reservations table knows how
    far it came.

    Each entry's row is read first (consistently): only images that still wait for this time are sent. The work may be
    repeated from any point: a message that was sent twice finds its image begun. An image that this version can bring
    to no lane is skipped, and does not hold up the others. Raises Retryable if nothing could be settled, and
    UnreadableBatch.
    """
    batch = stored_batch(ports.holds, key)
    if batch is None:  # an earlier attempt has settled and removed it, and its answer was lost
        return Released(done=True, position=position, wake_at=_whole_second(ports.clock()))
    release = _Release(key=key, ports=ports, batch=batch, position=position, begins_at=begins_at)
    release.go_on_from_where_another_died()
    for chunk in batched(release.batch.entries[release.position :], CHUNK, strict=False):
        wake_at = release.not_before(chunk)
        if wake_at is None and out_of_time():
            wake_at = _whole_second(ports.clock())
        if wake_at is not None:
            return release.so_far(done=False, wake_at=wake_at)
        try:
            wake_at = release.settle(chunk)
        except Retryable:
            if release.position == position:
                raise
            # What was settled is not repeated.
            wake_at = _whole_second(ports.clock() + AGAIN_SECONDS * 1000)
        if wake_at is not None:
            return release.so_far(done=False, wake_at=wake_at)
    ports.holds.delete(key)
    return release.so_far(done=True, wake_at=_whole_second(ports.clock()))


@dataclass(kw_only=True)
class _Release:
    key: str
    ports: ReleaseImagesPorts
    batch: Batch
    position: int
    begins_at: Milliseconds | None
    sent: int = 0
    held: int = 0
    stale: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    latest_seconds: float = 0.0
    unreadable: list[UnreadableRow] = field(default_factory=list)
    _window: ReleaseWindow | None = None

    @property
    def is_large(self) -> bool:
        """Whether there are so many that they must not all come to their lane at once."""
        return self.batch.is_release and len(self.batch.entries) >= FULL_SLOT  # guard: release-paced-by-lane

    def takes_turns(self, chunk: Sequence[HeldMessage]) -> bool:
        """Whether the images of one chunk follow each other faster than their lane should take them."""
        # guard: release-spread-without-windows
        return self.is_large and chunk[-1].process_at - chunk[0].process_at < self._length(chunk[0], len(chunk))

    def go_on_from_where_another_died(self) -> None:
        """Skips a chunk that has had its window: its messages are in the lane, and another window would stay empty."""
        self._window = self.ports.reservations.window_of(self.key) if self.is_large else None
        if self._window is not None and self._window.position >= self.position:
            self.position = self._window.position
            self.begins_at = self._window.begins_at if self._window.is_of_all_left else None

    def so_far(self, *, done: bool, wake_at: Milliseconds) -> Released:
        return Released(
            done=done,
            position=self.position,
            wake_at=wake_at,
            begins_at=self.begins_at,
            sent=self.sent,
            held=self.held,
            stale=self.stale,
            skipped=self.skipped,
            latest_seconds=self.latest_seconds,
            unreadable=tuple(self.unreadable),
        )

    def not_before(self, chunk: Sequence[HeldMessage]) -> Milliseconds | None:
        """When the chunk may be sent, if that is not now because it is further ahead than its lane can hold, or than
        windows are given."""
        placeable = self._placeable(chunk)
        if not self.batch.is_release or not placeable:
            return None
        if self.begins_at is None and self.takes_turns(placeable):
            reserves_at = placeable[0].process_at - WINDOWS_AHEAD_SECONDS * 1000
            # guard: release-late-reservation
            return _whole_second(reserves_at) if reserves_at > self.ports.clock() else None
        return self._too_far(self._windows(placeable, self.begins_at))

    def settle(self, chunk: Sequence[HeldMessage]) -> Milliseconds | None:
        """Sends or holds what is still wanted of the chunk; or returns when to wait for its window."""
        rows = self.ports.images.get_all([entry.message.image_id for entry in chunk])
        awaited = [entry for entry in chunk if is_awaited(entry, rows.get(entry.message.image_id))]
        wanted = self._placeable(awaited)
        begins_at = self.begins_at
        if begins_at is None and wanted and self.takes_turns(self._placeable(chunk)):
            begins_at = self._take_window(wanted)  # guard: release-window-of-wanted
        windows = self._windows(wanted, begins_at)
        wake_at = self._too_far(windows) if self.batch.is_release else None
        if wake_at is not None:
            return wake_at
        self._send(wanted, windows)
        self.skipped |= {
            entry.message.image_id: reason for entry in awaited if (reason := self._unplaceable_because(entry))
        }
        unreadable = [row for row in rows.values() if isinstance(row, UnreadableRow)]
        self.unreadable += unreadable
        self.stale += len(chunk) - len(awaited) - len(unreadable)
        self.position += len(chunk)
        if self.begins_at is not None and wanted:
            self.begins_at = windows[-1] + self._length(wanted[-1], 1)  # guard: release-reserved-stretch-kept
        return None

    def _send(self, wanted: Sequence[HeldMessage], windows: Sequence[Milliseconds]) -> None:
        now = self.ports.clock()
        # If the batch woke so late that the lane can hold a message by now, it goes there at once: the hold queue would
        # cost it a minute.
        going = [
            (entry, window)
            for entry, window in zip(wanted, windows, strict=True)
            if self.batch.is_release or is_near(entry, now)
        ]
        staying = [entry for entry in wanted if not self.batch.is_release and not is_near(entry, now)]
        failed: list[tuple[HeldMessage, Exception]] = []
        for lane, group in groupby(
            sorted(going, key=lambda pair: pair[0].message.lane), lambda pair: pair[0].message.lane
        ):
            of_lane = list(group)
            unsent = self.ports.lanes.send_all(
                lane, [(entry.message, seconds_until(window, now)) for entry, window in of_lane]
            )
            sent = [pair for number, pair in enumerate(of_lane) if number not in unsent]
            late = ((max(self.ports.clock(), window) - entry.process_at) / 1000 for entry, window in sent)
            self.latest_seconds = max(self.latest_seconds, *late, 0.0)
            self.sent += len(sent)
            failed += [(of_lane[number][0], error) for number, error in unsent.items()]
        unheld = self.ports.hold_queue.put_all(
            [entry.message.model_copy(update={"process_at": entry.process_at}) for entry in staying]
        )
        self.held += len(staying) - len(unheld)
        failed += [(staying[number], error) for number, error in unheld.items()]
        for entry, error in failed:
            if not isinstance(error, Unplaceable):  # guard: release-unsent-not-settled
                # The next attempt begins with this chunk: what was already sent of it is sent twice, and begun once.
                raise error
            self.skipped[entry.message.image_id] = str(error)

    def _placeable(self, entries: Sequence[HeldMessage]) -> list[HeldMessage]:
        # guard: release-unplaceable-skipped
        return [entry for entry in entries if self._unplaceable_because(entry) is None]

    def _unplaceable_because(self, entry: HeldMessage) -> str | None:
        # The images of one hundred wait for its last: an image that a release does not reach must not be that one.
        # guard: release-beyond-batch-skipped
        if self.batch.is_release and entry.process_at > self.batch.wake_at + LANE_DELAY_SECONDS * 1000:
            return "its time is beyond its batch's"
        return unplaceable_because(entry, self.ports.clock(), self.ports.service)

    def _take_window(self, wanted: Sequence[HeldMessage]) -> Milliseconds:
        """When the next images come to their lane: the window that they had before a call died, or a new one."""
        if self._window is not None and self._window.position == self.position:
            return self._window.begins_at
        begins_at = self._reserve(wanted[0], len(wanted))
        if self._too_far(self._windows(wanted, begins_at)) is not None:
            # So many are ahead that all that is left reserves its windows now, instead of asking again and again.
            left = len(self.batch.entries) - self.position - len(wanted)
            begins_at = self._reserve(wanted[-1], left) - self._length(wanted[0], len(wanted))
            self.begins_at = begins_at
        window = ReleaseWindow(position=self.position, begins_at=begins_at, is_of_all_left=self.begins_at is not None)
        self.ports.reservations.note_window(self.key, window)  # guard: release-window-noted-first
        return begins_at

    def _reserve(self, first: HeldMessage, count: int) -> Milliseconds:
        """When windows for that many begin in their lane, behind all others."""
        return self.ports.reservations.reserve(
            first.message.lane,
            not_before=max(first.process_at, self.ports.clock()),
            milliseconds=self._length(first, count),
        )

    def _too_far(self, windows: Sequence[Milliseconds]) -> Milliseconds | None:
        """When to continue, if the last of the windows is further ahead than its lane can hold."""
        if not windows or windows[-1] <= self.ports.clock() + LANE_DELAY_SECONDS * 1000:
            return None
        # Later than possible, so that it sends more at once; but early enough to keep the lead of a release.
        return _whole_second(max(windows[0] - RELEASE.lead_seconds * 1000, windows[-1] - LANE_DELAY_SECONDS * 1000))

    def _length(self, entry: HeldMessage, count: int) -> Milliseconds:
        """How long the entry's lane takes for that many."""
        return round(1000 * count / self.ports.service[entry.message.lane].release_per_second)

    def _windows(self, entries: Sequence[HeldMessage], begins_at: Milliseconds | None) -> list[Milliseconds]:
        """When each image comes to its lane: at its time, or one after the other if they have windows from `begins_at`
        on."""
        windows: list[Milliseconds] = []
        for entry in entries:
            windows.append(entry.process_at if begins_at is None else max(entry.process_at, begins_at))
            if begins_at is not None:
                begins_at = windows[-1] + self._length(entry, 1)
        return windows


def is_awaited(entry: HeldMessage, image: Image | UnreadableRow | None) -> bool:
    """Whether the image, as far as is known, still waits for the time in the entry."""
    message = entry.message
    return (
        isinstance(image, Image)  # guard: unreadable-release-skipped
        and image.status is Status.SCHEDULED
        and (image.run, image.schedule) == (message.run, message.schedule)  # guard: release-current-schedule
    )


def _whole_second(instant: Milliseconds) -> Milliseconds:
    """The first whole second from `instant` on: Step Functions truncates a Timestamp's milliseconds."""
    return -(-instant // 1000) * 1000
