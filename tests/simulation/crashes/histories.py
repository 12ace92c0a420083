"""The histories that are struck, each from a client's request until all is quiet, and what must be true then."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import boto3
from PIL import Image as Picture

from darkroom.domain.dead_letters.dead_letter import ARCHIVED_FROM_SECONDS, Verdict, verdict_of
from darkroom.domain.dead_letters.rejection import read_rejected_message
from darkroom.domain.events.event import EventType, read_event
from darkroom.domain.images.image import UNKNOWN_SOURCE, Image, Source, Status, run_key
from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.images.transitions import accept
from darkroom.domain.images.works import edit_status
from darkroom.domain.kernel.errors import INTERNAL, ORIGINAL_MISSING, WORKER_LOST
from darkroom.domain.kernel.lanes import lane_for
from darkroom.domain.kernel.tenants import Caller, Tier
from darkroom.domain.recipes.presets import DEFAULT_PRESET, PRESETS
from darkroom.domain.uploads.upload_notification import read_dead_letter
from darkroom.domain.webhooks.row_events import events_of
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import EVERYTHING
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    Counts,
    ReplayDeadLettersPorts,
    replay_dead_letters,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.simulation.crashes.promises import Broken, ViolationKind, check
from tests.simulation.crashes.stores import EVERYTHING_HEARD, DeadLetter
from tests.simulation.crashes.world import MINUTE, START, InvocationFailed, World
from tests.support.fakes.audit import trail_of
from tests.support.fakes.rows import begun_work, told_by


def _photo() -> bytes:
    """A JPEG as small as possible: its content does not matter here."""
    file = io.BytesIO()
    Picture.linear_gradient("L").resize((24, 18)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


PHOTO = _photo()
DAMAGED_PHOTO = PHOTO[: len(PHOTO) // 2]
JUNK = "no message of ours"
KEY = "order-17"
TRIES = 20
PAUSE_SECONDS = 60
"""Between a client's tries: the sweeper's period, so that retries add no other kind of delay."""

PAYING = Caller(tenant_id="acme", tier=Tier.PAID, allowance=Tier.PAID.allowance, key_id="00000001")
"""The tenant that announces large files: its images use the fast lane, those of single requests the slow lane."""

AT_LEISURE = START + ARCHIVED_FROM_SECONDS * 1000 + 24 * 60 * MINUTE
"""When an operator repairs what a bug has done: at the same time in every history, so that histories that reached the
same state go on as one; and late enough for the dead letters to have been archived."""


@dataclass(frozen=True, kw_only=True)
class History:
    """One possible course of an image. `play` returns its id; `ends` are the statuses in which its last run may end,
    `tells` are the events of it, if they are always the same. It `continues` another history, if it begins as that one:
    what one fault does to their common beginning is known by that one. Only in one that `pauses` do the functions look
    at what is paused."""

    name: str
    play: Callable[[World], str]
    ends: tuple[Status, ...]
    deleted: bool = False
    loses_original: bool = False
    tells: tuple[EventType, ...] = ()
    continues: str | None = None
    pauses: bool = False


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What is left at the end: the outputs' bytes by the part of their keys after the id, and the number of raw dead
    letters."""

    outputs: dict[str, bytes]
    settled_dead_letters: int


# ── What people do ────────────────────────────────────────────────────────────────────────────────────────────────


def insist(
    world: World, doing: str, status_code: int, method: str, path: str, *, or_else: int = 0, **request: Any
) -> Any:
    """A client that repeats its request until it is answered so, or as one that has had its effect; returns that
    answer."""
    for attempt in range(TRIES):
        world.position = f"{doing}, try {attempt}"
        answer = world.request(method, path, **request)
        if answer["statusCode"] in (status_code, or_else):
            world.position = f"{doing}, answered"
            return answer
        refusal = f"{doing}: a good request was answered {answer['statusCode']}: {answer['body']}"
        check(answer["statusCode"] in (500, 503), ViolationKind.LOST, refusal)
        # In a worker nothing else can happen meanwhile: there is one thread.
        if world.wire.running:
            world.sleep(PAUSE_SECONDS)
        else:
            world.pass_time(PAUSE_SECONDS)
    raise Broken(ViolationKind.STUCK, f"{doing}: the client was never answered {status_code}")


def submit(world: World, photo: bytes = PHOTO, **order: str) -> str:
    """A client uploads a photo; returns the image's id."""
    query = {"variants": "thumb", **order}
    answer = insist(world, "submitting", 202, "POST", "/images", body=photo, key=KEY, query=query)
    return str(answer["headers"]["Location"].split("/")[2])


def submit_to_reuse(world: World) -> str:
    """A client uploads a photo that may be there already, without a key; returns the image's id."""
    query = {"variants": "thumb", "on_duplicate": "reuse"}
    answer = insist(world, "submitting", 202, "POST", "/images", body=PHOTO, query=query)
    return str(answer["headers"]["Location"].split("/")[2])


def ask(world: World) -> str:
    """A client asks for a photo to be fetched from a URL; returns the image's id."""
    world.photo = PHOTO
    body = json.dumps({"url": "https://photos.example/harbour.jpg", "variants": ["thumb"]}).encode()
    answer = insist(world, "asking", 202, "POST", "/images", body=body, key=KEY, content_type="application/json")
    return str(answer["headers"]["Location"].split("/")[2])


def announce(world: World, photo: bytes = PHOTO) -> tuple[str, str]:
    """A client announces an upload; returns the image's id and the form's key."""
    world.caller = PAYING
    announced = {"bytes": len(photo), "sha256": hashlib.sha256(photo).hexdigest(), "variants": ["thumb"]}
    answer = insist(world, "announcing", 201, "POST", "/uploads", body=json.dumps(announced).encode(), key=KEY)
    document = json.loads(answer["body"])
    return document["id"], document["upload"]["fields"]["key"]


def add_variants(world: World, image_id: str) -> None:
    """A client asks for one more variant."""
    world.may_leave = Status.DONE
    body = json.dumps({"recipe": {"variants": [{"name": "hero", "width": 20}]}}).encode()
    path = f"/images/{image_id}/variants"
    insist(world, "adding", 202, "POST", path, body=body, key=KEY, content_type="application/json")


def edit(world: World, image_id: str, number: int, degrees: int) -> None:
    """A client asks for the image to be turned so, which is its edit of that number."""
    world.may_leave = Status.DONE
    doing, body = f"editing {number}", json.dumps({"rotate": degrees}).encode()
    path = f"/images/{image_id}/edits"
    insist(world, doing, 202, "POST", path, body=body, key=f"edit-{number}", content_type="application/json")


def show_to(world: World, image_id: str, visibility: str) -> None:
    """A client asks for another visibility."""
    world.may_leave = Status.DONE
    body = json.dumps({"visibility": visibility}).encode()
    path = f"/images/{image_id}"
    insist(world, "showing", 202, "PATCH", path, or_else=200, body=body, content_type="application/json")


def delete(world: World, image_id: str) -> None:
    """A client withdraws its image."""
    insist(world, "withdrawing", 204, "DELETE", f"/images/{image_id}")


def look(world: World, image_id: str, status_code: int) -> None:
    """A client asks for the status of its image."""
    insist(world, "looking", status_code, "GET", f"/images/{image_id}/status")


def archive(world: World, image: Image) -> None:
    """The archiver runs every six hours until there is a copy: exactly one per dead letter, and the dead letter stays
    in its queue."""
    for attempt in range(TRIES):
        world.position = f"archiving, try {attempt}"
        with suppress(InvocationFailed):
            world.invoke("archive_dead_letters", {})
        copies = [json.loads(versions[-1][1]) for versions in world.stores.objects("DeadLetterArchiveBucket").values()]
        if copies:
            check(len(copies) == 1, ViolationKind.DOUBLED, f"of one dead letter there are {len(copies)} copies")
            check(
                copies[0]["explanation"]["run"] == image.run, ViolationKind.LOST, f"the copy tells nothing: {copies[0]}"
            )
            _check_dead_letters(world, image, expected=1)
            return
        world.pass_time(6 * 60 * MINUTE / 1000)
    raise Broken(ViolationKind.LOST, "there is no copy of the dead letter")


def replay(world: World, image_id: str) -> None:
    """An operator that repeats the replay of all dead letters until it ends well and the image is in its next run."""
    ended = world.rows()[image_id]
    world.may_leave = ended.status
    for attempt in range(TRIES):
        world.position = f"replaying, try {attempt}"
        try:
            seen_all = world.run_command("operator", lambda: _replay_slow_lane(world))
        except InvocationFailed:
            seen_all = False
        if seen_all and world.rows()[image_id].run > ended.run:
            world.position = "replayed"
            return
        # Dead letters that a command held when it died become visible again within a minute.
        world.pass_time(2 * MINUTE / 1000)
    raise Broken(ViolationKind.STUCK, "the image was never replayed")


def occupy_record(world: World, image_id: str) -> None:
    """A worker of the version before has begun the image's work and died; its record claims that it still works."""
    image = world.rows()[image_id]
    runs_until = world.now + 15 * 24 * 60 * MINUTE
    boto3.client("dynamodb").put_item(
        TableName=world.stores.references["IdempotencyTable"],
        Item=begun_work(run_key(image.image_id, image.run), runs_until=runs_until, kept_seconds=0),
    )
    world.position += ", its record in somebody else's hands"


def send_junk(world: World, *queues: str) -> None:
    """Somebody puts a message that is not ours into each of these queues."""
    for queue in queues:
        world.stores.send(queue, JUNK)


def lose_original(world: World, image_id: str) -> None:
    """Somebody removes every version of the image's original."""
    bucket = world.stores.references["OriginalsBucket"]
    for key, versions in world.stores.objects("OriginalsBucket").items():
        for version_id, _ in versions if key.endswith(image_id) else ():
            world.stores.s3.delete_object(Bucket=bucket, Key=key, VersionId=version_id)
    world.position += ", its original lost"


def lose_output(world: World) -> None:
    """Somebody removes the one object of the outputs bucket."""
    (key,) = world.stores.objects("OutputsBucket")
    world.lost.add(key)
    world.stores.s3.delete_object(Bucket=world.stores.references["OutputsBucket"], Key=key)


def miss(world: World, image_id: str) -> None:
    """A client that requests the variant until it learns that it is missing; if S3 is silent, it is redirected."""
    for attempt in range(TRIES):
        world.position = f"fetching, try {attempt}"
        answer = world.request("GET", f"/images/{image_id}/variants/thumb")
        if '"variant_missing"' in (answer["body"] or ""):
            return
        check(
            answer["statusCode"] in (307, 500, 503),
            ViolationKind.LOST,
            f"a variant was answered {answer['statusCode']}",
        )
        world.pass_time(PAUSE_SECONDS)
    raise Broken(ViolationKind.LOST, "nobody was told that the variant is missing")


def redo(world: World, image_id: str) -> None:
    """An operator that repeats the redo of the image until it is in its next run."""
    world.may_leave = Status.DONE
    for attempt in range(TRIES):
        world.position = f"redoing, try {attempt}"
        with suppress(InvocationFailed):
            world.run_command("operator", lambda: _redo(image_id))
        if world.rows()[image_id].run > 1:
            world.position = "redone"
            return
        world.pass_time(PAUSE_SECONDS)
    raise Broken(ViolationKind.STUCK, "the image was never redone")


def _redo(image_id: str) -> None:
    from darkroom.wiring.sweeping.sweep_due_images import wire  # noqa: PLC0415 - the process's own copy
    from darkroom_cli.operator.operations.images.redo_image import RedoImagePorts, redo_image  # noqa: PLC0415

    of_sweeper, *_ = wire()
    ports = RedoImagePorts(audit=trail_of(), images=of_sweeper.images, lanes=of_sweeper.lanes, clock=of_sweeper.clock)
    redo_image(ports, image_id)


def _replay_slow_lane(world: World) -> bool:
    from darkroom.wiring.sweeping.sweep_due_images import wire  # noqa: PLC0415 - the process's own copy

    of_sweeper, *_ = wire()
    ports = ReplayDeadLettersPorts(
        audit=trail_of(),
        images=of_sweeper.images,
        lanes=of_sweeper.lanes,
        dead_letters=of_sweeper.dead_letters,
        clock=of_sweeper.clock,
    )
    pace = RateLimiter(per_second=10, clock=ports.clock, pause=world.sleep)
    return replay_dead_letters(ports, "slow", EVERYTHING, pace=pace, stop=lambda: False, counts=Counts())


def pause(world: World, lane: str) -> None:
    """An operator pauses a lane."""
    world.stores.put_item("PausesTable", {"subject": {"S": f"lane#{lane}"}, "since": {"N": str(world.now)}})


def resume(world: World, lane: str) -> None:
    """An operator ends that; what wakes the parked images beside the sweeper's own looks fails."""
    (paused,) = world.stores.items("PausesTable")
    world.stores.put_item("PausesTable", {**paused, "resumed_at": {"N": str(world.now)}})


def fail_by_a_bug() -> None:
    """The result of developing a poison image."""
    raise ZeroDivisionError("a bug that this photo trips")


# ── The histories ─────────────────────────────────────────────────────────────────────────────────────────────────


def _good(world: World) -> str:
    image_id = submit(world)
    world.settle()
    return image_id


def _amid_trouble(world: World) -> str:
    """Its messages are delivered twice, with junk among them, and somebody else holds the record of its work."""
    world.copies = True
    send_junk(world, "FastQueue", "SlowQueue", "UploadQueue", "SlowDeadLetters")
    image_id = submit(world)
    occupy_record(world, image_id)
    world.settle()
    return image_id


def _reused(world: World) -> str:
    """It is uploaded once more at once, and again when it is done."""
    image_ids = {submit_to_reuse(world) for _ in range(2)}
    world.settle()
    image_ids.add(submit_to_reuse(world))
    world.settle()
    check(len(image_ids) == 1, ViolationKind.DOUBLED, f"one photo that is reused is {image_ids}")
    return image_ids.pop()


def _without_original(world: World) -> str:
    world.copies = True
    image_id = submit(world)
    lose_original(world, image_id)
    world.settle()
    return image_id


def _refused(world: World) -> str:
    image_id = submit(world, DAMAGED_PHOTO)
    world.settle()
    return image_id


def _poison(world: World) -> str:
    world.before_develop = fail_by_a_bug
    world.copies = True
    return _given_up_and_replayed(world, submit(world), Status.FAILED)


def _given_up_and_replayed(world: World, image_id: str, status: Status) -> str:
    world.settle()
    image = _check_row(world, image_id, (status,))
    _check_objects(world, image)
    _check_dead_letters(world, image, expected=1)

    world.position = "given up"
    world.pass_until(AT_LEISURE)
    archive(world, image)
    world.before_develop = None
    replay(world, image_id)
    world.settle()
    return image_id


def _lost_and_redone(world: World) -> str:
    image_id = submit(world)
    world.settle()
    lose_output(world)
    miss(world, image_id)
    redo(world, image_id)
    world.settle()
    return image_id


def _variants_added(world: World) -> str:
    """Its messages are delivered twice."""
    image_id = _good(world)
    world.copies = True
    add_variants(world, image_id)
    world.settle()
    return image_id


def _poison_variants_added(world: World) -> str:
    image_id = _good(world)
    world.before_develop = fail_by_a_bug
    add_variants(world, image_id)
    return _given_up_and_replayed(world, image_id, Status.DONE)


def _edited(world: World) -> str:
    """Two edits come before a worker does, and one like the first while it is at work; messages are delivered twice."""
    image_id = _good(world)
    world.copies = True
    edit(world, image_id, 1, 270)
    edit(world, image_id, 2, 180)

    def edit_again() -> None:
        world.before_develop = None
        edit(world, image_id, 3, 270)

    world.before_develop = edit_again
    world.settle()
    if world.before_develop is not None:  # the worker overtook a client that had to repeat itself
        edit_again()
        world.settle()
    image = world.rows()[image_id]
    last = (image.edit_number, image.edited and image.edited.rotate, edit_status(image))
    check(last == (3, 270, "done"), ViolationKind.LOST, f"the last edit is not shown: {last}")
    return image_id


def _deleted_while_edited(world: World) -> str:
    image_id = _good(world)
    edit(world, image_id, 1, 180)
    return _withdrawn_at("before_develop", world, image_id)


def _deleted_while_variants_are_added(world: World) -> str:
    image_id = _good(world)
    add_variants(world, image_id)
    return _withdrawn_at("before_develop", world, image_id)


def _public_then_private_then_deleted(world: World) -> str:
    image_id = submit(world, visibility="public")
    world.settle()
    check(world.stores.tellings_of_the_edge() == [], ViolationKind.DIFFERING, "the edge forgets what it serves")
    show_to(world, image_id, "private")
    world.settle()
    _check_objects(world, world.rows()[image_id])
    told = _check_edge(world, 0, [0, 900])
    delete(world, image_id)
    world.settle()
    _check_edge(world, told, [0, 0])
    return image_id


def _paused_and_resumed(world: World) -> str:
    """Its lane is paused when it is submitted, and resumed two hours later; its messages are delivered twice. Where
    nobody can tell that it is paused, it is developed."""
    world.copies = True
    pause(world, "slow")
    image_id = submit(world)
    world.pass_time(2 * 3600)
    row = world.rows()[image_id]
    check(row.parked or row.status is Status.DONE, ViolationKind.STUCK, f"it is {row.status}, and not parked")
    resume(world, "slow")
    world.settle()
    return image_id


def _cancelled(world: World) -> str:
    image_id = submit(world)
    delete(world, image_id)
    world.settle()
    return image_id


def _deleted_while_developed(world: World) -> str:
    return _withdrawn_at("before_develop", world, submit(world))


def _withdrawn_at(moment: Literal["before_develop", "before_served"], world: World, image_id: str) -> str:
    """Its client withdraws it at that moment of the world."""

    def withdraw() -> None:
        setattr(world, moment, None)
        delete(world, image_id)

    setattr(world, moment, withdraw)
    world.settle()
    if getattr(world, moment) is not None:  # the moment was over before its client knew that it was accepted
        withdraw()
        world.settle()
    return image_id


def _deleted(world: World) -> str:
    image_id = submit(world)
    world.settle()
    delete(world, image_id)
    world.settle()
    return image_id


def _uploaded(world: World) -> str:
    image_id, key = announce(world)
    world.upload(key, PHOTO, events=2)
    world.settle()
    return image_id


def _uploaded_and_confirmed(world: World) -> str:
    """S3 tells nobody; the client confirms its upload, and once more, when it may have been accepted."""
    image_id, key = announce(world)
    world.upload(key, PHOTO, events=0)
    for doing in ("confirming", "confirming again"):
        insist(world, doing, 200, "POST", f"/uploads/{image_id}/done")
    world.settle()
    return image_id


def _uploaded_without_notification(world: World) -> str:
    image_id, key = announce(world)
    world.upload(key, PHOTO, events=0)
    world.settle()
    return image_id


def _never_uploaded(world: World) -> str:
    """A history that only a sweep ends, although the first row it meets is of an unknown version."""
    newer = accept(
        image_id="0" * 26,
        tenant_id=PAYING.tenant_id,
        lane=lane_for(PAYING.tier).name,
        preset=None,
        recipe=PRESETS[DEFAULT_PRESET],
        fingerprint="",
        correlation_id="",
        source=Source(version_id="v1", sha256="", size_bytes=1, media_type="image/jpeg"),
        now=START - 60 * MINUTE,
    )
    world.plant(newer)
    image_id, _ = announce(world)
    world.settle()
    return image_id


def _uploaded_when_withdrawn(world: World) -> str:
    image_id, key = announce(world)
    delete(world, image_id)
    world.upload(key, PHOTO, events=1)
    world.settle()
    return image_id


def _fetched(world: World) -> str:
    """Its source is busy at first, and its messages are delivered twice."""
    world.copies = True
    world.served = [503, 200]
    image_id = ask(world)
    world.settle()
    return image_id


def _never_found(world: World) -> str:
    world.served = [404]
    image_id = ask(world)
    world.settle()
    return image_id


def _withdrawn_while_fetched(world: World) -> str:
    return _withdrawn_at("before_served", world, ask(world))


HISTORIES = {
    history.name: history
    for history in (
        History(name="poison, mended and replayed", play=_poison, ends=(Status.DONE,)),
        History(name="output lost and redone", play=_lost_and_redone, ends=(Status.DONE,), continues="good"),
        History(
            name="variants added",
            play=_variants_added,
            ends=(Status.DONE,),
            tells=(EventType.ACCEPTED, EventType.DONE, EventType.VARIANTS_ADDED),
            continues="good",
        ),
        History(
            name="poison variants, mended",
            play=_poison_variants_added,
            ends=(Status.DONE,),
            tells=(EventType.ACCEPTED, EventType.DONE, EventType.WORK_FAILED, EventType.VARIANTS_ADDED),
            continues="variants added",
        ),
        History(name="edited", play=_edited, ends=(Status.DONE,), continues="good"),
        History(
            name="deleted while edited",
            play=_deleted_while_edited,
            ends=(Status.DONE,),
            deleted=True,
            continues="good",
        ),
        History(
            name="deleted with variants to come",
            play=_deleted_while_variants_are_added,
            ends=(Status.DONE,),
            deleted=True,
            continues="variants added",
        ),
        # The worker may overtake a client that has to repeat itself.
        History(
            name="public, then private, then deleted",
            play=_public_then_private_then_deleted,
            ends=(Status.DONE,),
            tells=(EventType.ACCEPTED, EventType.DONE, EventType.VISIBILITY_CHANGED, EventType.DELETED),
            deleted=True,
        ),
        History(name="paused and resumed", play=_paused_and_resumed, ends=(Status.DONE,), pauses=True),
        History(name="cancelled", play=_cancelled, ends=(Status.CANCELLED, Status.DONE), deleted=True),
        History(
            name="deleted while developed",
            play=_deleted_while_developed,
            ends=(Status.CANCELLED, Status.DONE),
            deleted=True,
        ),
        History(name="deleted", play=_deleted, ends=(Status.DONE,), deleted=True, continues="good"),
        History(name="good", play=_good, ends=(Status.DONE,)),
        History(name="uploaded again and reused", play=_reused, ends=(Status.DONE,)),
        History(name="amid trouble", play=_amid_trouble, ends=(Status.DONE,)),
        # The worker may overtake a client that has to repeat itself.
        History(
            name="without its original",
            play=_without_original,
            ends=(Status.FAILED, Status.DONE),
            loses_original=True,
        ),
        History(name="refused", play=_refused, ends=(Status.FAILED,)),
        History(name="uploaded", play=_uploaded, ends=(Status.DONE,)),
        History(name="uploaded and confirmed", play=_uploaded_and_confirmed, ends=(Status.DONE,)),
        History(name="uploaded without notification", play=_uploaded_without_notification, ends=(Status.DONE,)),
        History(name="never uploaded", play=_never_uploaded, ends=(Status.EXPIRED,)),
        History(name="fetched", play=_fetched, ends=(Status.DONE,)),
        History(name="never found", play=_never_found, ends=(Status.FAILED,)),
        History(
            name="withdrawn while fetched",
            play=_withdrawn_while_fetched,
            ends=(Status.CANCELLED, Status.DONE),
            deleted=True,
        ),
        History(name="uploaded when withdrawn", play=_uploaded_when_withdrawn, ends=(Status.CANCELLED,), deleted=True),
    )
}


# ── What must be true ─────────────────────────────────────────────────────────────────────────────────────────────


def check_promises(world: World, history: History, image_id: str, undisturbed: Ending | None) -> Ending:
    """Checks every promise once the world is quiet; `undisturbed` is how the history ends without faults."""
    image = _check_row(world, image_id, history.ends)
    _check_events(world, image)
    told = tuple(event.type for event in events_of(image))
    check(history.tells in ((), told), ViolationKind.DIFFERING, f"the events are {told}")
    check(image.is_deleted == history.deleted, ViolationKind.LOST, f"deleted_at is {image.deleted_at}")
    outputs = _check_objects(world, image, has_original=not history.loses_original)
    world.check_planted()
    look(world, image_id, 404 if image.is_deleted else 200)
    if undisturbed is not None and not history.loses_original:  # it may be developed before it is lost
        check(
            outputs == undisturbed.outputs,
            ViolationKind.DIFFERING,
            "the outputs differ from those of the undisturbed history",
        )
    escalated = image.error is not None and image.error.code == ORIGINAL_MISSING
    return Ending(outputs=outputs, settled_dead_letters=_check_dead_letters(world, image, expected=int(escalated)))


def _check_row(world: World, image_id: str, ends: tuple[Status, ...]) -> Image:
    rows = world.rows()
    check(image_id in rows, ViolationKind.LOST, "the row of an accepted image is gone")
    check(list(rows) == [image_id], ViolationKind.DOUBLED, f"of one accepted image there are the rows {sorted(rows)}")
    image = rows[image_id]
    owner = (world.caller.tenant_id, lane_for(world.caller.tier).name)
    check(
        (image.tenant_id, image.lane) == owner,
        ViolationKind.LOST,
        f"it is {(image.tenant_id, image.lane)}, and not {owner}",
    )
    check(image.status in ends, ViolationKind.LOST, f"it ended {image.status} ({image.error}), not {' or '.join(ends)}")
    check(
        image.due_at is None and image.waiting_since is None,
        ViolationKind.STUCK,
        "it is at its end, and somebody still waits for it",
    )
    expected = {(image.image_id, run): 1 for run in range(1, image.run + 1)}
    check(dict(world.endings) == expected, ViolationKind.DOUBLED, f"the runs ended so often: {dict(world.endings)}")
    check(world.lane_messages() == [], ViolationKind.STUCK, f"messages are left: {world.lane_messages()}")
    return image


def _check_events(world: World, image: Image) -> None:
    """What the row tells was heard at least once, under its one id, and nothing else was; and usage was counted
    exactly."""
    events = {event.event_id: event for event in events_of(image)}
    heard = {
        (event.event_id, event.type)
        for event in (read_event(message.body) for message in world.stores.messages(EVERYTHING_HEARD))
    }
    expected = {(event_id, event.type.value) for event_id, event in events.items()}
    check(expected <= heard, ViolationKind.LOST, f"nobody heard of {sorted(expected - heard)}")
    check(heard <= expected, ViolationKind.DIFFERING, f"there was no {sorted(heard - expected)}")
    counted = {item["event_id"]["S"] for item in world.stores.items("CountedEventsTable")}
    made = (EventType.DONE, EventType.VARIANTS_ADDED)
    used = {event_id for event_id, event in events.items() if event.type in (EventType.ACCEPTED, *made)}
    bodies = [read_event(message.body) for message in world.stores.messages(EVERYTHING_HEARD)]
    used |= {event.event_id for event in bodies if "stored" in event.data}
    check(
        counted == used,
        ViolationKind.LOST if used - counted else ViolationKind.DOUBLED,
        f"counted {counted}, not {used}",
    )
    items = world.stores.items("UsageTable")
    stored = sum(int(item["stored_bytes"]["N"]) for item in items if "stored_bytes" in item)
    check(stored == stored_by(image).size_bytes, ViolationKind.DIFFERING, f"{stored} bytes are counted as stored")
    sums = [{name: int(item[name]["N"]) for name in ("images", "runs")} for item in items if "images" in item]
    done = sum(event.type in made for event in events.values())
    accepted = sum(event.type is EventType.ACCEPTED for event in events.values())
    total = (sum(day["images"] for day in sums), sum(day["runs"] for day in sums))
    check(total == (accepted, done), ViolationKind.DOUBLED, f"the usage is {total}, not {(accepted, done)}")


def _check_objects(world: World, image: Image, *, has_original: bool = True) -> dict[str, bytes]:
    originals, outputs = world.stores.objects("OriginalsBucket"), world.stores.objects("OutputsBucket")
    uploads = world.stores.objects("UploadsBucket")
    check(not uploads, ViolationKind.STUCK, f"uploads are left: {sorted(uploads)}")
    if image.status is Status.EXPIRED:
        check(
            not originals and not outputs,
            ViolationKind.STUCK,
            f"of nothing there is {sorted(originals)}, {sorted(outputs)}",
        )
        return {}
    if image.is_deleted:
        check(not originals, ViolationKind.STUCK, f"originals of a deleted image are left: {sorted(originals)}")
        check(not outputs, ViolationKind.STUCK, f"outputs of a deleted image are left: {sorted(outputs)}")
        check(image.forget_at is not None, ViolationKind.STUCK, "its tombstone is never forgotten")
        check(not told_by(image), ViolationKind.STUCK, f"its tombstone still has {told_by(image)}")
        remembered = world.stores.items("IdempotencyTable")
        check(not remembered, ViolationKind.STUCK, f"the work on a deleted image is remembered: {remembered}")
        return {}
    if image.source == UNKNOWN_SOURCE:
        check(
            not originals and not outputs,
            ViolationKind.STUCK,
            f"of nothing there is {sorted(originals)}, {sorted(outputs)}",
        )
        check(image.url is None, ViolationKind.STUCK, "the URL of an image that has ended is remembered")
    elif has_original:
        _check_original(image, originals)
    if image.edit_number is not None:  # those of earlier edits stay, as after a redo, and which were made may differ
        outputs = {variant.name: outputs[variant.key] for variant in image.variants}
        return {name: versions[0][1] for name, versions in outputs.items()}
    check(
        {variant.key for variant in image.variants} == set(outputs),
        ViolationKind.DIFFERING,
        f"outputs: {sorted(outputs)}",
    )
    return {key.removeprefix(f"outputs/{image.image_id}/"): versions[0][1] for key, versions in outputs.items()}


def _check_edge(world: World, before: int, delays: Sequence[int]) -> int:
    """An edge can read nothing more, and was told so after these seconds, besides what it was told before; returns how
    often it was told."""
    left = [key for key in world.stores.objects("OutputsBucket") if not key.startswith("outputs/")]
    check(not left, ViolationKind.STUCK, f"an edge can still read {left}")
    told = world.stores.tellings_of_the_edge()
    missing = Counter(delays) - Counter(told[before:])
    check(not missing, ViolationKind.LOST, f"the edge was told after {told[before:]} seconds, not {delays}")
    return len(told)


def _check_original(image: Image, originals: Mapping[str, list[tuple[str, bytes]]]) -> None:
    check(list(originals) == [f"originals/{image.image_id}"], ViolationKind.LOST, f"originals: {sorted(originals)}")
    versions = originals[f"originals/{image.image_id}"]
    check(
        [version_id for version_id, _ in versions] == [image.source.version_id],
        ViolationKind.DOUBLED,
        f"the row pins version {image.source.version_id} of its original; there are {versions}",
    )
    check(
        hashlib.sha256(versions[0][1]).hexdigest() == image.source.sha256,
        ViolationKind.DIFFERING,
        "the original is another one",
    )


def _check_dead_letters(world: World, image: Image, *, expected: int) -> int:
    """One explained dead letter for a given-up run, none for anything else. SQS itself may have moved a settled message
    there whose last receiver was a killed worker. Returns the number of those."""
    dead_letters = []
    for dead_letter in world.stores.dead_letters():
        rejected = read_rejected_message(dead_letter.body)
        check(
            rejected is None or rejected.rejected == JUNK,
            ViolationKind.LOST,
            f"a message of our own was rejected: {dead_letter}",
        )
        if rejected is None and dead_letter.body != JUNK:
            dead_letters.append(dead_letter)
    verdicts = [(dead_letter, verdict_of(read_dead_letter(dead_letter.body), image)) for dead_letter in dead_letters]
    own = [dead_letter for dead_letter, verdict in verdicts if verdict is not Verdict.SETTLED]
    harm = ViolationKind.DOUBLED if len(own) > expected else ViolationKind.LOST
    check(
        len(own) == expected,
        harm,
        f"dead letters: {[(verdict.value, dead_letter) for dead_letter, verdict in verdicts]}",
    )
    for dead_letter in own:
        _check_explanation(dead_letter, image)
    settled = [dead_letter for dead_letter, verdict in verdicts if verdict is Verdict.SETTLED]
    check(
        all(dead_letter.explanation is None for dead_letter in settled),
        ViolationKind.DOUBLED,
        f"an explained dead letter of what is settled: {settled}",
    )
    return len(settled)


def _check_explanation(dead_letter: DeadLetter, image: Image) -> None:
    check(dead_letter.explanation is not None, ViolationKind.LOST, "the dead letter does not explain itself")
    explanation: dict[str, Any] = json.loads(dead_letter.explanation or "{}")
    check(
        (explanation["image_id"], explanation["run"]) == (image.image_id, image.run),
        ViolationKind.LOST,
        f"it explains another run: {explanation}",
    )
    check(
        explanation["cause"] in (INTERNAL, WORKER_LOST, ORIGINAL_MISSING),
        ViolationKind.LOST,
        f"its cause is {explanation['cause']}",
    )
    check(bool(explanation["attempts"]), ViolationKind.LOST, "it describes no attempt")
