"""Develops one delivered image: claim, transcode and put, fenced finish."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.claim import (
    LEASE_MARGIN_SECONDS,
    Claim,
    Decision,
    Expire,
    GiveUp,
    Lease,
    NothingToDo,
    Park,
    Redriven,
    TooEarly,
    claim,
)
from darkroom.domain.images.image import Cause, Image, Source, Variant, run_key
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.timeline import AttemptTimeline
from darkroom.domain.images.transitions import (
    begin_edit,
    complete,
    end_change,
    escalate,
    give_up,
    may_begin_edit,
    park,
    put_back,
    reject,
)
from darkroom.domain.images.works import are_of_this_run, leading, output_key, recipes_to_make
from darkroom.domain.kernel.errors import (
    ORIGINAL_MISSING,
    OVERLAY_MISSING,
    NeedsOperator,
    Rejected,
    Retryable,
)
from darkroom.domain.kernel.fingerprint import calls_of, shortened
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS, Lane, retries_of
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.retry import OUTAGE, returns_in
from darkroom.domain.recipes.recipes import POINT_STEPS
from darkroom.imaging import Rendered, developing
from darkroom.operations.images.enqueue import END_FENCE, seconds_until
from darkroom.operations.images.move_variants import MoveVariantsPorts, move_variants, remove_withdrawn
from darkroom.operations.images.whole_original import whole_original
from darkroom.ports.images import IdempotencyStore, IdempotencyUnavailable, OriginalMissing, Originals
from darkroom.ports.kernel import Clock, Fenced, Jitter
from darkroom.ports.pauses import KnownPauses, nothing_paused

if TYPE_CHECKING:
    from darkroom.domain.recipes.recipes import FocalPoint

REDELIVERY_MARGIN_SECONDS = 60
"""After the message should have come back, the sweeper waits this much longer: SQS goes first."""

OWN_MESSAGE_MARGIN_SECONDS = 1
"""A failed attempt's own message comes back this long after the backoff: a copy that came a few milliseconds before it,
because clocks differ, could not begin, and the image would wait for the sweeper."""

MESSAGE_CHARACTERS = 500
"""What a row keeps of an attempt's exception: ten attempts of this size are a tenth of an item's 400 KB."""


WORST_CASE_IMAGE_MILLISECONDS = 30_000
"""The costliest recipe takes 25 seconds on the worst picture, and reading and storing its objects takes a few more."""

_TRIES = 5
"""Edits may be accepted between reading a row and ending its run; not five in a row."""

RETURN_SECONDS = 10
"""When a message comes back for which too little time was left: another worker may take it at once."""


@dataclass(frozen=True, kw_only=True)
class TranscodeImagePorts(MoveVariantsPorts):
    """What developing needs.

    `require_healthy` raises Retryable while S3 or DynamoDB is known not to answer: nothing is claimed then. `limits`
    are the limits of an original, `service` is each lane's deployed configuration, and `visibility_seconds` is the
    lanes' visibility timeout.
    """

    originals: Originals
    once: IdempotencyStore
    clock: Clock
    jitter: Jitter
    require_healthy: Callable[[], None]
    limits: Limits
    service: Mapping[str, Lane]
    visibility_seconds: int
    pauses: KnownPauses = nothing_paused


@dataclass(frozen=True, kw_only=True)
class ReceivedMessage:
    """One receive of a message: its number among that message's receives, who received it in which request, and until
    when its function may run.

    `marks` get what the operation reaches, also if it then fails, and `on_row` hears of the row as soon as it is known.
    `hide` makes the message come back after so many seconds if nobody deletes it before.
    """

    message: Message
    receipt: str
    request_id: str
    receive_count: int
    deadline: Milliseconds
    marks: AttemptTimeline = field(default_factory=AttemptTimeline)
    on_row: Callable[[Image], None] = lambda _: None
    hide: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The delivery is settled: the image reached its status, or there was nothing to do. Its message may go, unless an
    edit waited for that: the message comes back at once for it.

    `cause` is why it was given up: a bug, or something only an operator can fix. `waiting_since` is what its service
    level counted from, if this delivery ended it.
    """

    image: Image | None
    reason: str
    cause: Exception | None = None
    waiting_since: Milliseconds | None = None
    returns_in_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class TryAgain:
    """The attempt failed: another may begin after `delay_seconds`. `cause` says why."""

    image: Image
    delay_seconds: int
    cause: Exception
    returns_in_seconds: int | None


@dataclass(frozen=True, kw_only=True)
class Early:
    """The delivery came before the image's time, which is `delay_seconds` away: no attempt was made.

    `image` has a look due after that, in case the message does not come back.
    """

    image: Image
    delay_seconds: int
    cause: Retryable
    returns_in_seconds: int | None


@dataclass(frozen=True, kw_only=True)
class Postponed:
    """The delivery could not be processed, through no fault of the image: `cause` says why, and another may succeed
    after `delay_seconds`.

    The image was not claimed, or its result could not be written; either way its row is due for a look eventually.
    """

    delay_seconds: int
    cause: Retryable
    returns_in_seconds: int | None


type Outcome = Finished | TryAgain | Early | Postponed
"""The outcome of a delivery. If `returns_in_seconds` is None its message may go; otherwise it must come back then."""


def transcode_image(ports: TranscodeImagePorts, delivery: ReceivedMessage) -> Outcome:
    """Claims the delivery's image, develops it and writes its one terminal state.

    Nothing is claimed that cannot be finished, because that would use up an attempt. If the table cannot answer at the
    claim or at the finish, the delivery is postponed; any other failure is written into the row.
    """
    if delivery.deadline - ports.clock() < WORST_CASE_IMAGE_MILLISECONDS:  # guard: claim-time-to-finish
        cause = Retryable("too little time is left for another image")
        return _postponed(cause, receive_count=delivery.receive_count, delay_seconds=RETURN_SECONDS)
    try:
        ports.require_healthy()  # guard: claim-none-during-outage
        return _settle(ports, delivery)
    except Retryable as outage:
        return postponed_by(outage, receive_count=delivery.receive_count, jitter=ports.jitter)


def postponed_by(outage: Retryable, *, receive_count: int, jitter: Jitter) -> Postponed:
    """The outcome of a delivery that an outage kept from its row."""
    return _postponed(outage, receive_count=receive_count, delay_seconds=OUTAGE.delay_seconds(receive_count, jitter()))


def _postponed(cause: Retryable, *, receive_count: int, delay_seconds: int) -> Postponed:
    returns_in_seconds = returns_in(delay_seconds, receive_count=receive_count)
    return Postponed(delay_seconds=delay_seconds, cause=cause, returns_in_seconds=returns_in_seconds)


def _settle(ports: TranscodeImagePorts, delivery: ReceivedMessage) -> Finished | TryAgain | Early:
    unit_random = ports.jitter()
    claimed = _claim(ports, delivery, unit_random=unit_random)
    if not isinstance(claimed, Claim):
        return claimed
    _hide_for_lease(ports, delivery, claimed.image)
    outcome = _develop_and_finish(ports, delivery, claimed.image, unit_random=unit_random)
    delivery.marks.reach("finished", ports.clock())
    return _with_next_edit(ports, delivery, outcome) if isinstance(outcome, Finished) else outcome


def _hide_for_lease(ports: TranscodeImagePorts, delivery: ReceivedMessage, image: Image) -> None:
    """Makes the message come back when another attempt may begin, in case this worker is killed: no sooner, since a
    copy that could not begin would be acknowledged. A failure costs such an image the queue's own timeout."""
    seconds = seconds_until(image.not_before, ports.clock()) + OWN_MESSAGE_MARGIN_SECONDS
    # After its last receive it would become a dead letter the sooner.
    is_hidden = returns_in(seconds, receive_count=delivery.receive_count) is not None
    # guard: claim-message-hidden-for-lease
    if is_hidden and ports.service[image.lane].hides_claims(ports.visibility_seconds):
        with bookkeeping("the message of a claimed image is not hidden anew"):  # guard: claim-hiding-failure-contained
            delivery.hide(seconds)


def _with_next_edit(ports: TranscodeImagePorts, delivery: ReceivedMessage, finished: Finished) -> Finished:
    """Begins the edit that waits for the run that has just ended. If this fails, the sweeper does it: the row is due.

    Nothing is sent, since a function that sends to its own queue is stopped after 16 times: the message comes back."""
    image = finished.image
    returns_in_seconds = returns_in(0, receive_count=delivery.receive_count)
    if image is None or returns_in_seconds is None or not may_begin_edit(image):
        return finished
    begun = begin_edit(image, now=ports.clock())
    if begun.lane != delivery.message.lane:  # it would match nothing  # guard: bulk-edit-message-of-other-lane
        return finished
    try:
        ports.images.change(image, begun, fence=("version",))  # guard: bulk-edit-begun-once
    except (Fenced, Retryable):
        return finished
    return replace(finished, returns_in_seconds=returns_in_seconds)


def _develop_and_finish(
    ports: TranscodeImagePorts, delivery: ReceivedMessage, image: Image, *, unit_random: float
) -> Finished | TryAgain:
    marks, developed = delivery.marks, None
    marks.begin(image, ports.clock())
    try:
        if image.work is not None and image.work.visibility is not None:
            image = move_variants(ports, image, image.work.visibility)
        else:
            developed = _developed_once(ports, image, marks)
    except Fenced as lost:
        return Finished(image=lost.current, reason="fenced")
    except Rejected as refusal:  # guard: rejected-image-not-retried
        refused = partial(reject, code=refusal.code, message=refusal.message, now=ports.clock())
        return _finish(ports, image, refused, None)
    except NeedsOperator as trouble:  # guard: original-missing-is-final
        cause = _cause_of(trouble.__cause__ or trouble)
        escalated = partial(escalate, code=trouble.code, message=trouble.message, now=ports.clock(), cause=cause)
        return replace(_finish(ports, image, escalated, None), cause=trouble)
    except Exception as error:
        return _failed_attempt(ports, image, error, receive_count=delivery.receive_count, unit_random=unit_random)
    ended = partial(end_change, now=ports.clock()) if developed is None else _completed(ports, developed)
    return _finish(ports, image, ended, developed)


def _completed(ports: TranscodeImagePorts, developed: dict[str, Any]) -> Callable[[Image], Image]:
    return partial(
        complete,
        variants=_variants(developed),
        notices=tuple(developed["notices"]),
        placeholder=developed.get("placeholder"),  # results remembered by an earlier version have none
        attention=developed.get("attention"),  # guard: attention-absent-in-old-results
        now=ports.clock(),
    )


def _claim(ports: TranscodeImagePorts, delivery: ReceivedMessage, *, unit_random: float) -> Claim | Finished | Early:
    now = ports.clock()

    def lease_for(attempt: int) -> Lease:
        lease_until = delivery.deadline + LEASE_MARGIN_SECONDS * 1000  # guard: claim-lease-outlasts-function
        retries = retries_of(delivery.message.lane)
        backoff_seconds = 0 if attempt >= retries.attempts else retries.delay_seconds(attempt, unit_random)
        return Lease(
            claimed_by=delivery.receipt,
            request_id=delivery.request_id,
            now=now,
            lease_until=lease_until,
            not_before=lease_until + backoff_seconds * 1000,  # guard: claim-lost-worker-backoff
            due_at=now + (ports.visibility_seconds + REDELIVERY_MARGIN_SECONDS) * 1000,
        )

    message = delivery.message
    is_paused = ports.pauses().of(message.lane, message.tenant_id) is not None
    try:
        if is_paused:  # guard: pause-nothing-begun
            before = ports.images.get(message.image_id)
        else:
            image = ports.images.claim_unseen(message, lease_for(1))
            delivery.on_row(image)
            return Claim(image=image)
    except Fenced as seen:
        before = seen.current
    if before is None:
        return Finished(image=None, reason="gone")
    delivery.on_row(before)
    decision: Decision | Park = claim(before, message, lease_for(before.attempt + 1))
    if is_paused and isinstance(decision, Claim):
        decision = Park(image=park(before, now=now))
    match decision:
        case NothingToDo(reason=reason):
            return Finished(image=before, reason=reason)
        case TooEarly(process_at=process_at):
            return _early(before, delivery, delay_seconds=seconds_until(process_at, now))
        case Park() if before.parked:
            return Finished(image=before, reason="paused")
        case GiveUp(image=after) | Expire(image=after) | Redriven(image=after) | Park(image=after) | Claim(image=after):
            try:
                # guard: fence-on-claim
                written = ports.images.change(before, after, fence=("status", "run", "attempt", "schedule"))
            except Fenced as lost:
                return Finished(image=lost.current, reason="fenced")
            if isinstance(decision, Claim):
                return Claim(image=written)
            # A dead letter that comes back to its lane is not lost when it is acknowledged: the sweeper places it
            # again.
            reasons = {GiveUp: "gave_up", Expire: "expired", Redriven: "terminal", Park: "paused"}
            ended_since = None if isinstance(decision, Redriven | Park) else before.waiting_since
            return Finished(image=written, reason=reasons[type(decision)], waiting_since=ended_since)


def _early(image: Image, delivery: ReceivedMessage, *, delay_seconds: int) -> Early:
    # Clocks differ by seconds. A message that comes much too early was put into the lane by hand: the row gets it sent.
    is_soon = delay_seconds <= LANE_DELAY_SECONDS
    return Early(
        image=image,
        delay_seconds=delay_seconds,
        cause=Retryable("before its time"),
        returns_in_seconds=returns_in(delay_seconds, receive_count=delivery.receive_count) if is_soon else None,
    )


def _developed_once(ports: TranscodeImagePorts, image: Image, marks: AttemptTimeline) -> dict[str, Any]:
    """The image's outputs: those that an earlier attempt of this run has put but could not finish with, or else new
    ones.

    The memory saves work after such a finish and decides nothing: every delivery that gets here writes the terminal
    state itself, fenced. So a problem with the memory costs no attempt and no time: the work is done without it.
    """
    is_new = False

    def work() -> dict[str, Any]:
        nonlocal is_new
        is_new = True
        return _develop_and_put(ports, image, marks)

    try:
        developed = ports.once(run_key(image.image_id, image.run), work, is_first=image.attempt == 1)
    except IdempotencyUnavailable:
        return work()  # guard: memory-outage-costs-no-attempt
    # S3 has checked objects that were just put; remembered ones may be gone by now. Nothing is `done` without its
    # objects.
    return developed if is_new or _is_there(ports, image, developed) else work()


def _is_there(ports: TranscodeImagePorts, image: Image, remembered: dict[str, Any]) -> bool:
    try:
        variants = _variants(remembered)
    # guard: memory-newer-version-redone
    except (KeyError, TypeError):  # a newer version, since rolled back, has another format
        return False
    if not are_of_this_run(image, variants):  # guard: works-remembered-for-others-redone
        return False
    # guard: objects-remembered-outputs-held
    return "notices" in remembered and all(ports.outputs.holds(variant) for variant in variants)


def _variants(developed: dict[str, Any]) -> tuple[Variant, ...]:
    return tuple(Variant(**variant) for variant in developed["variants"])


def _develop_and_put(ports: TranscodeImagePorts, image: Image, marks: AttemptTimeline) -> dict[str, Any]:
    try:
        original = whole_original(ports.originals, image.image_id, image.source)
    except OriginalMissing as error:
        raise NeedsOperator(
            ORIGINAL_MISSING,
            "Its original is no longer stored, so it cannot be developed. The operator has been alerted. "
            "Send the photo again, with a new Idempotency-Key.",
        ) from error
    variants: list[Variant] = []
    notices, placeholder, attention = dict[str, None](), None, None
    for recipe in recipes_to_make(image):
        # A variant is put while others are still encoded.
        with developing(
            original,
            recipe,
            limits=ports.limits,
            effort=ports.service[image.lane].effort,
            overlay_of=partial(_overlay, ports, image),
            beside=leading(image, recipe),  # guard: works-made-beside-first-recipe
        ) as picture:
            marks.reach("decoded", ports.clock())
            # guard: worker-put-while-encoding
            variants += ports.at_once([partial(_put, ports, image, encoded, marks) for encoded in picture.variants])
            marks.reach("stored", ports.clock())
            notices |= dict.fromkeys(picture.notices())
            placeholder, attention = placeholder or picture.placeholder, attention or picture.attention
    return {
        "variants": [asdict(variant) for variant in variants],
        "notices": list(notices),
        "placeholder": None if placeholder is None else asdict(placeholder),
        "attention": None if attention is None else _in_steps(attention),
    }


def _overlay(ports: TranscodeImagePorts, image: Image, image_id: str) -> bytes:
    """The original that the row pins of an overlay's image. Its client may have deleted it since, so its absence is no
    operator's matter."""
    pinned = cast("dict[str, Source]", image.overlays)[image_id]
    try:
        return whole_original(ports.originals, image_id, pinned)
    except OriginalMissing as error:
        raise Rejected(  # guard: overlays-missing-rejected
            OVERLAY_MISSING,
            f"The image {image_id}, an overlay of this one, was deleted before this one was developed. "
            "Upload the overlay again, then this photo, with the overlay's new id and a new Idempotency-Key.",
        ) from error


def _in_steps(point: FocalPoint) -> dict[str, int]:
    """The point as rows have it, whose numbers are whole."""
    return {"x": round(point.x * POINT_STEPS), "y": round(point.y * POINT_STEPS)}


def _put(ports: TranscodeImagePorts, image: Image, encoded: Callable[[], Rendered], marks: AttemptTimeline) -> Variant:
    rendered = encoded()
    marks.reach("developed", ports.clock())
    key = output_key(image, rendered.name, rendered.extension)
    sha256 = hashlib.sha256(rendered.body).hexdigest()
    # If an earlier delivery of this run has put the object, that object is the output, and its bytes count.
    stored = ports.outputs.put_if_absent(
        key, rendered.body, sha256=sha256, media_type=rendered.media_type, viewer_seconds=image.viewer_seconds
    )
    return Variant(
        name=rendered.name,
        width=rendered.width,
        height=rendered.height,
        format=rendered.format,
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        key=key,
    )


def _finish(
    ports: TranscodeImagePorts, before: Image, end: Callable[[Image], Image], developed: dict[str, Any] | None
) -> Finished:
    after = end(before)
    try:
        written = _ended(ports, before, end)
    except Fenced as lost:
        remove_withdrawn(ports.outputs, lost.current, after.variants)
        return Finished(image=lost.current, reason="fenced")
    except Exception:
        if developed is not None:  # guard: memory-unwritten-end-kept
            with bookkeeping("finished work not kept"):  # guard: memory-keep-failure-tolerated
                ports.once.keep(run_key(before.image_id, before.run), developed)
        raise
    reason = "failed" if after.failed_work is not None else after.status.value
    return Finished(image=written, reason=reason, waiting_since=before.waiting_since)


def _ended(ports: TranscodeImagePorts, before: Image, end: Callable[[Image], Image]) -> Image:
    """The row with its run ended, as it must be for the edits that were accepted meanwhile. Raises Fenced."""
    for _ in range(_TRIES):
        try:
            return ports.images.change(before, end(before), fence=END_FENCE)  # guard: fence-on-terminal-write
        except Fenced as lost:
            current = lost.current
            if current is None or _attempt_of(current) != _attempt_of(before):
                raise
            before = current
    raise Retryable("edits came with every attempt to end the run")


def _attempt_of(image: Image) -> tuple[str, int, int]:
    return image.status, image.run, image.attempt


def _failed_attempt(
    ports: TranscodeImagePorts, image: Image, error: Exception, *, receive_count: int, unit_random: float
) -> TryAgain | Finished:
    now, cause, retries = ports.clock(), _cause_of(error), retries_of(image.lane)
    gives_up = image.attempt >= retries.attempts
    delay_seconds = 0 if gives_up else retries.delay_seconds(image.attempt, unit_random)
    if isinstance(error, Retryable):
        delay_seconds = max(delay_seconds, error.retry_after_seconds)
    after = (
        give_up(image, now=now, cause=cause)
        if gives_up
        else put_back(
            image,
            now=now,
            delay_seconds=delay_seconds,
            cause=cause,
            message_returns=returns_in(delay_seconds, receive_count=receive_count) is not None,
        )
    )
    try:
        written = ports.images.change(image, after)  # guard: fence-on-failed-attempt
    except Fenced as lost:
        return Finished(image=lost.current, reason="fenced")
    except Retryable:
        # The row still says `processing`: a message that came back before another attempt may begin would find nothing
        # to do, so it stays hidden until then.
        # guard: retry-hidden-until-attempt
        delay_seconds = max(delay_seconds, seconds_until(image.not_before, now) + OWN_MESSAGE_MARGIN_SECONDS)
        returns_in_seconds = returns_in(delay_seconds, receive_count=receive_count)
        return TryAgain(image=image, delay_seconds=delay_seconds, cause=error, returns_in_seconds=returns_in_seconds)
    if gives_up:
        # The sweeper makes sure of the run's one dead letter, so this message may go.
        return Finished(image=written, reason="gave_up", cause=error, waiting_since=image.waiting_since)
    delay_seconds += OWN_MESSAGE_MARGIN_SECONDS  # guard: claim-own-message-after-backoff
    returns_in_seconds = returns_in(delay_seconds, receive_count=receive_count)
    return TryAgain(image=written, delay_seconds=delay_seconds, cause=error, returns_in_seconds=returns_in_seconds)


def _cause_of(error: BaseException) -> Cause:
    stack = "".join(traceback.format_exception(error))
    notes = "".join(f" [{note}]" for note in calls_of(error))
    return Cause(
        error_type=type(error).__name__,
        message=f"{str(error)[:MESSAGE_CHARACTERS]}{notes}",
        stack=shortened(stack),  # guard: fingerprints-stack-shortened
    )
