"""How an image that has ended begins its next run, which only an operator asks for: a replay or a redo."""

from __future__ import annotations

from dataclasses import replace

from darkroom.domain.images.image import Image, Status, WorkKind
from darkroom.domain.images.transitions import TransitionRefused, begin_work, next_run, redevelop
from darkroom.domain.images.works import with_its_end
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import BULK, LANES


def replay(image: Image, *, now: Milliseconds) -> Image:
    """The failed image reopened with its first attempt ahead, or the image whose latest work has failed with that work
    beside it again: only an operator asks for that.

    The replay sends its message; if that fails, the sweeper sends it.
    """
    if (work := image.failed_work) is not None:
        if work.backfill is not None and work.recipe is not None:
            version = work.preset_version or 1
            return redevelop(image, work.recipe, version=version, backfill=work.backfill, lane=BULK.name, now=now)
        again = begin_work(
            image,
            work.kind,
            now=now,
            recipe=work.recipe,
            visibility=work.visibility,
            edits=work.edits,
            key=work.key,
            fingerprint=work.fingerprint,
        )
        if image.edit is None or image.edit.run != work.run:
            return again
        return replace(again, edit=replace(image.edit, run=again.run))  # guard: bulk-edit-replay-keeps-number
    if image.status is not Status.FAILED:  # guard: replay-and-redo-source-status
        raise TransitionRefused(f"an image cannot go from {image.status} to pending here, only from failed")
    return next_run(
        image,
        now=now,
        error=None,
        completed_at=None,
        completed_version=None,
        earlier_ends=with_its_end(image),
    )


def redo(image: Image, *, now: Milliseconds) -> Image:
    """The done image with work beside it that makes all of its variants again: only an operator asks for that."""
    return begin_work(image, WorkKind.REDO, now=now)


def reopened(image: Image, *, now: Milliseconds, message_at: Milliseconds) -> Image:
    """The given-up image, reopened; its message reaches its lane at `message_at`, and the sweeper waits until then."""
    again = replay(image, now=now)
    return replace(again, enqueued_at=message_at, due_at=LANES[again.lane].first_look_at(message_at))
