"""One rehearsal of a plan on a stack: send and disturb everything, move time on, and report the result."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from darkroom.aws.dead_letters.dead_letters import EXPLANATION
from darkroom.aws.images.images_table import from_item
from darkroom.domain.images.image import TERMINAL, Image, Status, run_key
from darkroom.domain.images.stored_by import original_key
from darkroom.domain.kernel.message import Message, UnreadableMessage
from darkroom.domain.schedules.hold import HeldMessage
from darkroom.domain.uploads.upload_notification import read_dead_letter, upload_key
from tests.chaos import comparison
from tests.chaos.clients import CLIENTS, TENANTS, Client, SendResult
from tests.chaos.comparison import Life
from tests.chaos.machinery import (
    STRUCK,
    Clock,
    Death,
    Queues,
    Records,
    Strikes,
    emulator_of,
    image_id_of,
    pause,
)
from tests.chaos.plan import PHOTOS, Plan, Sending, Way, release_strike
from tests.chaos.poison import (
    DEAD_LETTERS,
    FETCH_QUEUE,
    HOLD_QUEUE,
    LANE_QUEUES,
    UPLOAD_QUEUE,
    BadWebhooks,
    DamagedBatch,
    Poison,
    bad_row,
    bad_webhooks,
    damaged_batches,
    poison_of_batches,
    poisons,
    upload_notification,
)
from tests.support.running.clock import rfc3339
from tests.support.running.conditions import ACCEPTOR, FETCHER, HOLDER, SWEEPER, TRANSCODER, UPLOAD_ACCEPTOR
from tests.support.running.kills import ticks
from tests.support.running.load import ACCEPTED, Answer, Photo, photos
from tests.support.running.outcome import Evidence, Outcome, Prints, ends_of, outcome_of
from tests.support.running.source import shown
from tests.support.running.stack import Stack

VISIBILITY_SECONDS = {TRANSCODER: 360, UPLOAD_ACCEPTOR: 360, FETCHER: 540, HOLDER: 420}
"""How long a function's queue hides the messages that its process died with."""

DEADLINE_AHEAD_SECONDS = 55
"""How long the worker of a stale record may still run: a function's minute, less the time until it began its work."""

RECEIVES = 5
"""How often a rehearsal lets the hold queue deliver a message: as often as all others. Its own fifty deliveries, seven
minutes apart, would outlast every rehearsal."""

STEP_SECONDS, STEPS, LONGER_STEP_SECONDS = 20, 30, 120
"""How far the clock is moved towards something overdue with no known event; after so many steps, further at a time."""

HOPELESS_SECONDS = 25 * 60
"""How long the clock is moved in steps for one image: the sweeper sends what is overdue after twenty minutes."""

ROUNDS = 16
"""How often time is moved on until the poison has ended: five receives, eight minutes apart, and executions that retry
for half an hour."""

_DELAYS = (
    *("message not sent", "notification postponed", "fetch postponed"),
    *("delivery postponed", "delivery failed", "attempt failed"),
)
"""What the functions log of an image that must wait then, for a retry or for the sweeper."""

_GIVEN_SECONDS = 120
"""How long in all a slow machine is waited for: an image that is late by a defect costs so much once."""

_ROUND_SECONDS = 8 * 60 + 2
_RECOVERY_SECONDS = 30
"""How long after a pause circuits may still be open."""

_REST_LOOK_SECONDS, _REST_LOOKS, _REST_PATIENCE_SECONDS, _LONGEST_LOOK = 0.4, 3, 45, 8.0
_CROWDED, _CROWD_PATIENCE_SECONDS = 8, 10
_BASELINE_PATIENCE_SECONDS = 300


class Kind:
    """The kinds of disturbance besides the images: each can be left out."""

    KILLS, PAUSES, DUPLICATES, POISON = "kills", "pauses", "duplicates", "poison"
    ALL = (KILLS, PAUSES, DUPLICATES, POISON)


@dataclass(frozen=True, kw_only=True)
class Account:
    """The result of a rehearsal. Its tuples of sentences say what is wrong; `failed` are among the outcome's lost."""

    outcome: Outcome
    lives: Mapping[int, Life]
    accepted: int
    failed: tuple[str, ...]
    doubled: tuple[str, ...]
    dead_letters: tuple[str, ...]
    misrouted: tuple[str, ...]
    rows_touched: tuple[str, ...]
    lists_refused: tuple[str, ...]
    deaths: Counter[str]
    pauses: int
    duplicates: int
    repetitions: int
    poison: int
    stale_records: int
    stale_attempts: int
    postponed: int
    longest_gap_seconds: float
    sweeps: int
    seconds: float

    @property
    def broken(self) -> list[str]:
        """Every broken promise."""
        return [
            *self.outcome.broken,
            *self.doubled,
            *self.dead_letters,
            *self.misrouted,
            *self.rows_touched,
            *self.lists_refused,
        ]


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """What a stack makes of each photo in each lane undisturbed."""

    photos: Sequence[Photo]
    prints: Prints


def photo_in_lane(lane: str, photo: Photo) -> Photo:
    """The photo, named by photo and lane: lanes differ in their encoders' effort."""
    return Photo(name=f"{lane} {photo.name}", body=photo.body)


@dataclass(kw_only=True)
class Stage:
    """A stack with its clients, and the outputs it makes undisturbed."""

    stack: Stack
    clients: Mapping[str, Client]
    clock: Clock
    queues: Queues
    records: Records
    strikes: Strikes
    undisturbed: Undisturbed


@contextmanager
def stage_of(stack: Stack, strikes: Strikes) -> Iterator[Stage]:
    """Prepare a stack whose functions can be struck."""
    clock, queues = Clock(stack), Queues(stack)
    queues.give_up_after(HOLD_QUEUE, RECEIVES)
    with ExitStack() as ends:
        samples = photos(PHOTOS)
        source = ends.enter_context(shown({f"/{photo.name}": photo.body for photo in samples}))
        clients = {lane: Client(stack, lane, source=source, now=clock.now) for lane in TENANTS}
        for client in clients.values():
            ends.callback(client.close)
        records = Records(stack)
        undisturbed = _undisturbed(stack, clients, samples)
        yield Stage(
            stack=stack,
            clients=clients,
            clock=clock,
            queues=queues,
            records=records,
            strikes=strikes,
            undisturbed=undisturbed,
        )


def _undisturbed(stack: Stack, clients: Mapping[str, Client], samples: Sequence[Photo]) -> Undisturbed:
    lane_photos: dict[str, Photo] = {}
    with ThreadPoolExecutor(CLIENTS) as pool:

        def send(lane: str, photo: Photo) -> None:
            sending = Sending(number=0, lane=lane, way=Way.DIRECT, photo=0)
            answer = clients[lane].send(sending, photo, key=f"undisturbed {photo.name}", process_at=None)
            lane_photos[answer.image_id] = photo_in_lane(lane, photo)

        for future in [pool.submit(send, lane, photo) for lane in clients for photo in samples]:
            future.result()
    deadline = time.monotonic() + _BASELINE_PATIENCE_SECONDS
    while len(rows := [row for row in stack.rows() if row.image_id in lane_photos and row.status is Status.DONE]) < len(
        lane_photos
    ):
        if time.monotonic() > deadline:
            raise TimeoutError("undisturbed photos are not done")
        time.sleep(0.5)
    evidence = Evidence(rows={row.image_id: row for row in rows}, tags=stack.entity_tags(), ends={}, messages=0)
    return Undisturbed(
        photos=samples,
        prints={photo.name: evidence.prints(image_id) for image_id, photo in lane_photos.items()},
    )


@dataclass(kw_only=True)
class _Watch:
    """What has been seen of the rows so far."""

    open: dict[str, dict[str, Any]] = field(default_factory=dict)
    first_versions: dict[str, int] = field(default_factory=dict)


class Rehearsal:
    """A plan in progress. `kinds` are the disturbances."""

    def __init__(
        self, stage: Stage, plan: Plan, *, kinds: frozenset[str], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._stage, self._plan, self._kinds, self._tell = stage, plan, kinds, tell
        self._stack, self._clock, self._queues = stage.stack, stage.clock, stage.queues
        self._name = f"{'with' if Kind.POISON in kinds else 'without'}-{plan.seed}"
        self._began = self._clock.now()
        self._instants = [self._began - self._began % 1000 + seconds * 1000 for seconds in plan.instants_seconds]
        self._results: dict[int, SendResult] = {}
        self._by_id: dict[str, Sending] = {}
        self._swept_at = self._began
        self._watch = _Watch()
        self._pauses: list[tuple[int, int]] = []
        self._bad_rows: dict[str, dict[str, Any]] = {}
        self._bad_webhooks: list[BadWebhooks] = []
        self._batches: tuple[DamagedBatch, ...] = ()
        self._poison: list[Poison] = []
        self._duplicates = self._repetitions = self._stale = 0
        self._lock = threading.Lock()
        self._crowded = {lane: threading.Event() for lane in LANE_QUEUES}

    # ── The whole of it ──────────────────────────────────────────────────────────────────────────────────────────────

    def perform(self) -> Account:
        """Carry out the plan, and return the account."""
        started = time.monotonic()
        self._stage.strikes.clear()
        if self._has(Kind.POISON):
            self._poison = list(poisons(self._plan.seed, now=self._began))
        self._tell(f"sending {len(self._plan.sendings)} images")
        self._send_all()
        self._tell("going on until all have come to their end")
        self._drive()
        self._tell("sending copies of what is over, and letting the poison come to its end")
        self._send_late_copies()
        self._end_poison()
        self._tell("making the account")
        return self._account(time.monotonic() - started)

    def _has(self, kind: str) -> bool:
        return kind in self._kinds

    # ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _send_all(self) -> None:
        done = threading.Event()
        watcher = threading.Thread(target=self._watch_crowds, args=(done,), name="crowds", daemon=True)
        disturber = threading.Thread(target=self._disturb, args=(done,), name="disturber", daemon=True)
        watcher.start()
        disturber.start()
        try:
            with ThreadPoolExecutor(CLIENTS, thread_name_prefix="client") as pool:
                for future in [pool.submit(self._send, sending) for sending in self._plan.sendings]:
                    future.result()
        finally:
            done.set()
            watcher.join()
            disturber.join()

    def _watch_crowds(self, done: threading.Event) -> None:
        """Keep lanes' backlogs short, so that waits are due to the disturbances and not to the machine."""
        while not done.wait(0.2):
            for lane, name in LANE_QUEUES.items():
                if self._queues.visible(name) >= _CROWDED:
                    self._crowded[lane].set()
                else:
                    self._crowded[lane].clear()

    def _send(self, sending: Sending) -> None:
        client, lane = self._stage.clients[sending.lane], sending.lane
        deadline = time.monotonic() + _CROWD_PATIENCE_SECONDS
        while self._crowded[lane].is_set() and time.monotonic() < deadline:
            time.sleep(0.1)
        key = f"{self._name}-{sending.number}"
        image_id = client.image_id(key)
        self._by_id[image_id] = sending
        strike = sending.strike if self._has(Kind.KILLS) else None
        if strike is not None:
            self._stage.strikes.lay(strike, key if strike.function == ACCEPTOR else image_id)
        if sending.is_stale and self._has(Kind.POISON):
            self._stage.records.leave(
                run_key(image_id, 1),
                runs_until=self._clock.now() + DEADLINE_AHEAD_SECONDS * 1000,
            )
            self._stale += 1
        process_at = None if sending.instant is None else self._instants[sending.instant]
        if not self._has(Kind.DUPLICATES):
            sending = _once(sending)
        result = client.send(sending, self._stage.undisturbed.photos[sending.photo], key=key, process_at=process_at)
        if sending.is_doomed:
            self._remove_original(image_id)
        if result.is_accepted:
            self._send_copies(sending, result, sending.copies_at_once)
        with self._lock:
            self._results[sending.number] = result
            self._repetitions += sending.repetitions + result.refused

    def _remove_original(self, image_id: str) -> None:
        s3, bucket = self._stack.client("s3"), self._stack.output("OriginalsBucketName")
        listed = s3.list_object_versions(Bucket=bucket, Prefix=original_key(image_id))
        for version in listed.get("Versions", ()):
            s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])

    def _send_copies(self, sending: Sending, result: SendResult, copies: int) -> None:
        tenant = TENANTS[sending.lane][0]
        message = Message(image_id=result.image_id, tenant_id=tenant, lane=sending.lane, run=1, schedule=0)
        lane = LANE_QUEUES[sending.lane]
        for number in range(copies):
            if sending.way is Way.SCHEDULED and number % 3 < 2:
                held = message.model_copy(update={"process_at": self._instants[sending.instant or 0]})
                self._queues.send(HOLD_QUEUE, held.model_dump_json(), tenant)
            elif sending.way is Way.FORM and number % 3 < 2:
                body = (
                    upload_notification(upload_key(result.image_id)) if number % 2 == 0 else message.model_dump_json()
                )
                self._queues.send(UPLOAD_QUEUE, body, tenant)
            elif sending.way is Way.FETCHED and number % 3 < 2:
                self._queues.send(FETCH_QUEUE, message.model_dump_json(), tenant)
            else:
                self._queues.send(lane, message.model_dump_json(), tenant)
        with self._lock:
            self._duplicates += copies

    def _send_late_copies(self) -> None:
        if not self._has(Kind.DUPLICATES):
            return
        for sending in self._plan.sendings:
            result = self._results[sending.number]
            if result.is_accepted and not sending.is_doomed:
                self._send_copies(sending, result, sending.copies_later)
        self._rest()

    # ── Disturbing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _disturb(self, done: threading.Event) -> None:
        """Do whatever is due once so many images are answered: strike, pause, poison."""
        plan, images = self._plan, len(self._plan.sendings)
        events: list[tuple[int, Callable[[], None]]] = []
        if self._has(Kind.KILLS):
            for at, strike in plan.strikes:
                events.append((at, partial(self._stage.strikes.lay, strike, "")))
        if self._has(Kind.PAUSES):
            for pause_ in plan.pauses:
                if pause_.at_image is not None:
                    events.append((pause_.at_image, partial(self._pause, pause_.seconds)))
        if self._has(Kind.POISON):
            held = [poison for poison in self._poison if poison.queue == HOLD_QUEUE]
            others = [poison for poison in self._poison if poison.queue != HOLD_QUEUE]
            # Held poison while scheduled images are sent, the rest while the others are.
            for number, poison in enumerate(held):
                events.append((number * plan.scheduled // len(held), partial(self._put, poison)))
            for number, poison in enumerate(others):
                at = plan.scheduled + number * (images - plan.scheduled) * 3 // 4 // len(others)
                events.append((at, partial(self._put, poison)))
            events.append((plan.scheduled, self._put_bad_rows))
            events.append((plan.scheduled, self._put_damaged_batches))
        for at, event in sorted(events, key=lambda event: event[0]):
            while len(self._results) < at and not done.wait(0.05):
                pass
            event()

    def _pause(self, seconds: float) -> None:
        began = self._clock.now()
        pause(emulator_of(self._stack.state), seconds)
        self._pauses.append((began, self._clock.now() + _RECOVERY_SECONDS * 1000))

    def _put(self, poison: Poison) -> None:
        # In the groups of the images that must not notice it.
        lane = next((lane for lane, name in LANE_QUEUES.items() if name == poison.queue), "slow")
        self._queues.send(poison.queue, poison.body, TENANTS[lane][0])

    def _put_bad_rows(self) -> None:
        wanted = set(TENANTS)
        for item in self._stack.items():
            lane = item["lane"]["S"]
            if lane in wanted and image_id_of(item) in self._by_id:
                wanted.discard(lane)
                bad = bad_row(item, seed=self._plan.seed, now=self._clock.now(), lane=lane)
                self._stack.client("dynamodb").put_item(TableName=self._stack.output("ImagesTableName"), Item=bad)
                self._bad_rows[image_id_of(bad)] = bad
                self._put_bad_webhooks(item["tenant_id"]["S"])

    def _put_bad_webhooks(self, tenant_id: str) -> None:
        bad = bad_webhooks(self._plan.seed, tenant_id=tenant_id, now=self._clock.now())
        for output, items in (
            ("DeliveriesTableName", (bad.probe, bad.waiting)),
            ("EndpointsTableName", (bad.unreadable, bad.sibling, bad.resting)),
        ):
            for item in items:
                self._stack.client("dynamodb").put_item(TableName=self._stack.output(output), Item=item)
        self._bad_webhooks.append(bad)

    def _put_damaged_batches(self) -> None:
        wake_at = -(-self._clock.now() // 1000) * 1000 + 20_000
        neighbour = next(
            sending for sending in self._plan.sendings if sending.way is Way.SCHEDULED and sending.instant == 0
        )
        client = self._stage.clients[neighbour.lane]
        message = Message(
            image_id=client.image_id(f"{self._name}-{neighbour.number}"),
            tenant_id=client.tenant,
            lane=neighbour.lane,
            run=1,
            schedule=0,
        )
        self._batches = damaged_batches(
            self._plan.seed, wake_at=wake_at, neighbour=HeldMessage(message=message, process_at=self._instants[0])
        )
        for batch in self._batches:
            self._stack.client("s3").put_object(
                Bucket=self._stack.output("HoldsBucketName"), Key=batch.key, Body=batch.dumped
            )
            written = {"key": batch.key, "position": 0, "begins_at": None, "wake_at": rfc3339(wake_at // 1000)}
            self._stack.client("stepfunctions").start_execution(
                stateMachineArn=self._stack.output("HoldBatchStateMachineArn"),
                name=batch.execution,
                input=json.dumps(written, sort_keys=True),
            )
        for poison in poison_of_batches(self._batches):
            self._poison.append(poison)
            self._put(poison)

    # ── Going on ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _drive(self) -> None:
        """Move the clock from event to event, whenever the stack is at rest, until all images have ended."""
        steps, instants_passed, given_seconds = 0, set[int](), 0.0
        while True:
            self._rest()
            self._look()
            began = time.monotonic()
            while given_seconds + time.monotonic() - began < _GIVEN_SECONDS and self._is_any_at_work():
                time.sleep(_REST_LOOK_SECONDS)
                self._look()
            given_seconds += time.monotonic() - began
            now = self._clock.now()
            if not self._watch.open:
                break
            for number, instant in enumerate(self._instants):
                if number not in instants_passed and instant - comparison.LEAD_SECONDS * 1000 <= now:
                    instants_passed.add(number)
                    self._tell(
                        f"coming to time {number + 1} of {len(self._instants)}: {len(self._watch.open)} are open"
                    )
                    self._disturb_instant(number)
            returns, is_overdue = self._expected(now)
            steps = steps + 1 if is_overdue else 0
            step_seconds = STEP_SECONDS if steps <= STEPS else LONGER_STEP_SECONDS
            moment = comparison.next_moment(
                now,
                instants=self._instants,
                wakes=self._wakes(),
                returns=returns,
                is_gathering=self._queues.visible(HOLD_QUEUE) > 0,
                step_seconds=step_seconds if is_overdue else None,
            )
            if moment is None:
                break
            self._go_to(moment)
        self._tell(f"{len(self._watch.open)} images have not ended")

    def _disturb_instant(self, number: int) -> None:
        if self._has(Kind.KILLS) and number in self._plan.releases_struck:
            self._stage.strikes.lay(release_strike(self._plan.seed, number), "")
        for planned in self._plan.pauses if self._has(Kind.PAUSES) else ():
            if planned.at_instant == number:
                # When its messages become visible in their lanes.
                self._go_to(self._instants[number])
                self._pause(planned.seconds)

    def _go_to(self, instant: int) -> None:
        """Move the clock, and run the sweeper if a minute has passed: the embedded stack checks its schedules only
        every ten seconds of this machine's time."""
        self._clock.go_to(instant)
        if self._clock.now() - self._swept_at >= comparison.SWEEP_SECONDS * 1000:
            self._swept_at = self._clock.now()
            self._stack.sweep()

    def _rest(self) -> None:
        """Wait until no function works and nothing can be received."""
        deadline, calm, before = time.monotonic() + _REST_PATIENCE_SECONDS, 0, -1
        while calm < _REST_LOOKS and time.monotonic() < deadline:
            # If others use the processors too, it takes longer for work to show.
            crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
            time.sleep(_REST_LOOK_SECONDS * min(max(crowd, 1.0), _LONGEST_LOOK))
            now = ticks(self._stack.state, frozenset(STRUCK))
            is_calm = (
                now is not None
                and now == before
                and not self._queues.visible(*LANE_QUEUES.values(), UPLOAD_QUEUE, FETCH_QUEUE)
            )
            calm, before = calm + 1 if is_calm else 0, -1 if now is None else now

    def _look(self) -> None:
        """See which images have ended, at which version of their rows, and which have not."""
        wanted = "image_id, #status, version, lane, process_at, created_at, enqueued_at"
        for item in self._stack.items(ProjectionExpression=wanted, ExpressionAttributeNames={"#status": "status"}):
            image_id = image_id_of(item)
            if image_id not in self._by_id:
                continue
            if Status(item["status"]["S"]) in TERMINAL:
                self._watch.first_versions.setdefault(image_id, int(item["version"]["N"]))
                self._watch.open.pop(image_id, None)
            else:
                self._watch.open[image_id] = item

    def _is_any_at_work(self) -> bool:
        """Whether there are open images that nothing holds up but a slow machine: if the clock were moved now, they
        would seem late."""
        deaths = self._stage.strikes.deaths()
        held_up = {image_id for death in deaths for image_id in death.image_ids} | self._delays().keys()
        tokens = {death.token for death in deaths}
        return any(
            sending.is_neighbour
            and sending.way is not Way.SCHEDULED
            and image_id not in held_up
            and f"{self._name}-{sending.number}" not in tokens
            for image_id, sending in self._by_id.items()
            if image_id in self._watch.open
        )

    def _expected(self, now: int) -> tuple[list[int], bool]:
        """When known hidden messages return, and whether any image is overdue without a known event."""
        returns, known = [], set[str]()
        for death in self._stage.strikes.deaths():
            if death.function in VISIBILITY_SECONDS:
                back = death.at + (VISIBILITY_SECONDS[death.function] + 2) * 1000
                if back > now:
                    returns.append(back)
                    known.update(death.image_ids)
        is_overdue = False
        for image_id, item in self._watch.open.items():
            back = int(item.get("enqueued_at", {"N": "0"})["N"])
            begins = int(item.get("process_at", item["created_at"])["N"])
            if begins > now or image_id in known:
                continue
            if back > now:
                returns.append(back + 1000)
            elif now - begins < HOPELESS_SECONDS * 1000:
                is_overdue = True
        return returns, is_overdue

    def _wakes(self) -> list[int]:
        """When intact batches wake."""
        damaged = {batch.key for batch in self._batches}
        wakes = []
        for key in self._stack.holds():
            if key not in damaged:
                day, _, hour = key.split("/")[1].partition("T")
                try:
                    wakes.append(round(datetime.fromisoformat(f"{day}T{hour.replace('-', ':')}").timestamp() * 1000))
                except ValueError:  # a year that only poison has
                    continue
        return [wake_at for wake_at in wakes if wake_at < self._instants[-1]]

    def _end_poison(self) -> None:
        for _ in range(ROUNDS):
            self._rest()
            left = sum(self._stack.messages(name) for name in DEAD_LETTERS)
            if not left and not self._running_batches() and not self._owed_dead_letters():
                break
            self._go_to(self._clock.now() + _ROUND_SECONDS * 1000)
        self._stage.strikes.lift()

    def _running_batches(self) -> list[str]:
        names = {batch.execution for batch in self._batches}
        return [
            execution["name"]
            for execution in self._stack.executions()
            if execution["status"] == "RUNNING" and execution["name"] in names
        ]

    def _owed_dead_letters(self) -> bool:
        rows = self._rows()
        doomed = [rows.get(image_id) for image_id, sending in self._by_id.items() if sending.is_doomed]
        return any(row is not None and row.due_at is not None for row in doomed)

    # ── The account ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _rows(self) -> dict[str, Image]:
        items = [item for item in self._stack.items() if image_id_of(item) not in self._bad_rows]
        return {row.image_id: row for row in map(from_item, items)}

    def _account(self, seconds: float) -> Account:
        rows = {image_id: row for image_id, row in self._rows().items() if image_id in self._by_id}
        deaths = self._stage.strikes.deaths()
        delays = self._delays()
        healthy = [
            rows[image_id] for image_id, sending in self._by_id.items() if not sending.is_doomed and image_id in rows
        ]
        evidence = Evidence(
            rows=rows,
            tags={key: tag for key, tag in self._stack.entity_tags().items() if key.split("/")[1] in rows},
            ends=ends_of(self._stack),
            messages=sum(self._stack.messages(name) for name in LANE_QUEUES.values()),
        )
        answers = [self._answer(sending) for sending in self._plan.sendings if not sending.is_doomed]
        dead_letters = self._dead_letters()
        sweeps = [at for at, line in self._lines("SweepDueImagesLogs") if line.get("message") == "swept"]
        sweeps += [death.at for death in deaths if death.function == SWEEPER]
        since, until = self._began, self._clock.now()
        return Account(
            outcome=outcome_of(evidence, answers, undisturbed=self._stage.undisturbed.prints),
            lives=self._lives(rows, deaths, delays),
            accepted=sum(result.is_accepted for result in self._results.values()),
            failed=tuple(
                f"{row.image_id} ({self._by_id[row.image_id].way}) ended {row.status}: {row.error}"
                for row in healthy
                if row.status.is_terminal and row.status is not Status.DONE
            ),
            doubled=tuple(
                doubled
                for row in healthy
                if (doubled := comparison.written_twice(row, self._watch.first_versions.get(row.image_id)))
            ),
            dead_letters=tuple(self._problems_of_dead_letters(rows, dead_letters)),
            misrouted=(
                *comparison.misrouted(
                    self._poison,
                    {name: {message["Body"] for message in messages} for name, messages in dead_letters.items()},
                ),
                *self._going_round(),
                *self._batches_astray(dead_letters),
            ),
            rows_touched=(*self._rows_touched(), *self._webhooks_held_up()),
            lists_refused=tuple(
                f"the list of {client.tenant} is refused"
                for client in self._stage.clients.values()
                if client.listed() is None
            ),
            deaths=Counter(death.function for death in deaths),
            pauses=len(self._pauses),
            duplicates=self._duplicates,
            repetitions=self._repetitions,
            poison=len(self._poison) + len(self._batches) + len(self._bad_rows),
            stale_records=self._stale,
            stale_attempts=max((row.attempt for row in healthy if self._by_id[row.image_id].is_stale), default=0),
            postponed=sum(map(self._is_postponed, delays.values())),
            longest_gap_seconds=round(
                comparison.longest_gap_seconds(sweeps, self._clock.jumps, since=since, until=until), 1
            ),
            sweeps=sum(since <= at <= until for at in sweeps),
            seconds=round(seconds),
        )

    def _answer(self, sending: Sending) -> Answer:
        result = self._results[sending.number]
        photo = photo_in_lane(sending.lane, self._stage.undisturbed.photos[sending.photo])
        return Answer(
            photo=photo,
            image_id=result.image_id,
            status=ACCEPTED if result.is_accepted else result.status,
            seconds=0,
            refused=result.refused,
        )

    def _lines(self, logical_id: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for line in self._stack.log_lines(logical_id):
            if "timestamp" in line and "service" in line:  # the functions' own lines, and not the runtime's
                at = datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z")
                yield round(at.timestamp() * 1000), line

    def _delays(self) -> dict[str, list[tuple[int, str]]]:
        """What made images wait, according to the functions that were at work on them: by image, when and what."""
        lines: dict[str, list[tuple[int, str]]] = {}
        functions = ("SubmitImage", "AcceptUpload", "FetchOriginal", "TranscodeImage", "SweepDueImages")
        for logical_id in (f"{function}Logs" for function in functions):
            for at, line in self._lines(logical_id):
                if line.get("message") in _DELAYS and "image_id" in line:
                    said = f"{line['message']} ({line.get('cause') or line.get('exception', '')})"
                    lines.setdefault(line["image_id"], []).append((at, said))
        return lines

    def _is_in_pause(self, at: int) -> bool:
        return any(began <= at <= over for began, over in self._pauses)

    def _is_postponed(self, delays: Sequence[tuple[int, str]]) -> bool:
        return any(self._is_in_pause(at) for at, _ in delays)

    def _lives(
        self,
        rows: Mapping[str, Image],
        deaths: Sequence[Death],
        delays: Mapping[str, Sequence[tuple[int, str]]],
    ) -> dict[int, Life]:
        killed: dict[str, set[str]] = {}
        # A scheduled image has time: it loses none when a process that holds or releases it dies.
        for death in (death for death in deaths if death.function in (UPLOAD_ACCEPTOR, FETCHER, TRANSCODER)):
            for image_id in death.image_ids:
                killed.setdefault(image_id, set()).add(f"{death.function} was killed")
        tokens = {death.token for death in deaths if death.function == ACCEPTOR}
        lives = {}
        for image_id, sending in self._by_id.items():
            row, result = rows.get(image_id), self._results[sending.number]
            if row is None:
                continue
            hits = set(killed.get(image_id, ()))
            if f"{self._name}-{sending.number}" in tokens:
                hits.add(f"{ACCEPTOR} was killed")
            accepted_at = result.at if sending.way is Way.FORM else row.created_at
            if self._is_postponed(delays.get(image_id, ())) or (result.refused and self._is_in_pause(accepted_at)):
                hits.add("postponed in a pause")
            began_at = accepted_at if row.process_at is None else max(row.process_at, accepted_at)
            lives[sending.number] = Life(
                number=sending.number,
                began_at=began_at,
                ended_at=row.completed_at,
                is_neighbour=sending.is_neighbour,
                hits=frozenset(hits),
                delays=tuple(f"after {(at - began_at) / 1000:.0f} s: {said}" for at, said in delays.get(image_id, ())),
            )
        return lives

    def _dead_letters(self) -> dict[str, list[dict[str, Any]]]:
        return {name: self._queues.dead_letters(name) for name in DEAD_LETTERS.values()}

    def _problems_of_dead_letters(
        self, rows: Mapping[str, Image], dead_letters: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> list[str]:
        explained: Counter[tuple[str, int]] = Counter()
        raw: Counter[str] = Counter()
        for messages in dead_letters.values():
            for dead_letter in messages:
                try:
                    message = read_dead_letter(dead_letter["Body"])
                except UnreadableMessage:
                    continue
                if EXPLANATION in dead_letter.get("MessageAttributes", {}):
                    explained[message.image_id, message.run] += 1
                else:
                    raw[message.image_id] += 1
        return comparison.problems_of_dead_letters(rows.values(), explained, raw)

    def _going_round(self) -> list[str]:
        left = {name: self._stack.messages(name) for name in DEAD_LETTERS}
        return [f"{name}: {count} messages go round and round" for name, count in left.items() if count]

    def _batches_astray(self, dead_letters: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
        sentences = [f"the execution {name} goes round and round" for name in self._running_batches()]
        bodies = [dead_letter["Body"] for dead_letter in dead_letters[DEAD_LETTERS[HOLD_QUEUE]]]
        for batch in self._batches:
            is_dead_letter = any(
                batch.key in body and '"position"' in body and "arn:none" not in body for body in bodies
            )
            if batch.ends == frozenset({"a dead letter"}) and not is_dead_letter:
                sentences.append(f"the batch that is {batch.name} has no dead letter")
        return sentences

    def _rows_touched(self) -> list[str]:
        client, table = self._stack.client("dynamodb"), self._stack.output("ImagesTableName")
        sentences = []
        for image_id, put in self._bad_rows.items():
            item = client.get_item(TableName=table, Key={"image_id": {"S": image_id}}, ConsistentRead=True).get("Item")
            changed = sorted(name for name in {*put, *(item or {})} if (item or {}).get(name) != put.get(name))
            if set(changed) - {"due_at"}:  # only its next look is postponed
                sentences.append(f"the bad row {image_id} was changed: {', '.join(changed)}")
        return sentences

    def _webhooks_held_up(self) -> Iterator[str]:
        endpoints, deliveries = self._stack.output("EndpointsTableName"), self._stack.output("DeliveriesTableName")
        for bad in self._bad_webhooks:
            for table, put, names in (
                (endpoints, bad.unreadable, ("tenant_id", "place")),
                (deliveries, bad.probe, ("endpoint_id", "delivery_id")),
            ):
                key = {name: put[name] for name in names}
                item = self._stack.client("dynamodb").get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
                if item | {"due_at": None} != put | {"due_at": None}:  # only its next look is postponed
                    yield f"the bad row {key} was changed"
            key = {name: bad.resting[name] for name in ("tenant_id", "place")}
            item = self._stack.client("dynamodb").get_item(TableName=endpoints, Key=key, ConsistentRead=True)["Item"]
            if item.get("probe") == bad.resting["probe"]:
                yield "a webhook that rests waits for a delivery that cannot be read"
            if not 0 < self._noted(deliveries, bad.sibling) <= self._noted(deliveries, bad.unreadable):  # put before it
                yield "a webhook that cannot be read keeps its sibling from its events, or gets none itself"

    def _noted(self, deliveries: str, endpoint: dict[str, Any]) -> int:
        pages = self._stack.client("dynamodb").get_paginator("query")
        wanted: Any = {":endpoint": endpoint["endpoint_id"]}
        return sum(
            page["Count"]
            for page in pages.paginate(
                TableName=deliveries,
                KeyConditionExpression="endpoint_id = :endpoint",
                ExpressionAttributeValues=wanted,
                Select="COUNT",
            )
        )


def _once(sending: Sending) -> Sending:
    return replace(sending, repetitions=0, copies_at_once=0, copies_later=0)
