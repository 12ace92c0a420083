"""The one table of allowed transitions, and every decision to change an image's row by it, except a worker's claim and
the next run that an operator asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from darkroom.domain.images.annotations import NO_ANNOTATIONS, Annotations
from darkroom.domain.images.image import (
    UNKNOWN_SOURCE,
    Attempt,
    Cause,
    DeadLetterState,
    EarlierEdit,
    Edit,
    Failure,
    Image,
    Leftovers,
    Source,
    Status,
    Variant,
    WorkKind,
)
from darkroom.domain.images.works import REMEMBERED_ENDS, end_of_work, overlays_in_use, works_with
from darkroom.domain.kernel.errors import BATCH_STOPPED, EXPIRED, FETCH_FAILED, INTERNAL, NEVER_UPLOADED, WORKER_LOST
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.visibility import Visibility, with_prospect

if TYPE_CHECKING:
    from darkroom.domain.recipes.edits import Edits
    from darkroom.domain.recipes.recipes import Recipe

SWEEP_INTERVAL_SECONDS = 60
"""The sweeper's period."""

UPLOAD_SECONDS = 300
"""How long after its announcement an upload may begin."""

ARRIVAL_GRACE_SECONDS = 600
"""How much longer it is awaited: 25 MB at 0.4 Mbit/s take eight minutes, and its notification may take one."""

MAX_FETCH_CLAIMS = 10
"""How often fetching is begun at all, over an hour and a half: workers that die, bugs and stores that do not answer are
not the source's fault."""

LEFTOVERS_SECONDS = 600
"""How long after its end an image that was being fetched is looked at for what a worker has left: longer than one
runs, plus clocks that are minutes apart."""


PARKED_SECONDS = 3600
"""How long after it was parked the sweeper looks at an image whether it is to go on; who resumes it does not wait so
long."""

EDIT_DELAY_SECONDS = 2
"""How long an edit waits for others that overtake it, from the first of them on: what a slider sends costs one run."""

TURN_SECONDS = 6 * 3600
"""How often the sweeper looks at an image that waits for its turn: its batch looks much more often. It is what such an
image waits at most where no batch is looked after any more."""


TRANSITIONS: dict[Status, frozenset[Status]] = {
    # The upload arrived (now or for later), was deleted, was refused, or never came.
    Status.AWAITING_UPLOAD: frozenset(
        {Status.SCHEDULED, Status.PENDING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}
    ),
    # It was fetched (now or for later), is tried again, was deleted, cannot be fetched, or took too long.
    Status.FETCHING: frozenset(
        {Status.FETCHING, Status.SCHEDULED, Status.PENDING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}
    ),
    # It was rescheduled, or rescheduled to now; its time came and a worker claimed it; the client no longer wants it.
    Status.SCHEDULED: frozenset(
        {Status.SCHEDULED, Status.PENDING, Status.PROCESSING, Status.CANCELLED, Status.EXPIRED}
    ),
    # A worker claimed it, the client no longer wants it, or its attempts ran out while it waited.
    Status.PENDING: frozenset({Status.PROCESSING, Status.FAILED, Status.CANCELLED, Status.EXPIRED}),
    # Finished, refused, put back for another attempt, or claimed again after its worker died.
    Status.PROCESSING: frozenset({Status.PROCESSING, Status.PENDING, Status.DONE, Status.FAILED, Status.CANCELLED}),
    # An operator replays it: run + 1, attempts from 0.
    Status.FAILED: frozenset({Status.PENDING}),
    # Work beside it begins, likewise: whatever comes of that, it is `done` again.
    Status.DONE: frozenset({Status.PENDING}),
    Status.CANCELLED: frozenset(),
    Status.EXPIRED: frozenset(),
}


class TransitionRefused(RuntimeError):
    """Code asked for a transition that the table does not have: always a bug, never the input's fault."""


def transition(image: Image, status: Status, **changes: Any) -> Image:
    """The row with its next status, and without the fields that end with a run if one does. A run that is work beside
    an image leaves that `done`, however it ends. Raises TransitionRefused."""
    is_next_run = changes.get("run") == image.run + 1
    # guard: terminal-state-next-run-only
    if status not in TRANSITIONS[image.status] or is_next_run != image.status.is_terminal:
        raise TransitionRefused(f"an image cannot go from {image.status} to {status}")
    if status.is_terminal:
        ended, ended_at = dict(_ENDED), changes.get("completed_at")
        if image.work is None:
            changes["completed_version"] = image.version + 1
        else:
            changes, status = end_of_work(image, image.work, status, changes), Status.DONE
        if image.status is Status.FETCHING and image.attempt:
            # A worker that died or lost its race may have stored an original, or do so yet.
            ended["due_at"] = changes["completed_at"] + LEFTOVERS_SECONDS * 1000
        if status is Status.DONE and image.edit_waits:
            # Whoever has written this begins it; if that fails, the sweeper does.
            ended["due_at"] = ended_at  # guard: bulk-edit-waiting-one-due
        changes = ended | changes
    return replace(image, status=status, **changes)


_ENDED: dict[str, Any] = {
    "due_at": None,
    "waiting_since": None,
    "lease_until": None,
    "not_before": None,  # guard: claim-end-clears-backoff
    "claimed_by": None,
    "awaits_turn": False,
    "url": None,  # guard: fetch-url-forgotten-at-end
    "parked": False,
}
"""What a row no longer has when a run of it has ended."""


def begin_work(
    image: Image,
    kind: WorkKind,
    *,
    now: Milliseconds,
    recipe: Recipe | None = None,
    overlays: dict[str, Source] | None = None,
    visibility: Visibility | None = None,
    edits: Edits | None = None,
    key: str | None = None,
    fingerprint: str | None = None,
    batch: str | None = None,
    awaits_turn: bool = False,
    lane: str | None = None,
) -> Image:
    """The `done` image with work beside it: its next run, with the first attempt ahead. Whoever begins it sends its
    message, unless it `awaits_turn` in its batch; if that fails, the sweeper does. It is in its own lane from then on,
    or in `lane`. `expires_at` is cleared: the image was developed in time.

    Raises TransitionRefused for an image that is not `done`.
    """
    if image.status is not Status.DONE:  # guard: works-beside-done-only
        raise TransitionRefused(f"work begins beside an image that is done, not {image.status}")
    works = works_with(
        image,
        kind,
        now=now,
        recipe=recipe,
        visibility=visibility,
        edits=edits,
        key=key,
        fingerprint=fingerprint,
    )
    begun = next_run(
        replace(image, lane=lane or image.home_lane),
        now=now,
        works=(*works[:-1], replace(works[-1], batch=batch)),
        # Before the first object is put there: whoever deletes the image finds it.
        # guard: visibility-prospect-in-row
        visibilities=image.visibilities if visibility is None else with_prospect(image.visibilities, visibility),
        overlays={**(image.overlays or {}), **(overlays or {})} or None,  # guard: works-overlays-pinned
        expires_at=None,  # guard: redo-clears-expiry
    )
    return await_turn(replace(begun, awaits_turn=True), now=now) if awaits_turn else begun


def accept_edit(
    image: Image,
    edits: Edits,
    *,
    now: Milliseconds,
    overlays: dict[str, Source] | None = None,
    key: str | None = None,
    fingerprint: str | None = None,
    lane: str | None = None,
) -> Image:
    """The image with its next edit, which overtakes the last one if nobody has begun that: as work beside it, in its
    own lane or in `lane`, or waiting for the end of what is under way. Whoever writes this sends the message of an edit
    that nobody has begun, after EDIT_DELAY_SECONDS."""
    work, last = image.work, image.edit
    # guard: bulk-edit-unclaimed-one-replaced
    unbegun = work is not None and work.kind is WorkKind.EDIT and image.status is Status.PENDING and not image.attempt
    earlier: tuple[EarlierEdit, ...] = ()
    if last is not None:
        overtaken = last.edits is not None or (unbegun and last.run == image.run)
        number = image.edit_number or 1
        one = EarlierEdit(number=number, overtaken=overtaken, key=last.key, fingerprint=last.fingerprint)
        earlier = (*last.earlier, one)[-REMEMBERED_ENDS:]
    after = replace(
        image,
        edit_number=(image.edit_number or 0) + 1,
        edit=Edit(accepted_at=now, edits=edits, key=key, fingerprint=fingerprint, earlier=earlier),
        overlays=overlays_in_use(image, edits, overlays),
    )
    if may_begin_edit(after):
        begun = begin_edit(after, now=now, lane=lane)
        return _sent_at(begun, now + EDIT_DELAY_SECONDS * 1000, now=now)
    if work is not None and unbegun:
        # The same run: whichever message of it comes, it makes the last edit.
        edit = replace(cast("Edit", after.edit), edits=None, run=image.run)
        return replace(after, edit=edit, works=(*image.works[:-1], replace(work, edits=edits)))
    return after


def may_begin_edit(image: Image) -> bool:
    """Whether an edit waits that can become work now. The dead letter of work that has failed is placed first."""
    return image.edit_waits and image.status is Status.DONE and image.dead_letter is not DeadLetterState.OWED


def begin_edit(image: Image, *, now: Milliseconds, lane: str | None = None) -> Image:
    """The `done` image with the edit that waits as work beside it. Raises TransitionRefused for another."""
    edit = cast("Edit", image.edit)
    begun = begin_work(image, WorkKind.EDIT, now=now, edits=edit.edits, lane=lane)
    return replace(begun, edit=replace(edit, edits=None, run=begun.run))


def redevelop(image: Image, recipe: Recipe, *, version: int, backfill: str, lane: str, now: Milliseconds) -> Image:
    """The `done` image with work beside it that makes that version of its preset, for the backfill and in the lane,
    from which the image returns afterwards. Raises TransitionRefused."""
    begun = begin_work(image, WorkKind.REDEVELOP, now=now, recipe=recipe)
    work = replace(
        begun.works[-1],
        backfill=backfill,
        lane=begun.lane,
        preset_version=None if version == 1 else version,
    )
    return replace(begun, lane=lane, works=(*begun.works[:-1], work), due_at=LANES[lane].first_look_at(now))


def cancel_work(image: Image, *, now: Milliseconds) -> Image:
    """The image without the work beside it that nobody has begun: its batch begins nothing more."""
    failure = Failure(
        code=BATCH_STOPPED, message="Its batch has stopped. Ask again, without it or in another.", retryable=True
    )
    return transition(image, Status.CANCELLED, error=failure, completed_at=now)


def next_run(image: Image, *, now: Milliseconds, **changes: Any) -> Image:
    """The image that has ended with its next run begun at `now`, the first attempt ahead, and these changes besides.
    Raises TransitionRefused for one that has no next run."""
    return transition(
        image,
        Status.PENDING,
        run=image.run + 1,
        attempt=0,
        dead_letter=None,
        waiting_since=now,
        enqueued_at=now,
        rescues=0,
        parked=False,
        due_at=LANES[image.lane].first_look_at(now),
        **changes,
    )


def accept(
    *,
    image_id: str,
    tenant_id: str,
    lane: str,
    preset: str | None,
    preset_version: int | None = None,
    chooses: bool = False,
    recipe: Recipe,
    fingerprint: str,
    correlation_id: str,
    source: Source,
    now: Milliseconds,
    process_at: Milliseconds | None = None,
    expires_at: Milliseconds | None = None,
    notify: str | None = None,
    overlays: dict[str, Source] | None = None,
    annotations: Annotations = NO_ANNOTATIONS,
    upload_token: str | None = None,
    visibility: Visibility = Visibility.PRIVATE,
    viewer_seconds: int | None = None,
    batch: str | None = None,
    awaits_turn: bool = False,
) -> Image:
    """The row of an upload that was just stored: `pending`, or `scheduled` if its time is yet to come; due for its
    lane's first look after that. One that `awaits_turn` in its batch is looked at much later."""
    image = Image(
        image_id=image_id,
        tenant_id=tenant_id,
        lane=lane,
        status=Status.PENDING if process_at is None else Status.SCHEDULED,
        run=1,
        attempt=0,
        schedule=0,
        version=1,
        preset=preset,
        preset_version=None if preset_version == 1 else preset_version,
        chooses=chooses,
        notify=notify,
        reference=annotations.reference,
        tags=annotations.tags,
        metadata=annotations.metadata,
        recipe=recipe,
        fingerprint=fingerprint,
        correlation_id=correlation_id,
        source=source,
        overlays=overlays,
        upload_token=upload_token,
        visibilities=() if visibility is Visibility.PRIVATE else (visibility,),
        viewer_seconds=viewer_seconds,
        batch=batch,
        awaits_turn=awaits_turn,
        created_at=now,
        accepted_at=now,
        accepted_version=1,
        process_at=process_at,
        expires_at=expires_at,
    )
    return _sent_at(image, process_at or now, now=now)


def _sent_at(image: Image, begins_at: Milliseconds, *, now: Milliseconds) -> Image:
    """The image whose message is sent for that time, or, if it is not its turn yet, not before that."""
    if image.awaits_turn:
        look_at = now + TURN_SECONDS * 1000
        # guard: bulk-waiting-image-in-no-index
        return replace(image, waiting_since=None, enqueued_at=None, due_at=before_expiry(look_at, image.expires_at))
    look_at = LANES[image.lane].first_look_at(begins_at)
    return replace(
        image, waiting_since=begins_at, enqueued_at=begins_at, due_at=before_expiry(look_at, image.expires_at)
    )


def begin_turn(image: Image, *, now: Milliseconds) -> Image:
    """The image whose turn in its batch has come, as if it had been accepted now. Whoever writes this sends its
    message."""
    return _sent_at(replace(image, awaits_turn=False, rescues=0), now, now=now)


def await_turn(image: Image, *, now: Milliseconds) -> Image:
    """The image whose turn has not come, with its next look."""
    return _sent_at(image, now, now=now)


def await_upload(accepted: Image, *, now: Milliseconds) -> Image:
    """The row of an image whose bytes are yet to be uploaded; due for a look when they can no longer come."""
    return replace(
        accepted,
        status=Status.AWAITING_UPLOAD,
        accepted_at=None,
        accepted_version=None,
        waiting_since=None,
        enqueued_at=None,
        due_at=_upload_is_over_at(now, accepted.expires_at),
    )


def renew_upload(image: Image, *, now: Milliseconds) -> Image:
    """The awaited image after its client asked again for a form: it has the full time again."""
    return replace(image, due_at=_upload_is_over_at(now, image.expires_at), rescues=0)


def _upload_is_over_at(now: Milliseconds, expires_at: Milliseconds | None) -> Milliseconds:
    return before_expiry(now + (UPLOAD_SECONDS + ARRIVAL_GRACE_SECONDS) * 1000, expires_at)


def arrive(image: Image, source: Source, *, now: Milliseconds) -> Image:
    """The awaited image with its original: `pending`, or `scheduled` if its time is yet to come, as if it had been
    accepted now."""
    is_ahead = image.process_at is not None and image.process_at > now
    arrived = transition(
        image,
        Status.SCHEDULED if is_ahead else Status.PENDING,
        source=source,
        accepted_at=now,
        accepted_version=image.version + 1,
        rescues=0,
    )
    return _sent_at(arrived, max(image.process_at or now, now), now=now)


def expire_upload(image: Image, *, now: Milliseconds) -> Image:
    """The awaited image whose upload never came: `expired`."""
    failure = Failure(
        code=NEVER_UPLOADED,
        message="It was not uploaded in time. Announce it again, with a new Idempotency-Key.",
        retryable=False,
    )
    return transition(image, Status.EXPIRED, error=failure, completed_at=now)


def before_expiry(look_at: Milliseconds, expires_at: Milliseconds | None) -> Milliseconds:
    """When the sweeper looks: no later than the image expires."""
    return look_at if expires_at is None else min(look_at, expires_at)


def reschedule(
    image: Image, *, process_at: Milliseconds | None, expires_at: Milliseconds | None, now: Milliseconds
) -> Image:
    """The scheduled image at another time, None for now: every message for the previous time becomes void.

    Raises TransitionRefused for one that is not `scheduled`.
    """
    begins_at = process_at or now
    return transition(
        image,
        Status.PENDING if process_at is None else Status.SCHEDULED,
        schedule=image.schedule + 1,  # guard: delay-move-outdates-messages
        process_at=begins_at,
        expires_at=expires_at,
        parked=False,
        waiting_since=begins_at,
        enqueued_at=begins_at,
        due_at=before_expiry(LANES[image.lane].first_look_at(begins_at), expires_at),
        rescues=0,
    )


def expire(image: Image, *, now: Milliseconds) -> Image:
    """The image that was not begun in time: `expired`."""
    failure = Failure(
        code=EXPIRED,
        message="Its expires_at came before it could be developed. The photo itself is fine: send it again.",
        retryable=False,
    )
    return transition(image, Status.EXPIRED, error=failure, completed_at=now)


def ended_attempts(image: Image, now: Milliseconds, cause: Cause | None) -> tuple[Attempt, ...]:
    """The attempts with the latest one ended. An attempt of a dead worker stays without an end."""
    *earlier, latest = image.attempts or (None,)
    if latest is None or latest.ended_at is not None:
        return image.attempts
    return (*(attempt for attempt in earlier if attempt is not None), replace(latest, ended_at=now, cause=cause))


def complete(
    image: Image,
    variants: tuple[Variant, ...],
    *,
    notices: tuple[str, ...],
    now: Milliseconds,
    placeholder: dict[str, str] | None = None,
    attention: dict[str, int] | None = None,
) -> Image:
    """The claimed image with its outputs: `done`."""
    return transition(
        image,
        Status.DONE,
        variants=variants,
        placeholder=placeholder,
        attention=attention,  # guard: attention-run-replaces-point
        notices=notices,
        completed_at=now,
        error=None,
        attempts=ended_attempts(image, now, None),
    )


def end_change(image: Image, *, now: Milliseconds) -> Image:
    """The claimed image whose variants were moved: `done`, as it was."""
    return transition(image, Status.DONE, completed_at=now, attempts=ended_attempts(image, now, None))


def reject(image: Image, *, code: str, message: str, now: Milliseconds) -> Image:
    """The claimed or awaited image whose bytes can never be developed: `failed` at once, with the reason for its
    owner."""
    failure = Failure(code=code, message=message, retryable=False)
    return transition(image, Status.FAILED, error=failure, completed_at=now, attempts=ended_attempts(image, now, None))


def give_up(image: Image, *, now: Milliseconds, cause: Cause | None = None) -> Image:
    """The image whose attempts ran out: `internal` if the last one ended, by `cause` or by an earlier write's, and
    `worker_lost` if a worker died during it.

    It is due at once, so that the sweeper makes sure of its one dead letter.
    """
    if cause is None and image.status is Status.PROCESSING:
        failure = Failure(
            code=WORKER_LOST,
            message=f"The worker that was developing this image died in the last of {image.attempt} attempts. "
            "The operator has been alerted.",
            retryable=True,
        )
        attempts = image.attempts
    else:
        failure = Failure(
            code=INTERNAL,
            message=f"Developing this image failed {image.attempt} times. The operator has been alerted.",
            retryable=True,
        )
        attempts = ended_attempts(image, now, cause)
    return _failed_with_dead_letter(image, failure, attempts, now)


def give_up_fetch(image: Image, *, now: Milliseconds) -> Image:
    """The image whose fetching was begun too often, because workers died, met a bug or could not store it: `failed`."""
    message = "It could not be fetched because of a fault on our side. Send the URL again, with a new Idempotency-Key."
    return fail_fetch(image, FETCH_FAILED, message, now=now)


def end_fetch(image: Image, *, now: Milliseconds) -> Image:
    """The image that nothing fetches any more, because the stack was deployed without imports: `failed`."""
    message = "This stack does not fetch images any more. Post the photo itself, with a new Idempotency-Key."
    return fail_fetch(image, FETCH_FAILED, message, now=now)


def fail_fetch(image: Image, code: str, message: str, *, now: Milliseconds) -> Image:
    """The image that cannot be fetched now, and perhaps by a later request: `failed`."""
    return transition(
        image,
        Status.FAILED,
        error=Failure(code=code, message=message, retryable=True),
        completed_at=now,
        attempts=ended_attempts(image, now, None),
    )


def escalate(image: Image, *, code: str, message: str, now: Milliseconds, cause: Cause) -> Image:
    """The claimed image that only an operator can help: `failed` at once, and due for its one dead letter."""
    failure = Failure(code=code, message=message, retryable=False)
    return _failed_with_dead_letter(image, failure, ended_attempts(image, now, cause), now)


def _failed_with_dead_letter(image: Image, failure: Failure, attempts: tuple[Attempt, ...], now: Milliseconds) -> Image:
    return transition(
        image,
        Status.FAILED,
        error=failure,
        completed_at=now,
        attempts=attempts,
        dead_letter=DeadLetterState.OWED,
        due_at=now,
        rescues=0,
    )


def put_back(
    image: Image, *, now: Milliseconds, delay_seconds: int, cause: Cause, message_returns: bool = True
) -> Image:
    """The claimed image after a failed attempt: `pending`, due a minute after its message comes back. No message begins
    another attempt before the delay is over.

    If the message does not come back, the sweeper sends another when the delay is over.
    """
    comes_back_at = now + delay_seconds * 1000
    return transition(
        image,
        Status.PENDING,
        lease_until=None,
        not_before=comes_back_at,  # guard: claim-failed-attempt-backoff
        claimed_by=None,
        attempts=ended_attempts(image, now, cause),
        enqueued_at=comes_back_at,
        due_at=before_expiry(
            comes_back_at + (SWEEP_INTERVAL_SECONDS * 1000 if message_returns else 0), image.expires_at
        ),
    )


def delete(image: Image, *, now: Milliseconds, remove_at: Milliseconds = 0) -> Image:
    """The image after its client's deletion: a tombstone, `cancelled` if it was unfinished.

    The row keeps nothing that describes the picture, its processing or its errors (TOMBSTONE_FIELDS). It is due at
    `remove_at`, or at once if that has passed, so that the sweeper removes its objects. An image that was deleted
    before stays as it is.
    """
    if image.is_deleted:
        return image
    changes: dict[str, Any] = {
        "deleted_at": now,
        "deleted_version": image.version + 1,
        "due_at": max(now, remove_at),  # guard: day-originals-removed-in-turn
        "rescues": 0,
        "recipe": None,  # guard: erasure-tombstone-no-recipe
        "preset_version": None,
        "chooses": False,
        "fingerprint": "",  # guard: erasure-tombstone-no-fingerprint
        "correlation_id": "",
        "reference": None,  # guard: erasure-tombstone-no-reference
        "tags": (),  # guard: erasure-tombstone-no-tags
        "metadata": None,  # guard: erasure-tombstone-no-metadata
        "source": UNKNOWN_SOURCE,  # guard: erasure-tombstone-no-source
        "overlays": None,  # guard: overlays-cleared-by-tombstone
        "enqueued_at": None,
        "fetched": None,
        "url": None,
        "variants": (),
        "placeholder": None,
        "attention": None,  # guard: attention-tombstone-cleared
        "notices": (),  # guard: erasure-tombstone-no-notices
        "error": None,
        "attempts": (),  # guard: erasure-tombstone-no-attempts
        "dead_letter": None,
        "leftovers": _leftovers_of(image),
        "lane": image.home_lane,
        "added": (),
        "edit_number": None,
        "edit": None,  # guard: erasure-tombstone-no-edits
        "edited": None,
        # guard: erasure-tombstone-no-works
        "works": tuple(
            replace(work, recipe=None, edits=None, key=None, fingerprint=None, error=None) for work in image.works
        ),
    }
    if image.outcome.is_terminal:  # guard: works-deleted-image-was-done
        return replace(image, **{**_ENDED, **changes, "status": image.outcome})
    return transition(image, Status.CANCELLED, completed_at=now, **changes)


def _leftovers_of(image: Image) -> Leftovers | None:
    """Its objects where the row names them all: an earlier run, and a worker that has not ended, leave others."""
    # What was made of an exposed image for its viewers is in no row.
    # guard: removal-earlier-run-listed, removal-exposed-listed
    if image.status is not Status.DONE or image.run != 1 or image.visibilities:
        return None
    return Leftovers(version_ids=(image.source.version_id,), keys=tuple(variant.key for variant in image.variants))


def park(image: Image, *, now: Milliseconds) -> Image:
    """The unfinished image that nobody has begun and nobody may begin: without a message, and without a wait that
    counts."""
    look_at = now + PARKED_SECONDS * 1000
    return replace(
        image,
        parked=True,
        waiting_since=None,  # guard: pause-parked-never-late
        enqueued_at=None,
        rescues=0,
        due_at=look_at if image.status is Status.PROCESSING else before_expiry(look_at, image.expires_at),
    )


def unpark(image: Image, *, now: Milliseconds) -> Image:
    """The image that may be begun again, as if it had been accepted now; whoever writes it sends its message."""
    return replace(image, parked=False, waiting_since=now, rescues=0) if image.parked else image


def due_now(image: Image, *, now: Milliseconds) -> Image:
    """The image whose message could not be sent: due at once, so that the sweeper sends it."""
    return replace(image, due_at=now, enqueued_at=None)  # guard: due-unsent-not-behind-backlog
