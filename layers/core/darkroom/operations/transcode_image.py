"""Developing one delivered image: claim, transcode and put, fenced finish."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from darkroom.domain.errors import Rejected, Retryable
from darkroom.domain.image import (
    Claim,
    GiveUp,
    Image,
    Milliseconds,
    NothingToDo,
    Status,
    Variant,
    claim,
    complete,
    give_up,
    put_back,
    reject,
)
from darkroom.domain.lanes import LANES
from darkroom.domain.limits import Limits
from darkroom.domain.message import Message
from darkroom.domain.retry import MAX_ATTEMPTS, RetryPolicy
from darkroom.imaging import develop
from darkroom.ports import Clock, Fenced, Images, Once, Originals, Outputs

LEASE_MARGIN_SECONDS = 30
"""A lease outlasts the function's deadline by this much, so that clocks may differ a little."""

REDELIVERY_MARGIN_SECONDS = 60
"""After the message should have come back, the sweeper waits this much longer: SQS goes first."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One receive of a message: who received it, until when its function may run, and how long SQS hides it."""

    message: Message
    receipt: str
    deadline: Milliseconds
    visibility_seconds: int


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The delivery is settled and its message may go: the image reached its status, or there was nothing to do."""

    image: Image | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class TryAgain:
    """The attempt failed: the message must come back after `delay_seconds`. `cause` says why."""

    image: Image
    delay_seconds: int
    cause: Exception


def transcode_image(
    delivery: Delivery,
    *,
    images: Images,
    originals: Originals,
    outputs: Outputs,
    once: Once,
    clock: Clock,
    unit_random: float,
    limits: Limits,
    retry: RetryPolicy | None = None,
) -> Finished | TryAgain:
    """Claims the delivery's image, develops it and writes its one terminal state.

    Raises Retryable where the table cannot answer at the claim or at the finish: the message then comes back by itself
    after its visibility timeout. Any other failure is written into the row, and TryAgain says when to come back.
    """
    claimed = _claim(delivery, images=images, clock=clock)
    if not isinstance(claimed, Claim):
        return claimed
    image = claimed.image
    try:
        # The wrapper remembers finished work, so that a redelivery after a lost finish does not develop again. It
        # decides nothing: every delivery that gets here writes the terminal state itself, fenced.
        developed = once(
            f"{image.image_id}#{image.run}#{image.recipe.digest()}",
            lambda: _develop_and_put(image, originals=originals, outputs=outputs, limits=limits),
        )
    except Rejected as refusal:
        after = reject(image, code=refusal.code, message=refusal.message, now=clock())
    except Exception as error:
        return _failed_attempt(
            image, error, images=images, clock=clock, unit_random=unit_random, retry=retry or RetryPolicy()
        )
    else:
        variants = tuple(Variant(**variant) for variant in developed["variants"])
        after = complete(
            image,
            variants,
            notices=tuple(developed["notices"]),
            placeholder=developed.get("placeholder"),  # what an earlier version remembered has none
            now=clock(),
        )
    return _finish(image, after, images=images, outputs=outputs)


def _claim(delivery: Delivery, *, images: Images, clock: Clock) -> Claim | Finished:
    now = clock()
    before = images.get(delivery.message.image_id)
    if before is None:
        return Finished(image=None, reason="gone")
    decision = claim(
        before,
        delivery.message,
        now=now,
        claimed_by=delivery.receipt,
        lease_until=delivery.deadline + LEASE_MARGIN_SECONDS * 1000,
        due_at=now + (delivery.visibility_seconds + REDELIVERY_MARGIN_SECONDS) * 1000,
    )
    match decision:
        case NothingToDo(reason=reason):
            return Finished(image=before, reason=reason)
        case GiveUp(image=after) | Claim(image=after):
            try:
                written = images.change(before, after, fence=("status", "run", "attempt", "schedule"))
            except Fenced as lost:
                return Finished(image=lost.current, reason="fenced")
            return Claim(image=written) if isinstance(decision, Claim) else Finished(image=written, reason="gave_up")


def _develop_and_put(image: Image, *, originals: Originals, outputs: Outputs, limits: Limits) -> dict[str, Any]:
    original = originals.get(image.image_id, image.source.version_id)
    if hashlib.sha256(original).hexdigest() != image.source.sha256:
        raise Retryable(f"the original of {image.image_id} did not arrive whole")
    developed = develop(original, image.recipe, limits=limits, effort=LANES[image.lane].effort)
    variants = []
    for rendered in developed.variants:
        key = f"outputs/{image.image_id}/{image.run}/{rendered.name}.{rendered.extension}"
        sha256 = hashlib.sha256(rendered.body).hexdigest()
        # Where an earlier delivery of this run has put the object, that object is the output, whose bytes count.
        stored = outputs.put_if_absent(key, rendered.body, sha256=sha256, media_type=rendered.media_type)
        variants.append(
            asdict(
                Variant(
                    name=rendered.name,
                    width=rendered.width,
                    height=rendered.height,
                    format=rendered.format,
                    size_bytes=stored.size_bytes,
                    sha256=stored.sha256,
                    key=key,
                )
            )
        )
    return {
        "variants": variants,
        "notices": list(developed.notices),
        "placeholder": asdict(developed.placeholder),
    }


def _finish(before: Image, after: Image, *, images: Images, outputs: Outputs) -> Finished:
    try:
        return Finished(image=images.change(before, after), reason=after.status.value)
    except Fenced as lost:
        if lost.current is None or lost.current.status in (Status.CANCELLED, Status.EXPIRED):
            # The client withdrew the image while it was developed: what was written for it goes again.
            outputs.delete(tuple(variant.key for variant in after.variants))
        return Finished(image=lost.current, reason="fenced")


def _failed_attempt(
    image: Image, error: Exception, *, images: Images, clock: Clock, unit_random: float, retry: RetryPolicy
) -> TryAgain | Finished:
    now = clock()
    if image.attempt >= MAX_ATTEMPTS:
        # The row ends here and the message is still reported as failed: SQS makes it the run's dead letter.
        delay_seconds, after = 0, give_up(image, now=now)
    else:
        delay_seconds = retry.delay_seconds(image.attempt, unit_random)
        after = put_back(image, now=now, delay_seconds=delay_seconds)
    try:
        image = images.change(image, after)
    except Fenced as lost:
        return Finished(image=lost.current, reason="fenced")
    except Retryable:
        # The row still says `processing`: a message that came back before its lease lapses would find nothing to do,
        # so it stays hidden until then.
        delay_seconds = max(delay_seconds, _until_lease_lapses_seconds(image, now))
    return TryAgain(image=image, delay_seconds=delay_seconds, cause=error)


def _until_lease_lapses_seconds(image: Image, now: Milliseconds) -> int:
    return max(0, (image.lease_until or now) - now) // 1000 + 1
