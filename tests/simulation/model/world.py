"""A Darkroom whose processes may die, pause, be refused or read a wrong clock, and what must hold all the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import count
from typing import Any, Literal
from unittest.mock import patch

from darkroom.domain.dead_letters.rejection import read_rejected_message
from darkroom.domain.images.annotations import Annotations
from darkroom.domain.images.image import DUE_SHARD_NAMES, DeadLetterState, Image, Status, due_shard_of, message_for
from darkroom.domain.images.limits import Limits
from darkroom.domain.images.listing import ListQuery
from darkroom.domain.images.order import order_of
from darkroom.domain.images.works import leading, names_of_work, run_of_key, together
from darkroom.domain.kernel.errors import INTERNAL, ORIGINAL_MISSING, WORKER_LOST, Rejected, Retryable, UnknownImage
from darkroom.domain.kernel.ids import image_ids_for_photo
from darkroom.domain.kernel.message import Message, read_message
from darkroom.domain.kernel.retry import RetryPolicy
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.kernel.visibility import Visibility, visibility_of_key
from darkroom.domain.recipes.recipes import Recipe
from darkroom.domain.sweeping.due import MAX_PAUSE_SECONDS
from darkroom.imaging import Developed, Developing, Placeholder, Rendered, develop
from darkroom.operations.images.add_variants import AddVariantsPorts, NotDone, VariantsRequest, add_variants
from darkroom.operations.images.change_visibility import ChangeVisibilityPorts, change_visibility
from darkroom.operations.images.list_images import ListImagesPorts, list_images
from darkroom.operations.images.transcode_image import Early, Finished, Outcome, Postponed, postponed_by
from darkroom.operations.kernel.check_message import CheckPorts, check_message
from darkroom.operations.sweeping.measure_lanes import MeasureLanesPorts, measure_lanes
from darkroom.ports.dead_letters import DeadLetter
from darkroom_cli.operator.domain.redrives import RedriveStatus
from darkroom_cli.operator.operations.dead_letters.drop_dead_letters import DropDeadLettersPorts, drop_dead_letters
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import EVERYTHING
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import Counts as ReplayCounts
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    NotReplayable,
    QueuePorts,
    replay_dead_letters,
    replay_image,
    replay_queue,
)
from darkroom_cli.operator.operations.images.redo_image import NotRedoable, RedoImagePorts, redo_image
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.simulation.model.processes import Call, Process, Surroundings
from tests.simulation.model.simulated import Simulated
from tests.simulation.model.stores import (
    Broken,
    ModelDeadLetters,
    ModelLanes,
    ModelOnce,
    QueuedMessage,
    SigningLanes,
    WatchedImages,
    WatchedOutputs,
    must,
    received,
)
from tests.support.fakes import FakeOriginals, World
from tests.support.fakes.dead_letters import FakeRedrives
from tests.support.fakes.engine import already
from tests.support.fakes.messages import KEYS
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.rows import accepted_image, told_by
from tests.support.fakes.stores import FakeEdge
from tests.support.fakes.world import TIMEOUT_SECONDS
from tests.support.faults import ProcessDied

type Kind = Literal["good", "refused", "poison", "killer"]
type Role = Literal["client", "worker", "sweeper", "operator"]

ROLES: tuple[Role, ...] = ("client", "worker", "sweeper", "operator")
STORES = (
    "images",
    "index",
    "originals",
    "outputs",
    "lanes",
    "dead_letters",
    "redrives",
    "once",
    "engine",
    "message_keys",
    "edge",
)
"""What processes call; the index of due images may fail while its table does not."""

READS = {
    "images": frozenset({"get", "get_all", "due", "oldest_waiting", "newest", "with_reference"}),
    "originals": frozenset({"get", "versions_of"}),
    "outputs": frozenset({"get", "holds", "keys_of"}),
    "lanes": frozenset({"backlog"}),
    "dead_letters": frozenset({"depth"}),
    "redrives": frozenset({"latest"}),
    "message_keys": frozenset({"current", "version"}),
}
INDEXES = dict.fromkeys(("images.due", "images.oldest_waiting", "images.newest", "images.with_reference"), "index")
TENANTS = ("acme", "umbra")
REUSE = "reuse"
"""In place of a key."""
REFERENCE = "front"
RECIPES: tuple[dict[str, Any], ...] = (
    {},
    {"variants": "thumb", "annotations": Annotations(reference=REFERENCE), "visibility": "public"},
)
TRIPPING = "turned"
ADDITIONS = (
    '{"variants": [{"name": "hero", "width": 40}]}',
    f'{{"variants": [{{"name": "hero", "width": 24}}, {{"name": "{TRIPPING}", "width": 9}}], "rotate": 90}}',
    '{"variants": [{"name": "thumb", "width": 16}]}',
)
"""More variants: others with other edits, of which one trips the bug of a poison photo, and one in another's place."""
SKEW_LIMIT_SECONDS = 600
REFUSAL = "unreadable_in_this_model"
ENDINGS = (
    *("done", "cancelled", "work failed: internal", "work failed: original_missing"),
    *(f"failed: {code}" for code in (REFUSAL, INTERNAL, WORKER_LOST, ORIGINAL_MISSING)),
)
"""Every way in which a run can end, by the names in a report's table. Uploads that never arrive have no row yet."""

_MINUTE = 60_000
_SEEN_MILLISECONDS = (MAX_PAUSE_SECONDS + SKEW_LIMIT_SECONDS) * 1000
_ROUNDS, _DRAIN_MILLISECONDS = 400, 2 * 24 * 60 * _MINUTE
"""How long everything may take once nothing fails any more: mostly the sweeper's pauses, of up to an hour."""


@dataclass(frozen=True, kw_only=True)
class Photo:
    """An upload: `kind` is how it ends, as long as nobody has fixed the bug or the memory."""

    kind: Kind
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What develops, and photos for it of every kind."""

    photos: tuple[Photo, ...]
    develop: Callable[..., Developed]

    def kind_of(self, body: bytes) -> Kind:
        return next(photo.kind for photo in self.photos if photo.body == body)


def _pretended(original: bytes, recipe: Recipe, **_: Any) -> Developed:
    """Bytes that depend only on the original and the recipe, as the engine's do, in no time."""
    if original.endswith(b"refused"):
        raise Rejected(REFUSAL, "No image.")
    return Developed(
        variants=tuple(
            Rendered(
                name=spec.name,
                width=spec.box[0] or 1,
                height=spec.box[1] or 1,
                format="jpeg",
                media_type="image/jpeg",
                extension="jpg",
                body=hashlib.sha256(original + _alone(recipe, number)).digest(),
            )
            for number, spec in enumerate(recipe.variants)
        ),
        notices=(),
        placeholder=Placeholder(thumbhash="", color="#000000"),
    )


@cache
def _alone(recipe: Recipe, number: int) -> bytes:
    """What a variant's bytes depend on besides the original: the other variants make no difference."""
    return recipe.model_copy(update={"variants": recipe.variants[number : number + 1]}).digest().encode()


def pretended_engine() -> Engine:
    """No real engine, so that thousands of histories run in seconds."""
    kinds: tuple[Kind, ...] = ("good", "good", "refused", "poison", "killer")
    return Engine(
        photos=tuple(
            Photo(kind=kind, body=b"\xff\xd8\xff" + f"{number} {kind}".encode()) for number, kind in enumerate(kinds)
        ),
        develop=_pretended,
    )


@cache
def real_engine() -> Engine:
    """The engine itself, on the smallest pictures."""
    truncated = jpeg(48, 32)
    return Engine(
        photos=(
            Photo(kind="good", body=jpeg(48, 32)),
            Photo(kind="good", body=jpeg(32, 48)),
            Photo(kind="refused", body=truncated[: len(truncated) // 2]),
            Photo(kind="poison", body=jpeg(40, 40)),
            Photo(kind="killer", body=jpeg(40, 30)),
        ),
        develop=_really,
    )


@cache
def _really(original: bytes, recipe: Recipe, **options: Any) -> Developed:
    try:
        return develop(original, recipe, **options)
    except Rejected as refusal:
        raise Rejected(REFUSAL, refusal.message) from refusal


@dataclass
class Counts:
    """How often everything has happened, over all histories."""

    rules: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    replays: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)

    def update(self, other: Counts) -> None:
        """Adds the counts of the other."""
        for part in fields(self):
            getattr(self, part.name).update(getattr(other, part.name))

    def copy(self) -> Counts:
        """The counts as they are now."""
        return Counts(**{part.name: Counter(getattr(self, part.name)) for part in fields(self)})

    def __sub__(self, before: Counts) -> Counts:
        """What was counted since `before` was copied."""
        return Counts(**{part.name: getattr(self, part.name) - getattr(before, part.name) for part in fields(self)})


class Model(Simulated):
    """The stores, the queues, a clock for each role, the paused processes, and what was promised."""

    timeout_seconds = TIMEOUT_SECONDS
    endless = ("replay", "redo", "drop")
    first_read = Call(store="images", number=0)

    def __init__(self, engine: Engine, counts: Counts) -> None:
        super().__init__(now=World().now, began=World().now)
        self.engine = engine
        self.counts = counts
        self.skews: dict[Role, int] = dict.fromkeys(ROLES, 0)
        self.mended = self.was_mended = self.was_skewed = False
        self.accepted: dict[str, Photo] = {}
        self.withdrawn: set[str] = set()
        self.dropped: set[tuple[str, int]] = set()
        self.without_original: set[str] = set()
        self.asked: set[str] = set()
        """Images beside which somebody has asked for work."""
        self.added: dict[tuple[str, int], set[str]] = {}
        """The variants that a client was promised, by the image and the run that makes them."""
        self.lost: dict[str, str] = {}
        """Keys of outputs that somebody has removed, and their images."""
        self.attempts: dict[tuple[str, int], list[Process]] = {}
        self.keys: dict[tuple[str, str], set[tuple[bytes, str]]] = {}
        self.reused: set[tuple[str, ...]] = set()
        """The ids of each photo that was uploaded to be reused."""

        self.surroundings = Surroundings(
            reads=READS, indexes=INDEXES, on_strike=lambda mode: counts.faults.update([mode])
        )
        self.images = WatchedImages(
            lease_is_over=self._lease_is_over, on_claim=self._on_claim, may_begin=self._may_begin
        )
        self.originals = FakeOriginals()
        self.outputs = WatchedOutputs(may_remove=self._may_remove)
        self.edge = FakeEdge()
        self.dead_letters = ModelDeadLetters(is_kept=self._is_kept)
        self.lanes = ModelLanes(clock=self.clock, dead_letters=self.dead_letters)
        self.redrives = FakeRedrives(self.dead_letters, self.lanes, per_look=10)
        self._struck_redrives = self.surroundings.around("redrives", self.redrives)
        self.once = ModelOnce(call=lambda name, call: self._call("once", name, call))
        self.worlds: dict[Role, World] = {role: self._world() for role in ROLES}
        self._patches = patch("darkroom.operations.images.transcode_image.developing", self._developing)
        self._patches.start()
        self._tell_time()

    def close(self) -> None:
        """Ends the paused processes, and restores the engine."""
        self._patches.stop()
        super().close()

    # ── The processes ────────────────────────────────────────────────────────────────────────────────────────────────

    def submit(self, photo: Photo, tenant: str, recipe: int, key: str | None, **how: Any) -> None:
        """A client's request; something was promised only if it was answered."""
        order = RECIPES[recipe]
        how_often = {"on_duplicate": key} if key == REUSE else {"idempotency_key": key}
        if key == REUSE:
            self.reused.add(
                image_ids_for_photo(
                    tenant, _sha256(photo.body), order_of(variants=order.get("variants")).recipe.digest()
                )
            )
        elif key is not None:
            self.keys.setdefault((tenant, key), set()).add((photo.body, str(order)))

        def body() -> None:
            try:
                accepted = self.worlds["client"].submit(photo.body, tenant_id=tenant, **how_often, **order)
            except Retryable:
                return  # a legitimate 503
            except Rejected as refusal:
                if refusal.code == "idempotency_key_reused":
                    conflicts = len(self.keys.get((tenant, key or ""), ()))
                    must(conflicts > 1, "lost", "the same upload under its key is no conflict")
                else:
                    must(refusal.code == "image_deleted", "lost", "a good request is refused for its key alone")
                return
            image = accepted.image
            earlier = self.accepted.setdefault(image.image_id, photo)
            must(earlier.body == photo.body, "differing", "what was answered for is the photo that was sent")
            must(image.tenant_id == tenant, "differing", "what was answered for is the tenant's own")

        self.start("submit", body, **how)

    def deliver(self, message: QueuedMessage[Message], **how: Any) -> None:
        """SQS delivers a message to a worker; what the handler does with the outcome is in its `settle`."""
        if not self.lanes.receive(message):
            self.counts.totals["redriven by SQS"] += 1
            return
        receipt, receive_count = f"{message.message_id}/{message.receive_count}", message.receive_count
        if "worker" in self.surroundings.down:
            return
        if receive_count > 1 or message.message.run > 1:
            self.counts.totals["repeated deliveries"] += 1

        def body() -> None:
            verdict = self._checked_and_delivered(message, receipt, receive_count)
            returns_in_seconds = verdict.returns_in_seconds
            self.counts.deliveries[
                verdict.reason
                if isinstance(verdict, Finished)
                else "postponed"
                if isinstance(verdict, Postponed | Early)
                else "try again by another message"
                if returns_in_seconds is None
                else "try again"
            ] += 1
            # Lambda deletes the message of a good record; if it does not get that far, the message returns.
            with suppress(Retryable):
                if returns_in_seconds is not None:
                    self._call("lanes", "hide", lambda: self.lanes.hide(message, returns_in_seconds))
                else:
                    self._call("lanes", "acknowledge", lambda: self.lanes.acknowledge(message))

        self.start("deliver", body, **how)

    def _checked_and_delivered(self, message: QueuedMessage[Message], receipt: str, receive_count: int) -> Outcome:
        """What the handler does: only what verifies is delivered."""
        worker = self.worlds["worker"]
        try:
            mistrust = check_message(self._checking, message.message.lane, received(message))
        except Retryable as outage:
            return postponed_by(outage, receive_count=receive_count, jitter=worker.jitter)
        must((mistrust is None) == (message.signature is not None), "lost", "what this stack has sent verifies")
        if mistrust is not None:
            return Finished(image=None, reason="rejected")

        def hide(seconds: int) -> None:
            self._call("lanes", "hide", lambda: self.lanes.hide(message, seconds))

        return worker.deliver(message.message, receipt, receive_count=receive_count, hide=hide)

    def forge(self, message: Message, *, is_signed: bool) -> None:
        """Somebody puts a message into its lane; with the key it is only a strange one, which its row decides on."""
        if is_signed:
            self.lanes.send(message)
        else:
            self.lanes.put(message, None)

    def _sweep(self) -> None:
        """What the handler does: it measures first, and sweeps whether or not that worked."""
        sweeper = self.worlds["sweeper"]
        problems = {**measure_lanes(sweeper.ports(MeasureLanesPorts)).problems}
        sweep = sweeper.sweep()
        must(not sweep.errors, "stuck", f"a sweep trips over no row: {sweep.errors}")
        for error in (*problems.values(), *sweep.unlisted.values()):
            must(isinstance(error, Retryable), "stuck", f"measuring and listing trip over no row: {error!r}")
        self.counts.looks["the index does not answer"] += len(sweep.unlisted)
        self.counts.looks.update(sweep.outcomes)

    def plant(self, tenant: str, lane: str, *, has_dead_letter: bool) -> None:
        """A version was deployed that writes rows this one cannot read, and was rolled back: a row of it is its
        tenant's newest, its lane's longest waiting, and overdue; its message is in the lane, and perhaps one among the
        dead letters."""
        number = len(self.images.planted)
        # Before somebody's image in the due index, if there is one.
        shards = {due_shard_of(image_id) for image_id in list(self.images.rows)[-1:]} or set(DUE_SHARD_NAMES)
        ids = (f"{8**25 + each:026o}" for each in count(1000 * number))
        image_id = next(image_id for image_id in ids if due_shard_of(image_id) in shards)
        accepted = accepted_image(image_id=image_id, tenant_id=tenant, lane=lane, now=self.now)
        image = replace(accepted, due_at=number, waiting_since=number)
        self.images.plant(image)
        message = message_for(image)
        self.lanes.send(message)
        if has_dead_letter:
            self.dead_letters.add(lane, message.model_dump_json())

    def look_through(self, tenant: str) -> None:
        """A client lists all of its images."""

        def body() -> None:
            with suppress(Retryable):
                self._check_list(tenant, self.worlds["client"].images)
                self._check_list(tenant, self.worlds["client"].images, REFERENCE)

        self.start("list", body)

    def _check_list(self, tenant: str, images: Any, reference: str | None = None) -> None:
        shown: list[str] = []
        after, pages = None, 0
        while pages == 0 or after is not None:
            query = ListQuery(limit=2, after=after, reference=reference)
            page = list_images(ListImagesPorts(images=images), query, tenant_id=tenant)
            shown += [image.image_id for image in page.images]
            after, pages = page.next, pages + 1
        own = [row for row in self.images.rows.values() if row.tenant_id == tenant and not row.is_deleted]
        own = [row for row in own if reference in (None, row.reference)]
        must(sorted(shown) == sorted(row.image_id for row in own), "lost", "a list shows all that can be read")

    def delete(self, image_id: str, tenant: str, **how: Any) -> None:
        def body() -> None:
            try:
                self.worlds["client"].delete(image_id, tenant)
            except Retryable:
                return
            except UnknownImage:
                must(not self._belongs_to(tenant, image_id), "lost", "an image is unknown to other tenants only")
                return
            must(self._belongs_to(tenant, image_id), "lost", "nobody withdraws another tenant's image")
            self.withdrawn.add(image_id)

        self.start("delete", body, **how)

    def replay(self, queue: str, by: Literal["letters", "redrive", "row"], image_id: str, **how: Any) -> None:
        """An operator replays a queue dead letter by dead letter, or all of it by one redrive, or an image by its
        row."""

        def body() -> None:
            world = self.worlds["operator"]
            ports = world.ports(QueuePorts, redrives=self._struck_redrives, pause=lambda _: None)
            counts = ReplayCounts()
            try:
                match by:
                    case "letters":
                        pace = RateLimiter(per_second=10, clock=world.clock, pause=lambda _: None)
                        replay_dead_letters(ports, queue, EVERYTHING, pace=pace, stop=lambda: False, counts=counts)
                    case "redrive":
                        replay_queue(ports, queue, per_second=10, stop=lambda: False, counts=counts)
                    case "row":
                        replay_image(ports, image_id)
                        counts.add("replayed by its row")
            except (Retryable, NotReplayable):
                pass  # the operator sees this, and may repeat it
            self.counts.replays.update(counts.counts)

        self.start("replay", body, **how)

    def redo(self, image_id: str, **how: Any) -> None:
        """An operator has an image that is done, or should be, developed again."""
        self.asked.add(image_id)

        def body() -> None:
            world = self.worlds["operator"]
            with suppress(Retryable, NotRedoable):  # the operator sees this, and may repeat it
                redo_image(world.ports(RedoImagePorts), image_id)
                self.counts.replays["redone by its row"] += 1

        self.start("redo", body, **how)

    def add_variants(self, image_id: str, addition: int, key: str | None, **how: Any) -> None:
        """A client asks for more variants; something was promised only if it was answered."""
        order, row = order_of(recipe=ADDITIONS[addition]), self.images.rows[image_id]
        self.asked.add(image_id)

        def body() -> None:
            ports = self.worlds["client"].ports(AddVariantsPorts)
            request = VariantsRequest(
                image_id=image_id, order=order, tenant_id=row.tenant_id, correlation_id="", idempotency_key=key
            )
            try:
                added = add_variants(ports, request)
            except (Retryable, NotDone):
                return  # a legitimate 503, or 409
            except UnknownImage:
                must(self.images.rows[image_id].is_deleted, "lost", "an image is unknown once it is deleted")
                return
            except Rejected as refusal:
                must(refusal.code == "idempotency_key_reused", "lost", "a good request is refused for its key alone")
                return
            self.counts.replays["variants asked for again" if added.replayed else "variants asked for"] += 1
            if not added.replayed:
                names = {spec.name for spec in order.recipe.variants}
                self.added[image_id, added.image.works[-1].run] = names

        self.start("add variants", body, **how)

    def change_visibility(self, image_id: str, exposed: Visibility, **how: Any) -> None:
        """A client wants others to see an image that nobody sees, or nobody one that others see."""
        row = self.images.rows[image_id]
        wanted, tenant = exposed if row.visibility is Visibility.PRIVATE else Visibility.PRIVATE, row.tenant_id
        self.asked.add(image_id)

        def body() -> None:
            ports = self.worlds["client"].ports(ChangeVisibilityPorts)
            try:
                change_visibility(ports, image_id, wanted, tenant_id=tenant, tier=Tier.FREE)
            except (Retryable, NotDone):
                return  # a legitimate 503, or 409
            except UnknownImage:
                must(self.images.rows[image_id].is_deleted, "lost", "an image is unknown once it is deleted")

        self.start("change visibility", body, **how)

    def lose_output(self, image_id: str) -> None:
        """Somebody removes an object of an image, bypassing Darkroom."""
        for variant in self.images.rows[image_id].variants[:1]:
            self.outputs.objects.pop(variant.key, None)
            self.lost[variant.key] = image_id

    def drop(self, queue: str, *, force: bool, **how: Any) -> None:
        """An operator removes the dead letters that are of no use any more, or with `force` all of them."""

        def body() -> None:
            if force:
                self.dropped |= set(self._dead_letters())
            world = self.worlds["operator"]
            counts = ReplayCounts()
            with suppress(Retryable):
                ports = world.ports(DropDeadLettersPorts)
                drop_dead_letters(ports, queue, EVERYTHING, force=force, stop=lambda: False, counts=counts)
            self.counts.replays.update(counts.counts)

        self.start("drop", body, **how)

    def pass_time(self, seconds: int) -> None:
        super().pass_time(seconds)
        for queue in self.dead_letters.queues:
            # SQS continues a move whether or not anybody looks, and ends it when the queue is empty.
            while (redrive := self.redrives.latest(queue)) is not None and redrive.status is RedriveStatus.RUNNING:
                pass

    def drain(self) -> None:
        for message in self.lanes.visible():
            self.deliver(message)

    def mend(self) -> None:
        """The fix is deployed: from now on every valid photo can be developed."""
        self.mended = self.was_mended = True

    def lose_original(self, image_id: str) -> None:
        """Somebody permanently removes it from its bucket."""
        self.without_original.add(image_id)
        self.originals.objects.pop(image_id, None)

    def skew(self, role: Role, seconds: int) -> None:
        self.skews[role] = seconds
        self.was_skewed = self.was_skewed or seconds != 0
        self._tell_time()

    # ── What must hold ───────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        for row in self.images.rows.values():
            if row.status.is_terminal:
                owed = row.is_deleted or row.dead_letter in (DeadLetterState.OWED, DeadLetterState.PLACED)
                must(row.waiting_since is None, "stuck", "nobody waits for what has ended")
                must(owed or row.due_at is None, "stuck", "nobody looks again at what has ended and owes nothing")
                # `dlq ls` finds what has no dead letter yet by its look, which is due within an hour.
                is_coming = row.dead_letter is DeadLetterState.OWED
                is_seen = row.due_at is not None and row.due_at <= self.now + _SEEN_MILLISECONDS
                must(is_seen or not is_coming, "stuck", "an operator sees what was given up")
            else:
                must(row.due_at is not None, "stuck", "somebody looks again at whatever is unfinished")
                must(row.waiting_since is not None, "stuck", "whatever is unfinished is measured")
            if row.variants or (row.outcome is Status.DONE and not row.is_deleted):
                self._check_outputs(row)
            numbers = [attempt.number for attempt in row.attempts if attempt.run == row.run]
            must(
                row.is_deleted or numbers == list(range(1, row.attempt + 1)),
                "lost",
                "a row describes every attempt of its run",
            )
        for image_id in self.accepted:
            must(image_id in self.images.rows, "lost", "whatever was accepted has a row")
        for image_id in self.withdrawn:
            must(self.images.rows[image_id].is_deleted, "doubled", "what was withdrawn stays so")
        for image_ids in self.reused:
            rows = [self.images.rows[image_id] for image_id in image_ids if image_id in self.images.rows]
            there = [row for row in rows if row.run == 1 and row.outcome is not Status.FAILED and not row.is_deleted]
            must(len(there) <= 1, "doubled", "a photo that is to be reused is one image while it is there")
        self.images.check_planted()

    def _check_outputs(self, row: Image) -> None:
        wanted = self._undisturbed(row)
        made_by = {row.outcome_run, *(work.run for work in row.works if work.ended_at and not work.failed)}
        must({variant.name for variant in row.variants} == set(wanted), "differing", "all variants are there")
        for variant in row.variants:
            body = self.outputs.objects.get(variant.key)
            must(run_of_key(variant.key) in made_by, "differing", "outputs are of runs that are done")
            if body is None and variant.key in self.lost:
                continue
            must(body is not None, "lost", "whatever was done has its outputs, until another run has made others")
            must(body == wanted[variant.name], "differing", "outputs are the bytes that an undisturbed run makes")
            must(variant.sha256 == _sha256(body or b""), "differing", "the row tells the truth about its outputs")

    def _undisturbed(self, row: Image) -> dict[str, bytes]:
        """What runs make of each variant, whether it was there first, was added or is made again."""
        original = next(photo.body for photo in self.engine.photos if _sha256(photo.body) == row.source.sha256)
        return {
            rendered.name: rendered.body
            for recipe in together(() if row.recipe is None else (row.recipe, *row.added))
            for rendered in self.engine.develop(
                original, recipe, limits=Limits(), effort="balanced", beside=leading(row, recipe)
            ).variants
        }

    def settle(self) -> None:
        for process in self.stopped:
            process.die()
        self._end_processes()
        self.surroundings.land()
        self.surroundings.down.clear()
        self.images.lagging, self.lanes.crowd = None, 0
        self.skews = dict.fromkeys(ROLES, 0)
        self._tell_time()
        began = self.now
        for _ in range(_ROUNDS):
            while visible := self.lanes.visible():
                for message in visible:
                    self.deliver(message)
            self.sweep()
            self.check()
            if (seconds := self._seconds_to_next_event()) is None:
                break
            self.pass_time(seconds)
        else:
            raise Broken("stuck", f"no rest after {_ROUNDS} sweeps: {self._unrest()}")
        must(self.now - began <= _DRAIN_MILLISECONDS, "stuck", "it comes to rest within two days")
        self._check_at_rest()

    def _seconds_to_next_event(self) -> int | None:
        """The time until the next sweep that finds anything, or until the next message is visible; None if neither."""
        instants = [message.visible_at for message in self.lanes.messages]
        instants += [row.due_at for row in self.images.rows.values() if row.due_at is not None]
        if not instants:
            return None
        return 60 * max(1, -(-(min(instants) - self.now) // _MINUTE))

    def _unrest(self) -> str:
        due = [row for row in self.images.rows.values() if row.due_at is not None]
        return f"messages {self.lanes.messages}, due {due}"

    def _check_at_rest(self) -> None:
        dead_letters = self._dead_letters()
        for image_id in set(self.lost.values()):
            row = self.images.rows[image_id]
            is_whole = bool(row.variants) and all(variant.key in self.outputs.objects for variant in row.variants)
            self.counts.rules["make again what was lost"] += is_whole
        for tenant in TENANTS:
            for reference in (None, REFERENCE):
                self._check_list(tenant, self.images, reference)
        for row in self.images.rows.values():
            must(row.status.is_terminal, "stuck", "whatever has a row comes to an end")
            ending = row.status.value if row.failed_work is None else "work failed"
            self.counts.endings[ending if row.failure is None else f"{ending}: {row.failure.code}"] += 1
            self._check_ending(row)
            self._check_exposure(row)
            about = dead_letters.get((row.image_id, row.run), [])
            if row.is_deleted:
                left = [key for key in self.outputs.objects if key.split("/")[1] == row.image_id]
                must(not left, "stuck", "what was withdrawn leaves no outputs")
                must(row.image_id not in self.originals.objects, "stuck", "what was withdrawn leaves no original")
                must(row.forget_at is not None, "stuck", "a tombstone is forgotten one day")
                remembered = [key for key in self.once.results if key.startswith(row.image_id)]
                must(not remembered, "stuck", "nothing remembers the work on what was withdrawn")
                must(not told_by(row), "stuck", "a tombstone says nothing about the picture")
            elif row.dead_letter is not None:
                must(row.dead_letter is DeadLetterState.KEPT, "stuck", "a dead letter is made sure of")
                timely = [dead_letter for dead_letter in about if dead_letter.message_id not in self.dead_letters.late]
                must(len(timely) <= 1, "doubled", "a given-up run has one dead letter")
                dropped = (row.image_id, row.run) in self.dropped
                must(dropped or len(about) >= 1, "lost", "a given-up run has a dead letter")
            else:
                explained = [dead_letter for dead_letter in about if dead_letter.explanation is not None]
                must(not explained, "doubled", "what was not given up has no dead letter but a settled one")
        self._check_added()
        for about in dead_letters.values():
            explained = [dead_letter for dead_letter in about if dead_letter.explanation is not None]
            must(len(explained) <= 1, "doubled", "no run has two explained dead letters")

    def _check_added(self) -> None:
        for (image_id, run), names in self.added.items():
            row = self.images.rows[image_id]
            work = next((work for work in row.works if work.run == run), None)
            is_there = work is not None and names <= {variant.name for variant in row.variants}
            is_told = work is not None and work.failed and work.error is not None
            must(row.is_deleted or is_there or is_told, "lost", "promised variants are there, or said to have failed")

    def _check_exposure(self, row: Image) -> None:
        """Of earlier runs, too: their addresses are permanent while an image is seen by the same people."""
        for key in self.outputs.objects if not self.was_skewed else ():
            of_whom = visibility_of_key(key)
            is_right = of_whom in (Visibility.PRIVATE, row.visibility) or key.split("/")[1] != row.image_id
            must(is_right, "stuck", "nothing lies where an edge reads it for others than its client wants")

    def _may_remove(self, key: str) -> bool:
        row = self.images.rows[key.split("/")[1]]
        is_moved = len(row.visibilities) > 1 and key not in {variant.key for variant in row.variants}
        return row.is_deleted or is_moved

    def _check_ending(self, row: Image) -> None:
        if row.is_deleted:
            return  # its tombstone no longer says what it was or why it failed
        kind = next(photo.kind for photo in self.engine.photos if _sha256(photo.body) == row.source.sha256)
        if row.failed_work is not None and TRIPPING in names_of_work(row, row.failed_work):
            kind = "poison"
        must(row.status in (Status.DONE, Status.FAILED), "lost", "only its client cancels an image")
        if row.failure is None:
            must(kind == "good" or (self.was_mended and kind != "refused"), "differing", "only photos are developed")
        if row.status is Status.FAILED or row.failed_work is not None:
            code = None if row.failure is None else row.failure.code
            must(code in (INTERNAL, WORKER_LOST, REFUSAL, ORIGINAL_MISSING), "lost", "a failure says why")
            is_missing = row.image_id in self.without_original
            must(code != ORIGINAL_MISSING or is_missing, "lost", "only a missing original is called so")
            if kind == "good" and code != ORIGINAL_MISSING and not self.was_skewed:
                is_lost = row.image_id in self.lost.values() and row.failed_work is not None
                excused = is_lost or all(process.is_struck for process in self.attempts[row.image_id, row.run])
                must(excused, "lost", "a good image fails only where something befell each of its attempts")
            must(code != REFUSAL or kind == "refused", "lost", "no photo is refused that can be developed")
            owed = code != REFUSAL
            must(owed == (row.dead_letter is not None), "lost", "what was given up has a dead letter, and no other")

    def _lease_is_over(self, row: Image) -> bool:
        """If the workers' clocks differ, one may take a live lease for a lapsed one: then the fence decides."""
        return self.was_skewed or row.lease_until is None or row.lease_until < self.now

    def _may_begin(self, ended: Image) -> bool:
        """A replay follows a failure. Other work does not before that has its dead letter, or nobody would learn of
        it."""
        running = self.surroundings.running
        if (running is None or running.name == "replay") and ended.failure is not None:  # None: it comes late
            return True
        is_free = ended.status is Status.DONE and ended.dead_letter is not DeadLetterState.OWED
        return is_free and ended.image_id in self.asked

    def _on_claim(self, before: Image, after: Image) -> None:
        if self.surroundings.running is not None:
            self.attempts.setdefault((after.image_id, after.run), []).append(self.surroundings.running)
        if before.attempt and not self.was_skewed:
            earlier, latest = after.attempts[-2:]
            waited_seconds = (latest.started_at - earlier.started_at) / 1000
            least = RetryPolicy().delay_seconds(before.attempt, 0)
            must(waited_seconds >= least, "lost", "no message begins an attempt before the backoff is over")

    def _is_kept(self, message: Message) -> bool:
        row = self.images.rows.get(message.image_id)
        return row is not None and row.run == message.run and row.dead_letter is DeadLetterState.KEPT

    def _belongs_to(self, tenant: str, image_id: str) -> bool:
        return self.images.rows[image_id].tenant_id == tenant

    def _dead_letters(self) -> dict[tuple[str, int], list[DeadLetter]]:
        by_run: dict[tuple[str, int], list[DeadLetter]] = {}
        for dead_letter in self.dead_letters.all():
            if read_rejected_message(dead_letter.body) is not None:
                continue  # about no image
            message = read_message(dead_letter.body)
            by_run.setdefault((message.image_id, message.run), []).append(dead_letter)
        return by_run

    # ── Wiring ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _world(self) -> World:
        struck = self.surroundings.around
        keys, lanes = struck("message_keys", KEYS), struck("lanes", self.lanes)
        dead_letters = struck("dead_letters", self.dead_letters)
        self._checking = CheckPorts(message_keys=keys, rejected_messages=dead_letters)
        return World(
            images=struck("images", self.images),
            originals=struck("originals", self.originals),
            outputs=struck("outputs", self.outputs),
            lanes=SigningLanes(lanes=lanes, keys=keys, clock=lambda: self.now),
            dead_letters=dead_letters,
            once=self.once,
            stale_edge=struck("edge", self.edge),
            delivers=True,
        )

    def _call(self, store: str, name: str, call: Callable[[], Any]) -> Any:
        return self.surroundings.call(f"{store}.{name}", (), {}, call)

    def _developing(self, original: bytes, recipe: Recipe, **options: Any) -> AbstractContextManager[Developing]:
        self._call("engine", "develop", lambda: None)
        kind = self.engine.kind_of(original)
        if kind == "killer" and not self.mended:
            raise ProcessDied
        is_tripping = kind == "poison" or any(spec.name == TRIPPING for spec in recipe.variants)
        if is_tripping and not self.mended:
            raise ZeroDivisionError("a bug")
        return already(self.engine.develop(original, recipe, **options))

    def _tell_time(self) -> None:
        self.dead_letters.now = self.now
        for role, world in self.worlds.items():
            world.now = self.now + self.skews[role] * 1000


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
