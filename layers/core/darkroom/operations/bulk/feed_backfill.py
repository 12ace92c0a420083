"""Looks at one backfill: counts what has ended, and begins more of its images while live traffic leaves room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from darkroom.bookkeeping import report_failure
from darkroom.domain.bulk.backfills import (
    PAGE_IMAGES,
    Backfill,
    BackfillState,
    ImageState,
    Page,
    begun,
    end,
    is_to_compare,
    look_again,
    most_in_work,
    state_of,
    waits_too_long,
    with_page,
    without_page,
)
from darkroom.domain.images.image import Image, message_for, waiting_shards_of
from darkroom.domain.kernel.lanes import BULK, LIVE_LANES, Lane
from darkroom.domain.recipes.recipes import Recipe
from darkroom.operations.bulk.settle_batch import SHARE_SECONDS, Settled
from darkroom.operations.images.enqueue import EnqueuePorts, mark_due
from darkroom.operations.sweeping.measure_lanes import waited_seconds
from darkroom.ports.bulk import Backfills, ImageScan
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.pauses import KnownPauses, nothing_paused

_AT_ONCE = 10
"""How many messages SQS takes in a request: sent one by one, those of a million images cost $0.40."""

_UNENDED = (ImageState.AHEAD, ImageState.BUSY, ImageState.WORKING)


@dataclass(frozen=True, kw_only=True)
class FeedBackfillPorts(EnqueuePorts):
    """What a look at a backfill needs; `presets` are those that are deployed, with their versions, and `service` is
    each lane's deployed configuration."""

    backfills: Backfills
    scan: ImageScan
    presets: Mapping[str, tuple[Recipe, int]]
    service: Mapping[str, Lane]
    pauses: KnownPauses = nothing_paused


def feed_backfill(
    ports: FeedBackfillPorts,
    backfill_id: str,
    *,
    out_of_time: Callable[[], bool] = lambda: False,
    unreadable: Callable[[UnreadableRow], object] = lambda _: None,
) -> Settled:
    """Settles the pages all of whose images have ended, begins images of the others that are not begun yet, and finds
    more pages until something is to be waited for, which the row then says.

    Each step is a write under the row's version, and a repetition of one finds it done: a page is put with the place up
    to which the table was read, and removed with the counts of its images. The look rests after SHARE_SECONDS, or when
    it is `out_of_time`. An image that is `unreadable` counts as that. Raises Retryable if a table cannot answer, and
    UnreadableRow.
    """
    backfill = ports.backfills.get(backfill_id)
    if backfill is None or backfill.has_ended:
        return "gone"
    look = _Look(ports=ports, backfill=backfill, out_of_time=out_of_time, unreadable=unreadable)
    try:
        return look.over()
    except Fenced:
        return "later"  # an operator has decided something, or another look was faster: it is due


@dataclass(kw_only=True)
class _Look:
    ports: FeedBackfillPorts
    backfill: Backfill
    out_of_time: Callable[[], bool]
    unreadable: Callable[[UnreadableRow], object]
    rests_at: int = field(init=False)
    compared_at: int = field(init=False)
    unsent: list[Image] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rests_at = self.ports.clock() + SHARE_SECONDS * 1000
        self.compared_at = self.backfill.compared_at

    def rests(self) -> bool:
        return self.out_of_time() or self.ports.clock() >= self.rests_at  # guard: bulk-backfills-in-turns

    def over(self) -> Settled:
        """Raises Fenced if the row was changed meanwhile."""
        waits_for = self._why_nothing_begins()
        if is_to_compare(self.backfill, self.ports.clock()):
            for page in self.ports.backfills.pages(self.backfill.backfill_id):
                if self.rests():
                    return "goes_on"
                self._work_through(page, may_begin=waits_for is None)
            self.compared_at = self.ports.clock()
        while waits_for is None:
            if self.rests():
                return "goes_on"
            if self.backfill.is_listed:
                break
            waits_for = self._why_no_page()
            if waits_for is None:
                self._find_page()
        now, is_over = self.ports.clock(), self.backfill.state is BackfillState.CANCELLED or self.backfill.is_listed
        if is_over and not self.backfill.in_work:
            self.ports.backfills.change(self.backfill, end(self.backfill, now=now))
            return "ended"
        self.ports.backfills.change(self.backfill, look_again(self.backfill, waits_for=waits_for, now=now))
        return "later"

    def _why_nothing_begins(self) -> str | None:
        """What keeps any image from being begun; None if nothing does."""
        ports, backfill = self.ports, self.backfill
        if backfill.state is not BackfillState.RUNNING:  # guard: bulk-backfill-paused-begins-nothing
            return backfill.state.value
        _, version = ports.presets.get(backfill.selection.preset, (None, 0))
        if version < backfill.selection.version:  # guard: bulk-backfill-deployed-version
            return f"the deployment of {backfill.selection.preset}@{backfill.selection.version}"
        pauses, now = ports.pauses(), ports.clock()
        if pauses.of(BULK.name) is not None:  # guard: bulk-backfill-paused-lane
            return f"the lane {BULK.name}, which is paused"
        for lane in LIVE_LANES:
            for shard in waiting_shards_of(lane):
                waited = waited_seconds(ports.images, pauses, lane, shard, now)
                if waits_too_long(lane, waited):  # guard: bulk-backfill-after-live-traffic
                    return f"the lane {lane}, whose oldest image waits for {waited:.0f} seconds"
        return None

    def _why_no_page(self) -> str | None:
        """What keeps the next page from being found; None if nothing does."""
        if self.backfill.in_work >= most_in_work(self.ports.service[BULK.name]):  # guard: bulk-backfill-bound-in-work
            return "its images in work"
        return "its rate" if self.ports.clock() < self.backfill.next_at else None  # guard: bulk-backfill-rate

    def _find_page(self) -> None:
        """Reads the table on until a page is full, and begins its images."""
        backfill = self.backfill
        found, up_to, read = list[str](), backfill.up_to, 0
        while len(found) < PAGE_IMAGES:
            part = self.ports.scan.select(backfill.selection, after=up_to, limit=PAGE_IMAGES)
            found, up_to, read = [*found, *part.image_ids], part.up_to, read + part.read
            if up_to is None or self.rests():
                break
        if len(found) > PAGE_IMAGES:  # what follows is read again
            found = found[:PAGE_IMAGES]
            up_to = found[-1]
        after, page = with_page(backfill, tuple(found), up_to=up_to, read=read, now=self.ports.clock())
        after = replace(after, compared_at=self.compared_at)
        if not found:
            self.backfill = self.ports.backfills.change(backfill, after)
            return
        # Before anything is begun: whoever comes after a crash finds its images in the page.
        self.backfill = self.ports.backfills.put_page(backfill, after, page)
        self._work_through(page, may_begin=True)

    def _work_through(self, page: Page, *, may_begin: bool) -> None:
        """Begins what is ahead in the page if that may be, and settles it once all of it has ended."""
        states = self._states(page, may_begin=may_begin)
        if any(state in _UNENDED for state in states):
            return
        after = without_page(self.backfill, states)
        self.backfill = self.ports.backfills.settle_page(self.backfill, after, page)

    def _states(self, page: Page, *, may_begin: bool) -> Sequence[ImageState]:
        rows = self.ports.images.get_all(page.image_ids)
        states = []
        for image_id in page.image_ids:
            row = rows.get(image_id)
            if isinstance(row, UnreadableRow):  # guard: bulk-backfill-unreadable-counted
                self.unreadable(row)
                states.append(ImageState.UNREADABLE)
                continue
            state = state_of(row, self.backfill)
            is_ahead = state is ImageState.AHEAD and may_begin and not self.out_of_time()
            states.append(self._begin(cast("Image", row)) if is_ahead else state)
            if len(self.unsent) == _AT_ONCE:
                self._send()
        self._send()
        return states

    def _begin(self, image: Image) -> ImageState:
        recipe, version = self.ports.presets[self.backfill.selection.preset]
        after = begun(image, self.backfill, recipe, version, now=self.ports.clock())
        if after is None:
            return ImageState.SKIPPED
        with suppress(Fenced):  # another has changed it: the next look says what it is then
            # guard: bulk-backfill-version-fence
            self.unsent.append(self.ports.images.change(image, after, fence=("version",)))
        return ImageState.WORKING

    def _send(self) -> None:
        """Sends the messages of what was begun; the row of one that cannot be sent stands for it."""
        begun_now, self.unsent = self.unsent, []
        messages = [(message_for(image), 0) for image in begun_now]
        failures = self.ports.lanes.send_all(BULK.name, messages) if messages else {}
        for number, error in failures.items():  # guard: bulk-backfill-unsent-due
            report_failure("message not sent", error, image_id=begun_now[number].image_id)
            mark_due(self.ports, begun_now[number])
