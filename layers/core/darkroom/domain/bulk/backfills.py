"""Backfills: an operator has images that an earlier version of a preset made developed again by its present one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from enum import StrEnum

from darkroom.domain.bulk.batches import KEPT_DAYS
from darkroom.domain.images.image import DeadLetterState, Image, Status, Work
from darkroom.domain.images.transitions import redevelop
from darkroom.domain.images.works import require_few
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.figures import added
from darkroom.domain.kernel.ids import image_id_from_bits
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import BULK, LIVE_LANES, USUAL_PHOTO_SECONDS, Lane
from darkroom.domain.recipes.recipes import Recipe

PREFIX = "bf_"

PAGE_IMAGES = 100
"""How many images a page has at most: what one read of rows takes, and an item of 3 KB."""

LOOK_SECONDS = 120
"""The pause between two looks, and between two comparisons of all pages with their images' rows, which are most of what
a backfill costs."""

FED_SECONDS = 300
"""For how many seconds at the usual rate of its lane's workers images are begun ahead, and how much of its rate a look
may catch up with: longer than the pause between two looks, so that the workers do not wait for the next."""


class BackfillState(StrEnum):
    """A backfill's state. One that is `paused` or `cancelled` begins nothing more; what is begun ends."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nobody can make it run again."""
        return self in (BackfillState.COMPLETED, BackfillState.CANCELLED)


class ImageState(StrEnum):
    """How far an image of a page is: it is yet to be begun, or waits for other work on it; it was begun; or it has
    ended here, in one of four ways."""

    AHEAD = "ahead"
    BUSY = "busy"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, kw_only=True)
class BackfillCounts:
    """How many images have ended in each way. Those that were deleted, or made anew otherwise, are `skipped`."""

    done: int = 0
    failed: int = 0
    skipped: int = 0
    unreadable: int = 0

    def __add__(self, other: BackfillCounts) -> BackfillCounts:
        return added(self, other)

    @property
    def images(self) -> int:
        """All of them."""
        return sum(astuple(self))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which images are made again: those that are done, by a version of `preset` before `version`; created from `since`
    on and before `until`, with `tag`, of that tenant, if these are given."""

    preset: str
    version: int
    since: Milliseconds | None = None
    until: Milliseconds | None = None
    tag: str | None = None
    tenant_id: str | None = None

    def covers(self, image: Image) -> bool:
        """Whether the image is one of them, as its row says."""
        return (
            not image.is_deleted
            and image.outcome is Status.DONE
            and image.has_original
            and image.preset == self.preset
            and (image.preset_version or 1) < self.version  # guard: bulk-backfill-older-only
            and (self.since is None or image.created_at >= self.since)
            and (self.until is None or image.created_at < self.until)
            and (self.tag is None or self.tag in image.tags)
            and self.tenant_id in (None, image.tenant_id)
        )


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some images that are being made again; `number` tells it from the backfill's others."""

    backfill_id: str
    number: int
    image_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """One row: the truth about a backfill but for its pages, each of which has an item of its own.

    `rate` is how many images may be begun per second, None for as many as its lane takes. The images' table was read
    `up_to` that id, None for its beginning, or `is_listed` to its end; `read` rows were looked at, and `found` images
    were put into `pages`. `next_at` is when the rate allows the next page. While a look goes on, `compared_at` is
    when it has compared all pages with their images' rows. `waits_for` says why nothing more was begun at the latest
    look. It has ended once its state is final and it has no `due_at`.
    """

    backfill_id: str
    state: BackfillState = BackfillState.RUNNING
    version: int = 1
    created_at: Milliseconds
    selection: Selection
    rate: int | None = None
    up_to: str | None = None
    is_listed: bool = False
    read: int = 0
    found: int = 0
    pages: int = 0
    counts: BackfillCounts = BackfillCounts()
    next_at: Milliseconds = 0
    compared_at: Milliseconds = 0
    waits_for: str | None = None
    ended_at: Milliseconds | None = None
    due_at: Milliseconds | None = None
    forget_at: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.state.is_final and self.due_at is None

    @property
    def in_work(self) -> int:
        """How many images are in pages."""
        return self.found - self.counts.images


def backfill_id_from_bits(random_bits: bytes) -> str:
    """The id that 16 bytes encode."""
    return PREFIX + image_id_from_bits(random_bits)


def start(backfill_id: str, selection: Selection, *, rate: int | None, now: Milliseconds) -> Backfill:
    """The row of a new backfill, due at once."""
    return Backfill(backfill_id=backfill_id, created_at=now, selection=selection, rate=rate, due_at=now)


def decided(backfill: Backfill, state: BackfillState, *, now: Milliseconds) -> Backfill:
    """The backfill as an operator wants it, due for a look at once. One that is so, or final, stays as it is."""
    if backfill.state.is_final or backfill.state is state:  # guard: bulk-backfill-final-stays
        return backfill
    return replace(backfill, state=state, waits_for=None, due_at=now)


def look_again(backfill: Backfill, *, waits_for: str | None, now: Milliseconds) -> Backfill:
    """The backfill with its next look, and what it waits for until then."""
    return replace(backfill, waits_for=waits_for, compared_at=0, due_at=now + LOOK_SECONDS * 1000)


def is_to_compare(backfill: Backfill, now: Milliseconds) -> bool:
    """Whether a look compares the pages with their images' rows: the first one, and while looks go on, after a time."""
    return now - backfill.compared_at >= LOOK_SECONDS * 1000  # guard: bulk-backfill-compared-seldom


def end(backfill: Backfill, *, now: Milliseconds) -> Backfill:
    """The backfill without pages, all of whose images were found, or which was cancelled. Raises ValueError for
    another."""
    is_cancelled = backfill.state is BackfillState.CANCELLED
    if backfill.in_work or not (is_cancelled or backfill.is_listed):  # guard: bulk-backfill-end-all-settled
        raise ValueError(f"a backfill that is {backfill.state} cannot end with {backfill.in_work} images in work")
    return replace(
        backfill,
        state=backfill.state if is_cancelled else BackfillState.COMPLETED,
        waits_for=None,
        ended_at=now,
        due_at=None,
        forget_at=now // 1000 + KEPT_DAYS * 24 * 3600,
    )


def with_page(
    backfill: Backfill,
    image_ids: tuple[str, ...],
    *,
    up_to: str | None,
    read: int,
    now: Milliseconds,
) -> tuple[Backfill, Page]:
    """The backfill that was read so far, and its next page, which is not written if it is empty."""
    page = Page(backfill_id=backfill.backfill_id, number=backfill.pages, image_ids=image_ids)
    pace = 0 if backfill.rate is None else 1000 * len(image_ids) // backfill.rate
    return replace(
        backfill,
        up_to=up_to,
        is_listed=up_to is None,
        read=backfill.read + read,
        found=backfill.found + len(image_ids),
        pages=backfill.pages + bool(image_ids),
        next_at=max(backfill.next_at, now - FED_SECONDS * 1000) + pace,
    ), page


def without_page(backfill: Backfill, states: Iterable[ImageState]) -> Backfill:
    """The backfill with the images of a page counted, all of which have ended here."""
    ended = Counter(state.value for state in states)
    return replace(backfill, counts=backfill.counts + BackfillCounts(**ended))


def most_in_work(lane: Lane) -> int:
    """How many images are begun and not ended at most."""
    return int(FED_SECONDS * lane.concurrency / USUAL_PHOTO_SECONDS)


def waits_too_long(lane: str, oldest_seconds: float) -> bool:
    """Whether live traffic needs the room: its oldest image waits for more than half of what its lane promises, and so
    is not yet late when the begun ones are through."""
    return oldest_seconds > LIVE_LANES[lane].sla_seconds / 2


def work_of(image: Image, backfill_id: str) -> Work | None:
    """The latest work that the backfill has begun beside the image."""
    return next((work for work in reversed(image.works) if work.backfill == backfill_id), None)


def state_of(image: Image | None, backfill: Backfill) -> ImageState:
    """How far the image is."""
    if image is None:
        return ImageState.SKIPPED
    work = work_of(image, backfill.backfill_id)
    if work is not None and work.ended_at is not None:  # guard: bulk-backfill-made-once
        return ImageState.FAILED if work.failed else ImageState.DONE
    if work is not None and not image.is_deleted and image.work is not None:
        return ImageState.WORKING
    # guard: bulk-backfill-cancelled-begins-nothing
    if backfill.state is BackfillState.CANCELLED or not backfill.selection.covers(image):
        return ImageState.SKIPPED
    # guard: bulk-backfill-busy-waits
    if image.status is not Status.DONE or image.dead_letter is DeadLetterState.OWED:
        return ImageState.BUSY
    return ImageState.AHEAD


def begun(image: Image, backfill: Backfill, recipe: Recipe, version: int, *, now: Milliseconds) -> Image | None:
    """The image with the work beside it that makes what the preset makes now, or of it what its client has chosen; None
    if that is nothing, or too much beside what was added."""
    known = {variant.name for variant in recipe.variants}
    names = [] if image.recipe is None else [it.name for it in image.recipe.variants if it.name in known]
    try:
        wanted = recipe.choose(names) if image.chooses else recipe
        require_few(replace(image, recipe=wanted), wanted)
    except Rejected:
        return None
    return redevelop(image, wanted, version=version, backfill=backfill.backfill_id, lane=BULK.name, now=now)
