"""The result of a load: nothing lost, nothing doubled, nothing stuck, and the same bytes as in an undisturbed run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darkroom.domain.images.image import DeadLetterState, Image, Status
from tests.support.running.load import Answer
from tests.support.running.stack import Stack

_LOOK_SECONDS = 1.0

type Prints = Mapping[str, Mapping[str, str]]
"""By photo and variant: what the variant's bytes are."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The account of one load. `lost`, `doubled`, `stuck` and `differing` describe each case."""

    uploads: int
    accepted: int
    done: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    stuck: tuple[str, ...]
    differing: tuple[str, ...]
    attempts: int
    attempts_lost: int
    attempts_failed: int
    most_attempts: int

    @property
    def broken(self) -> list[str]:
        """Every broken promise."""
        return [*self.lost, *self.doubled, *self.stuck, *self.differing]


def settle(stack: Stack, answers: Sequence[Answer], *, patience_seconds: float, sweeping: bool) -> None:
    """Wait until these uploads' images have ended and the lane is empty, or until the time limit.

    `sweeping` runs the sweeper again and again, in case its schedule is too slow for the stack's pace.
    """
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if sweeping:
            stack.sweep()
        if stack.waiting_messages() == 0:
            rows = {row.image_id: row for row in stack.rows()}
            unfinished = [
                row for answer in answers if (row := rows.get(answer.image_id)) and not row.status.is_terminal
            ]
            if not unfinished:
                return
        time.sleep(_LOOK_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a stack shows: its rows, its objects' contents, how often and how workers logged that they ended an image,
    and how many messages are left."""

    rows: Mapping[str, Image]
    tags: Mapping[str, str]
    ends: Mapping[str, Counter[str]]
    messages: int

    @classmethod
    def of(cls, stack: Stack) -> Evidence:
        """The evidence as it is now."""
        return cls(
            rows={row.image_id: row for row in stack.rows()},
            tags=stack.entity_tags(),
            ends=ends_of(stack),
            messages=stack.waiting_messages(),
        )

    def prints(self, image_id: str) -> dict[str, str]:
        """An image's variants, by its row and by the objects."""
        variants = self.rows[image_id].variants
        return {variant.name: f"{variant.sha256} {self.tags.get(variant.key, 'no object')}" for variant in variants}


def prints_of(stack: Stack, answers: Sequence[Answer]) -> Prints:
    """The variants of these uploads, by photo."""
    evidence = Evidence.of(stack)
    return {answer.photo.name: evidence.prints(answer.image_id) for answer in answers}


def outcome_of(evidence: Evidence, answers: Sequence[Answer], *, undisturbed: Prints) -> Outcome:
    """Compare what clients were told with the rows, the objects and the logs."""
    rows = evidence.rows
    lost, doubled, stuck, differing = [], [], [], []
    worked = [rows[answer.image_id] for answer in answers if answer.image_id in rows]
    lost += [
        f"{answer.image_id} was accepted and has no row"
        for answer in answers
        if answer.is_accepted and answer.image_id not in rows
    ]
    for answer in answers:
        row = rows.get(answer.image_id)
        if row is None:
            continue
        named = f"{row.image_id} ({answer.photo.name}, answered {answer.status})"
        if not row.status.is_terminal:
            stuck.append(f"{named} is still {row.status}, attempt {row.attempt}")
        elif row.due_at is not None and row.dead_letter is not DeadLetterState.PLACED:
            stuck.append(f"{named} is {row.status} and still due")
        if row.status is Status.DONE:
            if evidence.prints(row.image_id) != undisturbed[answer.photo.name]:
                differing.append(f"{named} is not what it is undisturbed")
            own = {variant.key for variant in row.variants}
            stray = [key for key in evidence.tags if f"/{row.image_id}/" in key and key not in own]
            doubled += [f"{key} is no output of {named}" for key in stray]
        elif row.status.is_terminal:
            lost.append(f"{named} ended {row.status}: {row.error}")
        ends = evidence.ends.get(row.image_id, Counter())
        # Nothing leaves `done`, and only a replay leaves `failed`, for the next run.
        failed_runs = row.run - (row.status is not Status.FAILED)
        if ends["done"] > 1 or ends["failed"] + ends["gave_up"] > failed_runs:
            doubled.append(f"{named} in run {row.run} has ended more often than that: {dict(ends)}")
    if evidence.messages > 0:
        stuck.append(f"{evidence.messages} messages stay in the lane")
    attempts = [attempt for row in worked for attempt in row.attempts]
    return Outcome(
        uploads=len(answers),
        accepted=sum(answer.is_accepted for answer in answers),
        done=sum(row.status is Status.DONE for row in worked),
        lost=tuple(lost),
        doubled=tuple(doubled),
        stuck=tuple(stuck),
        differing=tuple(differing),
        attempts=len(attempts),
        attempts_lost=sum(attempt.ended_at is None for attempt in attempts),
        attempts_failed=sum(attempt.cause is not None for attempt in attempts),
        most_attempts=max((row.attempt for row in worked), default=0),
    )


def ends_of(stack: Stack) -> dict[str, Counter[str]]:
    """How often and how workers logged that they ended an image."""
    ends: dict[str, Counter[str]] = {}
    for line in stack.log_lines("TranscodeImageLogs"):
        if line.get("outcome") in ("done", "failed", "gave_up"):
            ends.setdefault(line["image_id"], Counter())[line["outcome"]] += 1
    return ends
