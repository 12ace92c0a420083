"""How an image that has ended begins its next run, which only an operator asks for: a replay or a redo."""

from __future__ import annotations

from dataclasses import replace

from darkroom.domain.images.image import Image, RunEnd, Status
from darkroom.domain.images.transitions import TransitionRefused, transition
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES

REMEMBERED_ENDS = 20
"""How many earlier runs a row describes by their ends: their events can be published again."""


def replay(image: Image, *, now: Milliseconds) -> Image:
    """The failed image reopened with its first attempt ahead: only an operator asks for that.

    The replay sends its message; if that fails, the sweeper sends it.
    """
    return _next_run(image, Status.FAILED, now=now)


def redo(image: Image, *, now: Milliseconds) -> Image:
    """The done image reopened, as `replay` does with a failed one: only an operator asks for that.

    Its variants, with their placeholder, attention and notices, stay until a run has made others. Its `expires_at` is
    cleared: it was developed in time.
    """
    return replace(_next_run(image, Status.DONE, now=now), expires_at=None)  # guard: redo-clears-expiry


def reopened(image: Image, *, now: Milliseconds, message_at: Milliseconds) -> Image:
    """The given-up image, reopened; its message reaches its lane at `message_at`, and the sweeper waits until then."""
    return replace(
        replay(image, now=now),
        enqueued_at=message_at,
        due_at=LANES[image.lane].first_look_at(message_at),
    )


def _next_run(image: Image, after: Status, *, now: Milliseconds) -> Image:
    if image.status is not after:  # guard: replay-and-redo-source-status
        raise TransitionRefused(f"an image cannot go from {image.status} to pending here, only from {after}")
    return transition(
        image,
        Status.PENDING,
        run=image.run + 1,
        attempt=0,
        error=None,
        completed_at=None,
        completed_version=None,
        earlier_ends=_with_its_end(image),
        dead_letter=None,
        waiting_since=now,
        enqueued_at=now,
        rescues=0,
        due_at=LANES[image.lane].first_look_at(now),
    )


def _with_its_end(image: Image) -> tuple[RunEnd, ...]:
    if image.completed_at is None or image.completed_version is None:  # written before there were events
        return image.earlier_ends
    end = RunEnd(run=image.run, status=image.status, ended_at=image.completed_at, version=image.completed_version)
    return (*image.earlier_ends, end)[-REMEMBERED_ENDS:]
