"""Lists images whose latest attempt failed and that will be tried again, grouped by what went wrong."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import batched, islice
from typing import Any

from darkroom.domain.dead_letters.dead_letter import explanation_of
from darkroom.domain.images.image import Cause, Image, Status, lease_lapsed, waiting_shards_of
from darkroom.domain.kernel.errors import WORKER_LOST
from darkroom.domain.kernel.fingerprint import StackFrame, fingerprint, guilty_frame
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import retries_of
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock

_PAGE = 100
"""How many rows one look reads: DynamoDB's limit for a batch."""


@dataclass(frozen=True, kw_only=True)
class ListRetryingPorts:
    """What looking for them needs."""

    images: Images
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Defect:
    """Images that failed alike in their latest attempt, the longest waiting first, with the cause of the first."""

    fingerprint: str
    cause: Cause
    frame: StackFrame | None
    images: tuple[Image, ...]

    @property
    def attempts(self) -> int:
        """The most attempts that one of them has had in its run."""
        return max(image.attempt for image in self.images)


@dataclass(frozen=True, kw_only=True)
class Retrying:
    """The defects, that with the most images first; `looked_at` unfinished images were read, and `is_all` says whether
    there are no more."""

    defects: tuple[Defect, ...]
    looked_at: int
    is_all: bool


@dataclass(frozen=True, kw_only=True)
class Retry:
    """An unfinished image whose attempts failed: what the row remembers of them, as a dead letter would explain it, and
    the attempt that follows. `number` is None if it was the last, so that the image is about to be given up. It began
    at `begins_at` if it `is_in_work`, and otherwise begins then at the earliest (None: at any moment)."""

    image: Image
    explanation: dict[str, Any]
    number: int | None
    is_in_work: bool
    begins_at: Milliseconds | None

    @property
    def cause(self) -> str:
        """The exception of the latest attempt that ended with one; `worker_lost` if none did."""
        cause = latest_failure(self.image)
        return WORKER_LOST if cause is None else cause.error_type

    @property
    def fingerprint(self) -> str | None:
        """The defect that this exception is."""
        cause = latest_failure(self.image)
        return None if cause is None else fingerprint(cause.error_type, cause.stack)


def retry_of(image: Image, *, now: Milliseconds) -> Retry | None:
    """How the image is retried; None if it has ended, or none of its run's attempts has failed or lost its worker."""
    if image.status.is_terminal or image.is_deleted:
        return None
    is_in_work = image.status is Status.PROCESSING and not lease_lapsed(image, now)
    own = [attempt for attempt in image.attempts if attempt.run == image.run]
    # guard: dlq-show-running-not-failed
    over = [attempt for attempt in own if not is_in_work or attempt.number != image.attempt]
    if not over:
        return None
    begins_at = image.not_before
    number = image.attempt + 1 if image.attempt < retries_of(image.lane).attempts else None
    if is_in_work:
        number, begins_at = image.attempt, next((each.started_at for each in own if each not in over), None)
    return Retry(
        image=image,
        explanation=explanation_of(replace(image, attempts=tuple(over))),
        number=number,
        is_in_work=is_in_work,
        begins_at=begins_at,
    )


def list_retrying(
    ports: ListRetryingPorts, lanes: Iterable[str], *, limit: int, covers: Callable[[Image], bool] = lambda _: True
) -> Retrying:
    """Reads the `limit` unfinished images of these lanes that have waited longest. Raises Retryable if the table cannot
    answer."""
    now = ports.clock()
    shards = [
        ports.images.waiting(lane, shard, since=0, until=now + 1, page_size=_PAGE)
        for lane in lanes
        for shard in waiting_shards_of(lane)
    ]
    waiting = list(islice(heapq.merge(*shards), limit + 1))
    images: list[Image] = []
    for batch in batched(waiting[:limit], _PAGE, strict=False):
        rows = ports.images.get_all([entry.image_id for entry in batch])
        each = (rows.get(entry.image_id) for entry in batch)
        images += [row for row in each if isinstance(row, Image) and covers(row)]
    return Retrying(defects=defects_of(images), looked_at=min(len(waiting), limit), is_all=len(waiting) <= limit)


def defects_of(images: Iterable[Image]) -> tuple[Defect, ...]:
    """Those of these images that failed in their latest attempt and are unfinished, by what went wrong, the most
    frequent first; the images of one defect stay in order."""
    failures_by_fingerprint: dict[str, list[tuple[Image, Cause]]] = {}
    for image in images:
        cause = latest_failure(image)
        if cause is not None:
            failures_by_fingerprint.setdefault(fingerprint(cause.error_type, cause.stack), []).append((image, cause))
    defects = [_defect(name, alike) for name, alike in failures_by_fingerprint.items()]
    return tuple(sorted(defects, key=lambda defect: -len(defect.images)))


def latest_failure(image: Image) -> Cause | None:
    """The exception of the present run's latest attempt that ended with one, if the image is unfinished."""
    if image.status.is_terminal:  # guard: retrying-ended-excluded
        return None
    # guard: retrying-current-run-only
    own = [attempt.cause for attempt in image.attempts if attempt.run == image.run and attempt.cause is not None]
    return own[-1] if own else None


def _defect(name: str, alike: Sequence[tuple[Image, Cause]]) -> Defect:
    _, cause = alike[0]
    return Defect(
        fingerprint=name, cause=cause, frame=guilty_frame(cause.stack), images=tuple(image for image, _ in alike)
    )
