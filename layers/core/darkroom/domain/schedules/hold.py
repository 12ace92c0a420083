"""The timing wheel: which far-off images wait together, until when, and how their batches are stored."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import batched, pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from darkroom.domain.kernel.errors import Unplaceable  # noqa: F401 -- for one release: the former handler does
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS
from darkroom.domain.kernel.message import Message
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A ring of the wheel. Images up to `horizon_seconds` ahead wait here in slots of `width_seconds`; a slot wakes
    `lead_seconds` before it begins, so that its images can move on before their time."""

    name: str
    horizon_seconds: int
    width_seconds: int
    lead_seconds: int


# A release sends its messages with each one's remaining delay: lead and width together are what a lane can hold. The
# lead is the time that a release may lose to crashes, retries and throttling before anything is late.
RELEASE = Ring(name="release", horizon_seconds=6 * _HOUR, width_seconds=10 * _MINUTE, lead_seconds=5 * _MINUTE)

WHEEL = (
    RELEASE,
    Ring(name="hours", horizon_seconds=7 * _DAY, width_seconds=6 * _HOUR, lead_seconds=_HOUR),
    Ring(name="days", horizon_seconds=28 * _DAY, width_seconds=7 * _DAY, lead_seconds=6 * _HOUR),
    Ring(name="weeks", horizon_seconds=400 * _DAY, width_seconds=28 * _DAY, lead_seconds=_DAY),
)

SOON_SECONDS = 900
"""Far more than clocks differ, and less than the shortest lead of a ring that holds images once more."""

FULL_SLOT = 256
"""From this many images on, a release slot gets its own object and execution at once, however far off. An execution
costs about as much as holding 300 images once more (`make bench-delay` counts both)."""

BATCH_LIMIT = 10_000
"""The most images of one object: a release reads them at once and sends them within a minute or two."""

MAX_BATCH_BYTES = 8 * 1024 * 1024
"""The most JSON of one object: more than the most images with the longest tenant names need."""

HELD_AT_MOST_SECONDS = MAX_DELAY_SECONDS + SOON_SECONDS
"""The furthest ahead that an image is held: as far as it can be scheduled, plus the difference of clocks."""

_LATEST_WAKING: Milliseconds = 253_402_300_799_000
"""The end of the year 9999, the latest Timestamp of Step Functions."""


class HeldMessage(BaseModel):
    """One waiting image: the contents of its message, and until when it waits."""

    model_config = ConfigDict(frozen=True)

    message: Message
    process_at: Milliseconds


@dataclass(frozen=True, kw_only=True)
class ReleaseWindow:
    """When the entries of a batch from `position` on come to their lane: the next hundred, or all that are left."""

    position: int
    begins_at: Milliseconds
    is_of_all_left: bool


class BatchDeadLetter(BaseModel):
    """What an execution sends to the hold queue's dead letters when it gives up its batch; moved back to the hold
    queue, it makes the batch wake again."""

    model_config = ConfigDict(frozen=True, strict=True)

    v: Literal[1]
    batch: Annotated[str, StringConstraints(pattern=r"^holds/[\w.-]+/[0-9a-f]{40}\.json\.gz$")]
    error: str
    cause: str
    execution: str


def read_batch_dead_letter(body: str) -> BatchDeadLetter | None:
    """The dead letter, or None if the body is something else."""
    try:
        return BatchDeadLetter.model_validate_json(body)
    except ValidationError:
        return None


class UnreadableBatch(ValueError):
    """An object that is damaged, or not a batch of a known version: no retry makes it readable, and the sweeper sends
    its images."""


def unplaceable_because(entry: HeldMessage, now: Milliseconds, lanes: Container[str]) -> str | None:
    """Why this version can neither send nor hold the image, or None if it can."""
    if entry.message.lane not in lanes:  # guard: hold-unknown-lane
        return f"no lane of this version is called {entry.message.lane!r}"
    if entry.process_at < 0:  # guard: hold-time-lower-bound
        return "its time is before 1970"
    if entry.process_at > now + HELD_AT_MOST_SECONDS * 1000:  # guard: hold-time-upper-bound
        return f"its time is more than {MAX_DELAY_SECONDS // _DAY} days ahead"
    return None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Images that wait together: one object, and one execution that wakes at `wake_at`."""

    level: str
    wake_at: Milliseconds
    entries: tuple[HeldMessage, ...]

    @property
    def is_release(self) -> bool:
        """Whether its images go to their lanes when it wakes; other batches' images are held once more, in a closer
        ring."""
        return self.level == RELEASE.name

    def dumped(self) -> bytes:
        """The object's bytes: gzipped JSON, the same for the same batch: docs/reference/batches.md has the form."""
        groups: dict[tuple[str, str], list[list[Any]]] = defaultdict(list)
        for entry in sorted(self.entries, key=_order):
            message = entry.message
            groups[message.tenant_id, message.lane].append(
                [message.image_id, message.run, message.schedule, entry.process_at - self.wake_at]
            )
        document = {
            "v": 1,
            "level": self.level,
            "wake_at": self.wake_at,
            "groups": [
                {"tenant_id": tenant_id, "lane": lane, "images": images}
                for (tenant_id, lane), images in sorted(groups.items())
            ],
        }
        return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def batch_key(batch: Batch, dumped: bytes) -> str:
    """The object's key, made from its wake-up time and content, so that a retry writes the same object."""
    wake_at = str(rfc3339(batch.wake_at)).replace(":", "-")
    return f"holds/{wake_at}/{_digest(dumped)}.json.gz"


def execution_name(key: str) -> str:
    """The name of the execution that holds the object with that key."""
    return "hold-" + _digest_in(key)


def _digest(dumped: bytes) -> str:
    return hashlib.sha256(dumped).hexdigest()[:40]


def _digest_in(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tenant_id: str
    lane: str
    images: list[tuple[str, int, int, int]]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    v: Literal[1]
    level: str
    wake_at: Annotated[int, Field(ge=0, le=_LATEST_WAKING, multiple_of=1000)]  # guard: hold-wake-time-bounds
    groups: list[_Group]


def read_stored_batch(key: str, dumped: bytes) -> Batch:
    """The batch stored under `key`, if its bytes are the ones that were stored there. Raises UnreadableBatch."""
    # Damage that gzip does not check, in its header and after its last block, would still decode.
    if _digest(dumped) != _digest_in(key):  # guard: hold-batch-digest
        raise UnreadableBatch(f"its {len(dumped)} bytes do not match the digest in its key")
    return read_batch(dumped)


def read_batch(dumped: bytes) -> Batch:
    """The batch that an object holds. Raises UnreadableBatch."""
    try:
        document = _Document.model_validate_json(_decompressed(dumped))
        entries = tuple(
            HeldMessage(
                message=Message(
                    image_id=image_id, tenant_id=group.tenant_id, lane=group.lane, run=run, schedule=schedule
                ),
                process_at=document.wake_at + after,
            )
            for group in document.groups
            for image_id, run, schedule, after in group.images
        )
    # guard: hold-decompression-damage
    except (zlib.error, ValueError) as error:  # pydantic's are ValueErrors
        # Each of ten thousand images may be wrong: Step Functions takes 256 KB of an error, and less for its name.
        raise UnreadableBatch(f"not a version 1 batch: {str(error)[:500]}") from error  # guard: hold-error-text-bound
    return Batch(level=document.level, wake_at=document.wake_at, entries=tuple(sorted(entries, key=_order)))


def _decompressed(dumped: bytes) -> bytes:
    """The contents of the single gzip member in `dumped`, if they are no more than a batch has."""
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    text = reader.decompress(dumped, MAX_BATCH_BYTES)  # guard: hold-decompressed-size-bound
    if not reader.eof:  # guard: hold-cut-off-batch
        raise ValueError("it is cut off or much too long")
    if reader.unused_data:  # guard: hold-trailing-data-refused
        raise ValueError("something follows it")
    return text


def is_near(entry: HeldMessage, now: Milliseconds) -> bool:
    """Whether the image's lane can hold its message itself."""
    return entry.process_at <= now + LANE_DELAY_SECONDS * 1000


def batches_of(entries: Iterable[HeldMessage], now: Milliseconds) -> Iterator[Batch]:
    """The batches in which these images wait; none of the images may be near (`is_near`).

    If enough of them fall into one release slot, they wait there. All others wait on the ring for their distance, in
    smaller batches, and are held once more as their time nears.
    """
    by_release: dict[tuple[str, int], list[HeldMessage]] = defaultdict(list)
    for entry in entries:
        by_release[entry.message.lane, _slot(RELEASE, entry.process_at)].append(entry)
    crumbs: dict[tuple[Ring, int, str], list[HeldMessage]] = defaultdict(list)
    for (_, slot), members in by_release.items():
        if len(members) >= FULL_SLOT:
            yield from _batches(RELEASE, slot, members)
        else:
            for entry in members:
                level = level_of(entry.process_at, now)
                lane = entry.message.lane if level is RELEASE else ""  # a release is paced by its one lane
                crumbs[level, _slot(level, entry.process_at), lane].append(entry)
    for (level, slot, _), members in crumbs.items():
        yield from _batches(level, slot, members)


def level_of(process_at: Milliseconds, now: Milliseconds) -> Ring:
    """The ring on which an image waits: by its distance, but never a slot that wakes soon or has woken.

    An image that comes out of such a slot must not go back into it, even if clocks differ: the same images would make
    the same batch, whose execution has already succeeded, and nothing would wake it again.
    """
    chosen = RELEASE
    soon = now + SOON_SECONDS * 1000
    for level, outer in pairwise(WHEEL):
        # guard: hold-slot-never-reentered
        if process_at - now <= level.horizon_seconds * 1000 or _wakes_at(outer, _slot(outer, process_at)) <= soon:
            break
        chosen = outer
    return chosen


def _slot(level: Ring, instant: Milliseconds) -> int:
    return instant // (level.width_seconds * 1000)


def _wakes_at(level: Ring, slot: int) -> Milliseconds:
    # In the future, for an image that is not near; and a whole second: Step Functions truncates a Timestamp's
    # milliseconds.
    return (slot * level.width_seconds - level.lead_seconds) * 1000


def _batches(level: Ring, slot: int, members: Sequence[HeldMessage]) -> Iterator[Batch]:
    for part in batched(sorted(members, key=_order), BATCH_LIMIT, strict=False):
        yield Batch(level=level.name, wake_at=_wakes_at(level, slot), entries=part)


def _order(entry: HeldMessage) -> tuple[int, str, int]:
    return entry.process_at, entry.message.image_id, entry.message.schedule
