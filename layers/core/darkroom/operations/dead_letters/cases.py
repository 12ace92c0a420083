"""Groups dead letters by failure, each with what its row says now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from darkroom.domain.dead_letters.dead_letter import Verdict, explanation_in, explanation_of, verdict_of, with_texts
from darkroom.domain.dead_letters.rejection import RejectedMessage, read_rejected_message
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.fingerprint import fingerprint
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message, UnreadableMessage
from darkroom.domain.schedules.hold import BatchDeadLetter, read_batch_dead_letter
from darkroom.domain.uploads.upload_notification import NOBODY, read_dead_letter
from darkroom.ports.dead_letters import DeadLetter, DeadLetters
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, UnreadableRow


@dataclass(frozen=True, kw_only=True)
class Case:
    """One failure to decide on: all dead letters of one run of one image, one dead letter of a batch of scheduled
    images, one message that did not verify, or one that names none of these.

    `explanation` is what the dead letter says, and what the row remembers; empty if neither says anything. A case
    without `letters` is that of an image whose dead letter the sweeper has yet to place.
    """

    queue: str
    dead_letters: tuple[DeadLetter, ...]
    message: Message | None
    image: Image | None
    verdict: Verdict
    explanation: dict[str, Any]
    problem: str | None
    batch: BatchDeadLetter | None = None
    rejected: RejectedMessage | None = None

    @property
    def sent_at(self) -> Milliseconds:
        """When the first of its messages was sent, from which its 14 days count; until there is one, when its image was
        given up."""
        given_up_at = None if self.image is None else self.image.ended_at
        return min((dead_letter.sent_at for dead_letter in self.dead_letters), default=given_up_at or 0)

    @property
    def error_code(self) -> str | None:
        """The code that its client is told, such as `internal`."""
        return self.explanation.get("cause")

    @property
    def last_error(self) -> dict[str, Any] | None:
        """The latest attempt that ended with an exception."""
        attempts = self.explanation.get("attempts") or []
        return next((attempt for attempt in reversed(attempts) if attempt.get("error_type")), None)

    @property
    def fingerprint(self) -> str | None:
        """What it has in common with other failures of the same defect (`domain.fingerprint`); None if no attempt ended
        with an exception."""
        error = self.last_error
        return None if error is None else fingerprint(str(error["error_type"]), str(error.get("stack") or ""))

    @property
    def cause(self) -> str | None:
        """Its cause as operators name it: the exception's type; `worker_lost` if the workers died."""
        if self.batch is not None:
            return self.batch.error
        lost = self.error_code not in (None, "internal")
        return self.error_code if lost or self.last_error is None else str(self.last_error["error_type"])


@dataclass(frozen=True, kw_only=True)
class CasePorts:
    """What reading dead letters needs."""

    dead_letters: DeadLetters
    images: Images
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Group:
    """Dead letters of one queue that describe the same run of the same image; `problem` says why one could not be
    read."""

    dead_letters: tuple[DeadLetter, ...]
    message: Message | None
    problem: str | None
    batch: BatchDeadLetter | None = None
    rejected: RejectedMessage | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Identifies the group when its dead letters are received again."""
        if self.rejected is not None:
            return (f"rejected {self.rejected.message_id}", 0)
        return (
            (self.dead_letters[0].message_id, 0) if self.message is None else (self.message.image_id, self.message.run)
        )


def grouped(dead_letters: Iterable[DeadLetter]) -> list[Group]:
    """The dead letters grouped by what they describe, in the order in which they came."""
    groups: dict[tuple[str, int], Group] = {}
    for dead_letter in dead_letters:
        try:
            group = Group(dead_letters=(dead_letter,), message=read_dead_letter(dead_letter.body), problem=None)
        except UnreadableMessage as error:
            batch, rejected = read_batch_dead_letter(dead_letter.body), read_rejected_message(dead_letter.body)
            problem = str(error) if batch is None else f"{batch.error}: {batch.cause}"
            if rejected is not None:
                problem = str((explanation_in(dead_letter.explanation) or {}).get("message", "It did not verify."))
            group = Group(dead_letters=(dead_letter,), message=None, problem=problem, batch=batch, rejected=rejected)
        earlier = groups.get(group.key)
        if earlier is not None:
            group = replace(earlier, dead_letters=(*earlier.dead_letters, dead_letter))
        groups[group.key] = group
    return list(groups.values())


def look_up(ports: CasePorts, group: Group) -> Case:
    """The group as a case, with its image's current row. An unreadable row makes it a case that no command acts on, and
    does not hold up the others."""
    message, problem = group.message, group.problem
    try:
        image = None if message is None else ports.images.get(message.image_id)
        if group.rejected is not None:
            verdict = Verdict.REJECTED
        else:
            verdict = Verdict.BATCH if group.batch is not None else verdict_of(message, image)
    except UnreadableRow as error:  # guard: unreadable-dead-letter-isolated
        image, verdict, problem = None, Verdict.UNREADABLE_ROW, str(error)
    if message is not None and message.tenant_id == NOBODY and image is not None:
        message = message.model_copy(update={"tenant_id": image.tenant_id})
    explanations = (explanation_in(dead_letter.explanation) for dead_letter in group.dead_letters)
    explanation = next((explanation for explanation in explanations if explanation is not None), {})
    if image is not None and message is not None:
        run = message.run
        explanation = with_texts(explanation, image, run) if explanation else explanation_of(image, run)
    return Case(
        queue=group.dead_letters[0].queue,
        dead_letters=group.dead_letters,
        message=message,
        image=image,
        verdict=verdict,
        explanation=explanation,
        problem=problem,
        batch=group.batch,
        rejected=group.rejected,
    )
