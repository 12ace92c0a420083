"""Copies dead letters that near their 14 days to a bucket, with all that is known about them, before SQS deletes
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.dead_letters.dead_letter import ARCHIVED_FROM_SECONDS, without_texts
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import rfc3339
from darkroom.operations.dead_letters.cases import Case, CasePorts, grouped, look_up
from darkroom.ports.dead_letters import Archive, DeadLetter

ARCHIVE_LIMIT = 10_000
"""The most dead letters of a queue that one run reads; a later run reads the rest."""


@dataclass(frozen=True, kw_only=True)
class Archiving:
    """What one run did: dead letters by outcome (`archived`, `kept_before`, `too_young`), the age of each queue's
    oldest dead letter (0 if there is none), errors by queue, and the queues with more than one run reads."""

    outcomes: Counter[str] = field(default_factory=Counter)
    oldest_seconds: dict[str, float] = field(default_factory=dict)
    problems: dict[str, Exception] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ArchiveDeadLettersPorts(CasePorts):
    """What archiving needs besides the ports of reading dead letters."""

    archive: Archive


def archive_dead_letters(
    ports: ArchiveDeadLettersPorts,
    *,
    out_of_time: Callable[[], bool],
    older_than_seconds: float = ARCHIVED_FROM_SECONDS,
    queues: tuple[str, ...] | None = None,
    on_dead_letter: Callable[[str], None] = lambda outcome: None,
) -> Archiving:
    """Copies every dead letter older than the given age; it stays in its queue. A repetition skips what was already
    copied.

    A queue that cannot be read, or a dead letter that hits a bug, does not hold up the others.
    """
    run = Archiving()
    for queue in ports.dead_letters.queues if queues is None else queues:
        try:
            taken = ports.dead_letters.take(queue, ARCHIVE_LIMIT)
            ports.dead_letters.give_back(taken.dead_letters)
        except Exception as error:
            run.problems[queue] = error
            continue
        if not taken.complete:
            run.incomplete.append(queue)
        oldest = min((dead_letter.sent_at for dead_letter in taken.dead_letters), default=ports.clock())
        run.oldest_seconds[queue] = max(0.0, (ports.clock() - oldest) / 1000)
        for group in grouped(taken.dead_letters):
            old = [
                dead_letter
                for dead_letter in group.dead_letters
                if ports.clock() - dead_letter.sent_at > older_than_seconds * 1000
            ]
            run.outcomes["too_young"] += len(group.dead_letters) - len(old)
            if not old:
                continue
            if out_of_time():
                run.problems[queue] = Retryable("time ran out")
                return run
            try:
                case = look_up(ports, group)
                for dead_letter in old:
                    stored = ports.archive.put_if_absent(archive_key(dead_letter), document_of(dead_letter, case))
                    outcome = "archived" if stored else "kept_before"
                    run.outcomes[outcome] += 1
                    on_dead_letter(outcome)
            except Exception as error:
                run.problems[queue] = error
    return run


def archive_key(dead_letter: DeadLetter) -> str:
    """The archive key of the dead letter: its queue, and the day on which its message was first sent."""
    day = (rfc3339(dead_letter.sent_at) or "")[:10]
    return f"{dead_letter.queue}/{day}/{dead_letter.message_id}.json"


def document_of(dead_letter: DeadLetter, case: Case) -> dict[str, Any]:
    """The archived form of a dead letter: its message, its verdict when it was copied, and why. What could not be read
    is kept as it came; of a message nothing is kept that describes the picture or repeats an error's text."""
    image, message = case.image, case.message
    return {
        "v": 1,
        "queue": dead_letter.queue,
        "message_id": dead_letter.message_id,
        "sent_at": rfc3339(dead_letter.sent_at),
        "body": dead_letter.body if message is None else message.model_dump_json(),
        "verdict": case.verdict.value,
        "problem": case.problem,
        "explanation": without_texts(case.explanation) if case.explanation else None,  # guard: erasure-archive-no-texts
        "image": None
        if image is None
        else {
            "status": image.outcome.value,
            "run": image.run,
            "created_at": rfc3339(image.created_at),
            "completed_at": rfc3339(image.ended_at),
        },
    }
