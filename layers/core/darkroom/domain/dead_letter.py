"""Dead letters: what each says of itself, what its image's row says of it, and how a given-up image starts anew."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from darkroom.domain.errors import WORKER_LOST
from darkroom.domain.image import Attempt, Image, Status
from darkroom.domain.instants import Milliseconds, rfc3339
from darkroom.domain.lanes import LANES
from darkroom.domain.message import Message
from darkroom.domain.transitions import replay

RETENTION_SECONDS = 14 * 24 * 3600
"""How long SQS keeps a dead letter, counted from when its message was first sent; it allows no more."""

ARCHIVED_FROM_SECONDS = 12 * 24 * 3600
"""The age from which a dead letter is copied to the archive: every run of two days may fail but one."""


class Verdict(StrEnum):
    """What a dead letter is worth, by its image's row."""

    FAILED = "failed"
    """The run that it describes was given up: it can be replayed."""
    WORKING = "working"
    """Its image is unfinished and still looked after: the row, not the dead letter, will see to it."""
    SETTLED = "settled"
    """Its image has ended otherwise, was deleted or has been replayed since: it can be dropped."""
    UNKNOWN = "unknown"
    """There is no such image."""
    BATCH = "batch"
    """It describes a batch of scheduled images whose release was given up: moved back, it has the batch wake again."""
    UNREADABLE = "unreadable"
    """It is no message of ours, or one of a newer version."""
    UNREADABLE_ROW = "unreadable_row"
    """Its image's row is of a newer version: what the dead letter is worth, that version can tell."""


def verdict_of(message: Message | None, image: Image | None) -> Verdict:
    """What a dead letter is worth; `message` is None where its body could not be read."""
    if message is None:
        return Verdict.UNREADABLE
    if image is None:
        return Verdict.UNKNOWN
    if image.is_deleted or message.run < image.run:
        return Verdict.SETTLED
    if image.status is Status.FAILED:
        # A refusal has no dead letter of its own: one that lies here was made by deliveries before it.
        return Verdict.SETTLED if is_refused(image) else Verdict.FAILED
    return Verdict.SETTLED if image.status.is_terminal else Verdict.WORKING


def is_refused(image: Image) -> bool:
    """Whether the image failed by its own bytes, which no further attempt can change. What waits for an operator has a
    dead letter, and a refusal has none."""
    return image.error is not None and not image.error.retryable and image.dead_letter is None


def why_settled(message: Message, image: Image) -> str:
    """Why a dead letter that stands `settled` is of no use any more."""
    if image.is_deleted:
        return "its image was deleted"
    if message.run < image.run:
        return f"its image was begun anew since: run {image.run} is {image.status}"
    if image.status is Status.FAILED and image.error is not None:
        return f"its image was refused ({image.error.code})"
    return f"its image is {image.status}"


def why_not_replayable(image: Image | None) -> str | None:
    """Why an image cannot be replayed, or None where it can."""
    if image is None:
        return "There is no image with this id."
    if image.is_deleted:
        return "Its client has deleted it: there is nothing left to develop."
    if image.status is not Status.FAILED:
        return f"It is {image.status}, in run {image.run}: only an image that has failed can be replayed."
    if image.error is not None and is_refused(image):
        return (
            f"It was refused ({image.error.code}: {image.error.message}) Its bytes would be refused again: "
            "its client has to send another file."
        )
    return None


def reopened(image: Image, *, now: Milliseconds, message_at: Milliseconds) -> Image:
    """The given-up image once more, whose message comes to its lane at `message_at`: the sweeper waits for that."""
    return replace(
        replay(image, now=now),
        enqueued_at=message_at,
        due_at=LANES[image.lane].first_look_at(message_at),
    )


def explanation_of(image: Image, run: int | None = None) -> dict[str, Any]:
    """Why a run of an image (its latest, unless told) ended so, as JSON: its cause, every attempt that the row
    remembers of it, and where to look. Of an earlier run the row knows the attempts alone."""
    run = image.run if run is None else run
    attempts = [attempt for attempt in image.attempts if attempt.run == run]
    lost = [attempt for attempt in attempts if attempt.ended_at is None]
    error = image.error if run == image.run else None
    return {
        "v": 1,
        "image_id": image.image_id,
        "tenant_id": image.tenant_id,
        "lane": image.lane,
        "run": run,
        "correlation_id": image.correlation_id,
        "cause": None if error is None else error.code,
        "message": None if error is None else error.message,
        "first_at": rfc3339(min((attempt.started_at for attempt in attempts), default=None)),
        "last_at": rfc3339(image.completed_at if run == image.run else _last_end(attempts)),
        "attempts": [_told(attempt) for attempt in attempts],
        "look": None
        if not lost or (error is not None and error.code != WORKER_LOST)
        else "The worker's log tells a timeout (Task timed out) from a memory kill (signal: killed): filter the "
        f'transcoder\'s log group by "{lost[-1].request_id}".',
    }


def explanation_in(text: str | None) -> dict[str, Any] | None:
    """The explanation that a dead letter carries, or None where it has none that can be read."""
    try:
        explanation = json.loads(text or "null")
    except ValueError:
        return None
    if not isinstance(explanation, dict) or explanation.get("v") != 1:
        return None
    attempts = explanation.get("attempts") or []
    are_told = isinstance(attempts, list) and all(isinstance(attempt, dict) for attempt in attempts)
    return explanation if are_told else None


def _last_end(attempts: list[Attempt]) -> Milliseconds | None:
    return max((attempt.ended_at for attempt in attempts if attempt.ended_at is not None), default=None)


def _told(attempt: Attempt) -> dict[str, Any]:
    cause = attempt.cause
    return {
        "attempt": attempt.number,
        "request_id": attempt.request_id,
        "started_at": rfc3339(attempt.started_at),
        "ended_at": rfc3339(attempt.ended_at),
        "error_type": None if cause is None else cause.error_type,
        "message": None if cause is None else cause.message,
        "stack": None if cause is None else cause.stack,
    }


class RedriveStatus(StrEnum):
    """How a move of a whole queue of dead letters stands."""

    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def is_over(self) -> bool:
        """Whether it moves nothing more."""
        return self not in (RedriveStatus.RUNNING, RedriveStatus.CANCELLING)


@dataclass(frozen=True, kw_only=True)
class Redrive:
    """A move of all dead letters of a queue back to their lane, which goes on without whoever started it.

    `handle` is what it is cancelled by, known only while it runs; `to_move` is None until SQS has counted.
    """

    queue: str
    status: RedriveStatus
    started_at: Milliseconds
    moved: int
    to_move: int | None = None
    handle: str | None = None
    failure: str | None = None
