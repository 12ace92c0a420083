"""Rows, objects, queues and remembered work in memory, with the semantics that the ports promise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.dead_letters.rejection import RejectedMessage
from darkroom.domain.images.claim import Lease, claim_unseen
from darkroom.domain.images.image import VERSION_FIELDS, Image, Provenance, Variant, waiting_shard_of
from darkroom.domain.images.listing import Cursor
from darkroom.domain.images.media_types import SNIFF_BYTES
from darkroom.domain.imports.fetch import NOT_FOUND, TOO_LARGE, Fetched, Unfetched
from darkroom.domain.kernel.errors import Retryable, Unplaceable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.visibility import Visibility, folder_of
from darkroom.domain.schedules.hold import MAX_BATCH_BYTES, ReleaseWindow, UnreadableBatch
from darkroom.ports.dead_letters import DeadLetter, Taken
from darkroom.ports.images import Due, Listed, OriginalMissing, QueueDepth, StoredOriginal, StoredOutput, Waiting
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.uploads import UploadForm


@dataclass
class FakeImages:
    """The `Images` port over a dictionary; of the `unreadable` rows it knows only what the indexes contain. Those
    `of_before` were accepted before there was the index that lists images."""

    rows: dict[str, Image] = field(default_factory=dict)
    unreadable: dict[str, Image] = field(default_factory=dict)
    of_before: set[str] = field(default_factory=set)

    def get(self, image_id: str) -> Image | None:
        if image_id in self.unreadable:
            raise self._unreadable(image_id)
        return self.rows.get(image_id)

    def _unreadable(self, image_id: str) -> UnreadableRow:
        row = self.unreadable[image_id]
        return UnreadableRow(
            image_id,
            "invented later",
            tenant_id=row.tenant_id,
            due_at=row.due_at,
            waiting_since=row.waiting_since,
        )

    @property
    def _indexed(self) -> Iterable[Image]:
        return (self.rows | self.unreadable).values() if self.unreadable else self.rows.values()

    def get_all(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        assert len(image_ids) <= 100
        rows = {image_id: self.rows[image_id] for image_id in image_ids if image_id in self.rows}
        return rows | {image_id: self._unreadable(image_id) for image_id in image_ids if image_id in self.unreadable}

    def everything(self) -> Iterator[Image | UnreadableRow]:
        yield from list(self.rows.values())
        yield from map(self._unreadable, list(self.unreadable))

    def known(self, image_ids: Sequence[str]) -> frozenset[str]:
        assert len(image_ids) <= 100
        return frozenset(image_id for image_id in image_ids if image_id in self.rows or image_id in self.unreadable)

    def parked(self, until: Milliseconds) -> Iterator[Image]:
        yield from [row for row in self.rows.values() if row.parked and row.due_at is not None and row.due_at <= until]

    def create(self, image: Image) -> Image:
        if image.image_id in self.unreadable:
            raise self._unreadable(image.image_id)
        return self.rows.setdefault(image.image_id, image)

    def change(self, before: Image, after: Image, *, fence: tuple[str, ...] = ("status", "run", "attempt")) -> Image:
        if before.image_id in self.unreadable:
            raise self._unreadable(before.image_id)
        current = self.rows.get(before.image_id)
        if current is None or any(getattr(current, name) != getattr(before, name) for name in fence):
            raise Fenced(current)
        # Only the differences are written, so that a concurrent change of another attribute survives.
        earlier = vars(before)
        changes = {name: value for name, value in vars(after).items() if value != earlier[name]}
        changes |= {name: current.version + 1 for name in VERSION_FIELDS & changes.keys() if changes[name] is not None}
        self.rows[before.image_id] = replace(current, **{**changes, "version": current.version + 1})
        return self.rows[before.image_id]

    def claim_unseen(self, message: Message, lease: Lease) -> Image:
        current = self.get(message.image_id)
        claimed = None if current is None else claim_unseen(current, message, lease)
        if claimed is None:
            raise Fenced(current)
        self.rows[claimed.image_id] = replace(claimed, version=claimed.version + 1)
        return self.rows[claimed.image_id]

    def postpone(self, due: Due, until: Milliseconds) -> bool:
        for rows in (self.rows, self.unreadable):
            row = rows.get(due.image_id)
            if row is not None and row.due_at == due.due_at:
                rows[due.image_id] = replace(row, due_at=until)
                return True
        return False

    def tenants_of(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        assert len(image_ids) <= 100
        rows = self.rows | self.unreadable
        return {image_id: rows[image_id].tenant_id for image_id in image_ids if image_id in rows}

    def due(self, shard: str, now: Milliseconds, limit: int, *, latest_first: bool = False) -> Iterator[Due]:
        due = [
            Due(row.due_at, row.image_id)
            for row in self._indexed
            if row.due_at is not None and row.due_at <= now and row.due_shard == shard
        ]
        yield from sorted(due, reverse=latest_first)[:limit]

    def oldest_waiting(self, lane: str, shard: str) -> Milliseconds | None:
        wanted = waiting_shard_of(lane, shard)
        waiting = [
            row.waiting_since
            for row in self.rows.values()
            if row.waiting_shard == wanted and row.waiting_since is not None
        ]
        return min(waiting, default=None)

    def waiting(
        self, lane: str, shard: str, *, since: Milliseconds, until: Milliseconds, page_size: int
    ) -> Iterator[Waiting]:
        assert page_size > 0
        wanted = waiting_shard_of(lane, shard)
        yield from sorted(
            Waiting(row.waiting_since, row.image_id)
            for row in self._indexed
            if row.waiting_shard == wanted and row.waiting_since is not None and since <= row.waiting_since < until
        )

    def newest(self, tenant_id: str, *, after: Cursor | None, limit: int) -> Listed:
        return self._of_tenant(tenant_id, lambda row: row.image_id not in self.of_before, after=after, limit=limit)

    def with_reference(self, tenant_id: str, reference: str, *, after: Cursor | None, limit: int) -> Listed:
        return self._of_tenant(tenant_id, lambda row: row.reference == reference, after=after, limit=limit)

    def _of_tenant(
        self, tenant_id: str, is_listed: Callable[[Image], bool], *, after: Cursor | None, limit: int
    ) -> Listed:
        rows = sorted(
            (
                (row.created_at, row.image_id)
                for row in self._indexed
                if row.tenant_id == tenant_id and not row.is_deleted and is_listed(row)
            ),
            reverse=True,
        )
        places = [
            Cursor(created_at=created_at, image_id=image_id)
            for created_at, image_id in rows
            if after is None or (created_at, image_id) < (after.created_at, after.image_id)
        ]
        return Listed(cursors=tuple(places[:limit]), next=places[limit - 1] if len(places) > limit else None)

    def unlisted(self, *, pages: int | None = None) -> Iterator[tuple[str, str]]:
        rows = [row for row in self._indexed if row.image_id in self.of_before and not row.is_deleted]
        yield from [(row.image_id, row.tenant_id) for row in rows]

    def enlist(self, image_id: str, tenant_id: str) -> None:
        self.of_before.discard(image_id)


@dataclass
class FakeOriginals:
    """The `Originals` port: every key has one version, the first."""

    objects: dict[str, bytes] = field(default_factory=dict)
    about: dict[str, tuple[str, str]] = field(default_factory=dict)

    def put_if_absent(
        self, image_id: str, body: bytes, *, sha256: str, media_type: str, made_for: str = ""
    ) -> StoredOriginal:
        if image_id not in self.objects:
            self.objects[image_id], self.about[image_id] = body, (media_type, made_for)
        stored, (stored_type, stored_for) = self.objects[image_id], self.about.get(image_id, ("", ""))
        return StoredOriginal(
            version_id="v1",
            sha256=hashlib.sha256(stored).hexdigest(),
            size_bytes=len(stored),
            media_type=stored_type,
            made_for=stored_for,
        )

    def get(self, image_id: str, version_id: str) -> bytes:
        if image_id not in self.objects:
            raise OriginalMissing(f"there is no original of {image_id}")
        return self.objects[image_id]

    def versions_of(self, image_id: str) -> Sequence[str]:
        return ["v1"] if image_id in self.objects else []

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        for image_id, version_id in versions:
            if version_id == "v1":
                self.objects.pop(image_id, None)
        return {}


@dataclass
class FakeUploads:
    """The `Uploads` port; `upload` is what a client does with a form."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def form_for(
        self, image_id: str, *, sha256: str, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        return UploadForm(
            url="https://uploads.example/",
            fields={
                "key": f"uploads/{image_id}",
                "Content-Type": media_type,
                "sha256": sha256,
                "bytes": str(size_bytes),
            },
            expires_at=now + seconds * 1000,
        )

    def upload(self, form: UploadForm, body: bytes) -> None:
        """What the store does with a form that is sent in time."""
        assert form.fields["bytes"] == str(len(body))
        assert form.fields["sha256"] == hashlib.sha256(body).hexdigest()
        self.objects[form.fields["key"].removeprefix("uploads/")] = body

    def size_bytes(self, image_id: str) -> int | None:
        return len(self.objects[image_id]) if image_id in self.objects else None

    def get(self, image_id: str) -> bytes | None:
        return self.objects.get(image_id)

    def remove(self, image_ids: Sequence[str]) -> Mapping[str, Exception]:
        for image_id in image_ids:
            self.objects.pop(image_id, None)
        return {}


@dataclass
class FakeUploadQueue:
    """The `UploadQueue` port."""

    reminders: list[Message] = field(default_factory=list)

    def put(self, message: Message) -> None:
        self.reminders.append(message)


@dataclass
class FakeFetchQueue:
    """The `FetchQueue` port."""

    asked: list[Message] = field(default_factory=list)
    waiting: int = 0
    taken: int = 0

    def put(self, message: Message) -> None:
        self.asked.append(message)

    def depth(self) -> QueueDepth:
        return QueueDepth(waiting=self.waiting, taken=self.taken)


@dataclass
class FakeRemoteImages:
    """The `RemoteImages` port: what each URL answers, one answer after the other and the last for ever; a URL without
    answers is not found. `asked` are the URLs that were fetched, `read_bytes` how much was read of each file."""

    answers: dict[str, list[Fetched | Unfetched]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    read_bytes: list[int] = field(default_factory=list)

    def serve(self, url: str, *answers: bytes | Unfetched) -> None:
        self.answers[url] = [
            Fetched(body=answer, provenance=Provenance(etag='"1"')) if isinstance(answer, bytes) else answer
            for answer in answers
        ]

    def fetch(self, url: str, *, max_bytes: int, is_picture: Callable[[bytes], bool]) -> Fetched | Unfetched:
        self.asked.append(url)
        answers = self.answers.get(url)
        if not answers:
            return Unfetched(code=NOT_FOUND, message="The server has nothing at this URL (404).")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Unfetched):
            return answer
        if len(answer.body) > max_bytes:
            return Unfetched(code=TOO_LARGE, message=f"The file has more than {max_bytes} bytes.")
        if not is_picture(answer.body[:SNIFF_BYTES]):
            answer = replace(answer, body=answer.body[:SNIFF_BYTES])
        self.read_bytes.append(len(answer.body))
        return answer


@dataclass
class FakeOutputs:
    """The `Outputs` port; `puts` counts the attempts on each key."""

    objects: dict[str, bytes] = field(default_factory=dict)
    puts: dict[str, int] = field(default_factory=dict)
    media_types: dict[str, str] = field(default_factory=dict)

    def put_if_absent(
        self, key: str, body: bytes, *, sha256: str, media_type: str, viewer_seconds: int | None = None
    ) -> StoredOutput:
        self.puts[key] = self.puts.get(key, 0) + 1
        if key not in self.objects:
            self.media_types[key] = media_type
        stored = self.objects.setdefault(key, body)
        return StoredOutput(sha256=hashlib.sha256(stored).hexdigest(), size_bytes=len(stored))

    def holds(self, variant: Variant) -> bool:
        stored = self.objects.get(variant.key)
        return stored is not None and hashlib.sha256(stored).hexdigest() == variant.sha256

    def get(self, key: str) -> tuple[bytes, str]:
        return self.objects[key], self.media_types.get(key, "image/jpeg")

    def keys_of(self, image_id: str, visibilities: Collection[Visibility]) -> Sequence[str]:
        folders = tuple(folder_of(visibility, image_id) for visibility in visibilities)
        return [key for key in self.objects if key.startswith(folders)]

    def remove(self, keys: Sequence[str]) -> Mapping[str, Exception]:
        for key in keys:
            self.objects.pop(key, None)
        return {}

    def url_of(self, variant: Variant, *, for_head: bool = False) -> str:
        return f"https://outputs.example/{variant.key}" + "?method=HEAD" * for_head


@dataclass
class FakeEdge:
    """The `StaleEdge` port: which images the edge was told to forget, each after how many seconds."""

    told: list[tuple[str, int]] = field(default_factory=list)

    def forget(self, owners: Mapping[str, str], *, delay_seconds: int = 0) -> None:
        assert 0 <= delay_seconds <= 900
        self.told += [(image_id, delay_seconds) for image_id in owners]


@dataclass
class FakeLanes:
    """The `Lanes` port: the messages of all lanes in one list; a test sets how many wait. Like the adapter it has a
    queue for each lane of this version, and for no other."""

    sent: list[Message] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)
    backlogs: dict[str, int] = field(default_factory=dict)

    def send(self, message: Message, *, delay_seconds: int = 0) -> None:
        assert 0 <= delay_seconds <= 900
        if message.lane not in LANES:
            raise KeyError(message.lane)
        self.sent.append(message)
        self.delays.append(delay_seconds)

    def send_all(self, lane: str, messages: Sequence[tuple[Message, int]]) -> Mapping[int, Exception]:
        assert {message.lane for message, _ in messages} <= {lane}
        return send_each(messages, lambda message: self.send(message[0], delay_seconds=message[1]))

    def backlog(self, lane: str) -> int:
        return self.backlogs.get(lane, 0)


@dataclass
class FakeHoldQueue:
    """The `HoldQueue` port."""

    held: list[Message] = field(default_factory=list)

    def put(self, message: Message) -> None:
        assert message.process_at is not None
        self.held.append(message)

    def put_all(self, messages: Sequence[Message]) -> Mapping[int, Exception]:
        return send_each(messages, self.put)


def send_each[One](ones: Sequence[One], send: Callable[[One], None]) -> Mapping[int, Exception]:
    """Sends messages one by one, as a port does that takes many: what cannot be sent is returned by its place."""
    unsent: dict[int, Exception] = {}
    for place, message in enumerate(ones):
        try:
            send(message)
        except Unplaceable as error:
            unsent[place] = error
        except Retryable as error:
            return unsent | dict.fromkeys(range(place, len(ones)), error)
    return unsent


@dataclass
class FakeHolds:
    """The `Holds` port."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, dumped: bytes) -> None:
        self.objects[key] = dumped

    def get(self, key: str) -> bytes | None:
        dumped = self.objects.get(key)
        if dumped is not None and len(dumped) > MAX_BATCH_BYTES:
            raise UnreadableBatch("it is larger than any batch")
        return dumped

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


@dataclass
class FakeReservations:
    """The `Reservations` port."""

    busy: dict[str, Milliseconds] = field(default_factory=dict)
    windows: dict[str, ReleaseWindow] = field(default_factory=dict)

    def reserve(self, lane: str, *, not_before: Milliseconds, milliseconds: int) -> Milliseconds:
        begins_at = max(not_before, self.busy_until(lane))
        self.busy[lane] = begins_at + milliseconds
        return begins_at

    def busy_until(self, lane: str) -> Milliseconds:
        return self.busy.get(lane, 0)

    def note_window(self, key: str, window: ReleaseWindow) -> None:
        self.windows[key] = window

    def window_of(self, key: str) -> ReleaseWindow | None:
        return self.windows.get(key)


@dataclass
class FakeWakeUps:
    """The `WakeUps` port: what wakes when, by name."""

    wakings: dict[str, tuple[str, Milliseconds]] = field(default_factory=dict)

    def set(self, name: str, key: str, wake_at: Milliseconds) -> None:
        assert wake_at % 1000 == 0
        self.wakings.setdefault(name, (key, wake_at))


@dataclass
class FakeReleases:
    """The `Releases` port: batches by name. `late` come once the consumer is stopped."""

    batches: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    holds: bool = True

    def hold_no_more(self) -> None:
        self.holds = False

    def waiting(self) -> Iterator[str]:
        yield from list(self.batches)  # seconds out of date: also those that were just stopped
        if not self.holds:
            self.batches += self.late
            self.late = []

    def stop(self, name: str) -> None:
        assert not self.holds
        self.stopped.append(name)


@dataclass
class FakeDeadLetters:
    """The `DeadLetters` port: a list of dead letters per queue. A taken one stays hidden until it is given back."""

    messages: dict[str, list[DeadLetter]] = field(default_factory=lambda: {lane: [] for lane in LANES})
    hidden: set[str] = field(default_factory=set)
    made: int = 0

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self.messages)

    def depth(self, queue: str) -> int:
        return len(self.messages[queue])

    def take(self, queue: str, limit: int) -> Taken:
        visible = [dead_letter for dead_letter in self.messages[queue] if dead_letter.message_id not in self.hidden]
        self.hidden |= {dead_letter.message_id for dead_letter in visible[:limit]}
        return Taken(dead_letters=tuple(visible[:limit]), complete=len(visible) <= limit)

    def sample(self, queue: str) -> tuple[DeadLetter, ...]:
        return tuple(message for message in self.messages[queue] if message.message_id not in self.hidden)[:10]

    def give_back(self, dead_letters: tuple[DeadLetter, ...]) -> None:
        self.hidden -= {dead_letter.message_id for dead_letter in dead_letters}

    def remove(self, dead_letter: DeadLetter) -> None:
        self.messages[dead_letter.queue] = [
            kept for kept in self.messages[dead_letter.queue] if kept.message_id != dead_letter.message_id
        ]

    def put(self, queue: str, message: Message, explanation: dict[str, Any]) -> None:
        self.add(queue, message.model_dump_json(), json.dumps(explanation))

    def put_rejected(self, queue: str, message: RejectedMessage, explanation: dict[str, Any]) -> None:
        """The `RejectedMessages` port."""
        self.add(queue, message.model_dump_json(), json.dumps(explanation), is_signed=False)

    def add(self, queue: str, body: str, explanation: str | None = None, *, is_signed: bool = True) -> DeadLetter:
        """A dead letter that SQS moved there, unless it has an explanation."""
        self.made += 1
        dead_letter = DeadLetter(
            queue=queue,
            message_id=f"dead letter-{self.made}",
            receipt=f"receipt-of-dead letter-{self.made}",
            body=body,
            explanation=explanation,
            is_signed=is_signed,
            sent_at=0,
        )
        self.messages[queue].append(dead_letter)
        return dead_letter


@dataclass
class FakeOnce:
    """The `Once` port; results pass through JSON, as they do in a table."""

    results: dict[str, str] = field(default_factory=dict)

    def __call__(self, key: str, work: Callable[[], dict[str, Any]], *, is_first: bool) -> dict[str, Any]:
        kept: dict[str, Any] | None = None if is_first else json.loads(self.results.get(key, "null"))
        return work() if kept is None else kept

    def keep(self, key: str, result: dict[str, Any]) -> None:
        self.results[key] = json.dumps(result)

    def forget(self, keys: Sequence[str]) -> None:
        """The `Memory` port."""
        for key in keys:
            self.results.pop(key, None)
