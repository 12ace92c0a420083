"""Dead letters: what each says about itself, and what its image's row says about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from darkroom.domain.images.image import Attempt, Image, Status
from darkroom.domain.kernel.errors import WORKER_LOST
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.message import Message

ARCHIVED_FROM_SECONDS = 12 * 24 * 3600
"""The age from which a dead letter is copied to the archive: of the runs in two days, all but one may fail."""


class Verdict(StrEnum):
    """What an operator can do with a dead letter, according to its image's row."""

    FAILED = "failed"
    """The run that it describes was given up: it can be replayed."""
    WORKING = "working"
    """Its image is unfinished and still in progress: the row takes care of it, and the dead letter is not needed."""
    SETTLED = "settled"
    """Its image has ended otherwise, was deleted or has been replayed since: it can be dropped."""
    UNKNOWN = "unknown"
    """There is no such image."""
    BATCH = "batch"
    """It describes a batch of scheduled images whose release was given up: moving it back wakes the batch again."""
    REJECTED = "rejected"
    """It did not verify: this stack has not sent it, or not so. No row was read for it, and none needs it."""
    UNREADABLE = "unreadable"
    """It is not a Darkroom message, or a newer version's."""
    UNREADABLE_ROW = "unreadable_row"
    """Its image's row was written by a newer version: only that version can tell the verdict."""


def verdict_of(message: Message | None, image: Image | None) -> Verdict:
    """The verdict on a dead letter; `message` is None if its body could not be read."""
    if message is None:
        return Verdict.UNREADABLE
    if image is None:
        return Verdict.UNKNOWN
    if image.is_deleted or message.run < image.run:
        return Verdict.SETTLED
    if image.status is Status.FAILED or image.failed_work is not None:  # guard: works-failed-replayable
        # A refusal makes no dead letter: the one here comes from earlier deliveries.
        return Verdict.SETTLED if is_refused(image) else Verdict.FAILED
    return Verdict.SETTLED if image.status.is_terminal else Verdict.WORKING


def is_refused(image: Image) -> bool:
    """Whether the image's latest run failed because of the image's own bytes, which no further attempt can change, or
    because they never came. What waits for an operator has a dead letter, and what is refused has none."""
    # guard: dead-letters-missing-original
    is_final = image.failure is not None and not (image.failure.retryable and image.has_original)
    return is_final and image.dead_letter is None  # guard: original-loss-not-refusal


def explanation_of(image: Image, run: int | None = None) -> dict[str, Any]:
    """Explains as JSON why a run of an image (by default its latest) ended so: its cause, every attempt of it that the
    row still has, where to look, and with which command an operator replays it: a dead letter is often read where
    nothing else explains it. For an earlier run the row has only the attempts."""
    run = image.run if run is None else run
    attempts = [attempt for attempt in image.attempts if attempt.run == run]
    lost = [attempt for attempt in attempts if attempt.ended_at is None]
    error = image.failure if run == image.run else None
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
        "last_at": rfc3339(image.ended_at if run == image.run else _last_end(attempts)),
        "attempts": [_told(attempt) for attempt in attempts],
        "look": None
        if not lost or (error is not None and error.code != WORKER_LOST)
        else "The worker's log tells a timeout (Task timed out) from a memory kill (signal: killed): filter the "
        f'transcoder\'s log group by "{lost[-1].request_id}".',
        # guard: dead-letters-replay-told
        "replay": None if error is None else f'./darkroom dlq replay --image {image.image_id} --stack "$STACK"',
    }


def without_texts(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """The explanation as dead letters and their archive carry it. They outlive their image's row, so that what errors
    say stays in the row: it goes when its client deletes the image."""

    def named(part: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in part.items() if name not in _TEXTS}

    return named(explanation) | {"attempts": [named(attempt) for attempt in explanation.get("attempts") or ()]}


def with_texts(explanation: dict[str, Any], image: Image, run: int) -> dict[str, Any]:
    """The explanation of a dead letter, with what the row remembers of that run's errors."""
    known = explanation_of(image, run)
    attempt_by_request = {attempt["request_id"]: attempt for attempt in known["attempts"]}
    attempts = [
        attempt_by_request.get(attempt.get("request_id"), attempt) for attempt in explanation.get("attempts") or ()
    ]
    return {"message": known["message"], **explanation, "attempts": attempts}


_TEXTS = frozenset({"message", "stack"})


def explanation_in(text: str | None) -> dict[str, Any] | None:
    """The explanation that a dead letter carries, or None without a readable one."""
    try:
        explanation = json.loads(text or "null")
    except ValueError:
        return None
    if not isinstance(explanation, dict) or explanation.get("v") != 1:
        return None
    attempts = explanation.get("attempts") or []
    are_told = isinstance(attempts, list) and all(isinstance(attempt, dict) for attempt in attempts)
    return explanation if are_told else None  # guard: isolated-dead-letter-version


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
