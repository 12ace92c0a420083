"""Messages, batches and rows that no Darkroom wrote, and where each of them may end."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from darkroom.aws.webhooks.deliveries_table import DELIVERIES
from darkroom.aws.webhooks.endpoints_table import ENDPOINTS
from darkroom.domain.images.image import due_shard_of, waiting_shard_of
from darkroom.domain.kernel.ids import image_id_from_bits
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.message import Message
from darkroom.domain.schedules.hold import RELEASE, Batch, HeldMessage, batch_key, execution_name
from darkroom.domain.webhooks.delivery import new_delivery
from darkroom.domain.webhooks.endpoint import Endpoint, EndpointState
from darkroom.domain.webhooks.endpoint_ids import RANDOM_BYTES, endpoint_id_from, place_of
from tests.support.running.load import TENANT

LANE_QUEUES = {"fast": "FastQueueUrl", "slow": "SlowQueueUrl"}
HOLD_QUEUE, UPLOAD_QUEUE, FETCH_QUEUE = "HoldQueueUrl", "UploadQueueUrl", "FetchQueueUrl"
DEAD_LETTERS = {
    "FastQueueUrl": "FastDeadLettersUrl",
    "SlowQueueUrl": "SlowDeadLettersUrl",
    HOLD_QUEUE: "HoldDeadLettersUrl",
    UPLOAD_QUEUE: "UploadDeadLettersUrl",
    FETCH_QUEUE: "FetchDeadLettersUrl",
}
"""Each queue and its dead-letter queue, both by the output that names them."""

IMPOSSIBLE_TIMES = {
    "in 10^30": 10**30,
    "in the year 11476": 300_000_000_000_000,
    "in 2^63": 2**63,
    "in the year 9999": 253_402_300_799_000,
}

YEARS_AHEAD_SECONDS = 3 * 365 * 86_400


class End(StrEnum):
    """Where a poisoned message may end."""

    DEAD_LETTER = "a dead letter"
    SETTLED = "settled"


ANY_END = frozenset(End)
DEAD_LETTER, SETTLED = frozenset({End.DEAD_LETTER}), frozenset({End.SETTLED})


@dataclass(frozen=True, kw_only=True)
class Poison:
    """One message: the queue it is in, by the output that names it, and where it may end."""

    name: str
    queue: str
    body: str
    ends: frozenset[End]


@dataclass(frozen=True, kw_only=True)
class DamagedBatch:
    """An object of the holds bucket with its own execution, which wakes at the set time."""

    name: str
    key: str
    dumped: bytes
    ends: frozenset[End] = DEAD_LETTER

    @property
    def execution(self) -> str:
        """The name of its execution."""
        return execution_name(self.key)


def poisons(seed: int, *, now: Milliseconds) -> tuple[Poison, ...]:
    """Poison for every queue, in a random order; no two bodies are equal."""
    chance = random.Random(f"{seed} poison")
    made = [
        Poison(name=name, queue=queue, body=body, ends=ends)
        for queue, kinds in (
            *((queue, _for_a_lane) for queue in LANE_QUEUES.values()),
            (HOLD_QUEUE, _for_the_hold_queue),
            (UPLOAD_QUEUE, _for_the_upload_queue),
            (FETCH_QUEUE, _for_the_fetch_queue),
        )
        for name, body, ends in kinds(chance, now)
    ]
    made += [
        Poison(name=name, queue=queue, body=body, ends=DEAD_LETTER)
        for queue in DEAD_LETTERS.values()
        for name, body, _ in (*_unreadable(chance, now), ("of an unknown image", _text(_message(chance)), DEAD_LETTER))
    ]
    chance.shuffle(made)
    return tuple(made)


type _Kind = tuple[str, str, frozenset[End]]


def _unreadable(chance: random.Random, now: Milliseconds) -> Iterator[_Kind]:
    for name, body in (
        ("junk", f"junk {_nonce(chance)}"),
        ("pictograms", f"💣💥 {_nonce(chance)}"),
        ("a list", json.dumps([_nonce(chance)])),
        ("a text", json.dumps(_nonce(chance))),
        ("nested deeply", "[" * 5000 + json.dumps(_nonce(chance))),
        ("200 KB", _nonce(chance) + "x" * 200_000),
        ("version 2", _text(_message(chance) | {"v": 2})),
        ("a version in words", _text(_message(chance) | {"v": "1"})),
        ("an unknown field", _text(_message(chance) | {"priority": 9})),
        ("no run", _text({name: value for name, value in _message(chance).items() if name != "run"})),
        ("run 0", _text(_message(chance) | {"run": 0})),
        ("a schedule below 0", _text(_message(chance) | {"schedule": -1})),
        ("a path for an id", _text(_message(chance) | {"image_id": f"../../{_nonce(chance)}"})),
        ("a time below 0", _text(_message(chance) | {"process_at": -now})),
        ("a time in words", _text(_message(chance) | {"process_at": "tomorrow"})),
        ("a time of half a millisecond", _text(_message(chance) | {"process_at": now + 0.5})),
    ):
        yield name, body, DEAD_LETTER


def _for_a_lane(chance: random.Random, now: Milliseconds) -> Iterator[_Kind]:
    yield from _unreadable(chance, now)
    yield "of an unknown image", _text(_message(chance)), SETTLED
    yield "of an unknown image and lane", _text(_message(chance) | {"lane": "express"}), ANY_END
    yield "of run 10^30", _text(_message(chance) | {"run": 10**30}), ANY_END
    for name, instant in IMPOSSIBLE_TIMES.items():
        yield name, _text(_message(chance) | {"process_at": instant}), ANY_END


def _for_the_hold_queue(chance: random.Random, now: Milliseconds) -> Iterator[_Kind]:
    yield from _unreadable(chance, now)
    far = now + 3 * 3_600_000
    yield "of an unknown image", _text(_message(chance) | {"process_at": far}), SETTLED
    yield "of an unknown image, without a time", _text(_message(chance)), SETTLED
    yield "of an unknown lane", _text(_message(chance) | {"lane": "express", "process_at": far}), ANY_END
    yield "of an unknown lane, now", _text(_message(chance) | {"lane": "express"}), ANY_END
    yield "of run 10^30", _text(_message(chance) | {"process_at": far, "run": 10**30}), ANY_END
    yield "in three years", _text(_message(chance) | {"process_at": now + YEARS_AHEAD_SECONDS * 1000}), ANY_END
    for name, instant in IMPOSSIBLE_TIMES.items():
        yield name, _text(_message(chance) | {"process_at": instant}), ANY_END
    yield "of a missing batch", _batch_dead_letter(_key(chance, now)), SETTLED
    yield "of a batch at no place of ours", _batch_dead_letter(f"elsewhere/{_nonce(chance)}"), DEAD_LETTER


def _for_the_upload_queue(chance: random.Random, now: Milliseconds) -> Iterator[_Kind]:
    yield from _unreadable(chance, now)
    yield "a reminder of an unknown image", _text(_message(chance)), SETTLED
    yield "notification of an unknown image", upload_notification(f"uploads/{_message(chance)['image_id']}"), SETTLED
    yield "notification of another object", upload_notification(f"elsewhere/{_nonce(chance)}"), SETTLED
    yield (
        "notification of a name of 10,000 characters",
        upload_notification("uploads/" + _nonce(chance) + "0" * 10_000),
        SETTLED,
    )
    yield "notification without an object", json.dumps({"Records": [{"s3": {}, "nonce": _nonce(chance)}]}), DEAD_LETTER


def _for_the_fetch_queue(chance: random.Random, now: Milliseconds) -> Iterator[_Kind]:
    yield from _unreadable(chance, now)
    yield "of an unknown image to be fetched", _text(_message(chance)), SETTLED
    yield "of an unknown image and lane, to be fetched", _text(_message(chance) | {"lane": "express"}), ANY_END
    yield "of run 10^30, to be fetched", _text(_message(chance) | {"run": 10**30}), ANY_END


def poison_of_batches(batches: Sequence[DamagedBatch]) -> Iterator[Poison]:
    """For each damaged batch the dead letter that wakes it, as if an operator had moved it back. An unreadable batch
    becomes a dead letter again; a readable one is set to wake once more, and ends the same way."""
    for batch in batches:
        yield Poison(
            name=f"of a batch that is {batch.name}", queue=HOLD_QUEUE, body=_batch_dead_letter(batch.key), ends=ANY_END
        )


def damaged_batches(
    seed: int, *, wake_at: Milliseconds, neighbour: HeldMessage | None = None
) -> tuple[DamagedBatch, ...]:
    """Objects that are no batches, and batches that cannot be released; `neighbour` is a healthy image's entry that one
    of them contains next to what cannot be released."""
    chance = random.Random(f"{seed} batches")

    def batch(**changes: Any) -> bytes:
        entries = tuple(
            HeldMessage(message=Message.model_validate(_message(chance)), process_at=wake_at + number)
            for number in range(3)
        )
        dumped = Batch(level=RELEASE.name, wake_at=wake_at, entries=entries).dumped()
        return gzip.compress(json.dumps(json.loads(gzip.decompress(dumped)) | changes).encode(), mtime=0)

    def group(*images: list[Any], lane: str = "slow") -> dict[str, Any]:
        return {"tenant_id": TENANT, "lane": lane, "images": list(images)}

    unknown = [_message(chance)["image_id"], 1, 0, 0]
    with_a_neighbour = [group(unknown, lane="express")]
    if neighbour is not None:
        message = neighbour.message
        own = [message.image_id, message.run, message.schedule, neighbour.process_at - wake_at]
        with_a_neighbour.append({"tenant_id": message.tenant_id, "lane": message.lane, "images": [own]})
    made = (
        ("no gzip", f"junk {_nonce(chance)}".encode(), DEAD_LETTER),
        ("no JSON", gzip.compress(_nonce(chance).encode(), mtime=0), DEAD_LETTER),
        ("cut in half", batch()[:60], DEAD_LETTER),
        ("of version 2", batch(v=2), DEAD_LETTER),
        ("of no images but junk", batch(groups=[group(["junk", 1, 0, 0])]), DEAD_LETTER),
        ("of images in 10^30", batch(groups=[group([*unknown[:3], 10**30])]), ANY_END),
        ("of images below 0", batch(groups=[group([*unknown[:3], -(10**15)])]), ANY_END),
        ("of an unknown lane", batch(groups=with_a_neighbour), ANY_END),
        ("of an unknown level", batch(level="centuries"), ANY_END),
        ("empty", batch(groups=[]), ANY_END),
    )
    return tuple(
        DamagedBatch(name=name, key=_key_of(dumped, wake_at), dumped=dumped, ends=ends) for name, dumped, ends in made
    )


def bad_row(item: Mapping[str, Any], *, seed: int, now: Milliseconds, lane: str) -> dict[str, Any]:
    """A copy of a real row's item that this version cannot read, under another id: its recipe has an unknown field. It
    is `pending`, due, and first in its partition of the due index and of its lane's waiting index."""
    chance = random.Random(f"{seed} rows {lane}")
    shard = due_shard_of(item["image_id"]["S"])
    image_id = _image_id(chance)
    while due_shard_of(image_id) != shard:
        image_id = _image_id(chance)
    first = str(now - 86_400_000)
    recipe = json.loads(item["recipe"]["S"]) | {"from_a_later_version": True}
    return {
        **{name: value for name, value in item.items() if name not in _OF_LATER},
        "image_id": {"S": image_id},
        "lane": {"S": lane},
        "status": {"S": "pending"},
        "recipe": {"S": json.dumps(recipe)},
        "due_at": {"N": first},
        "due_shard": {"S": shard},
        "waiting_since": {"N": first},
        "waiting_shard": {"S": waiting_shard_of(lane, shard)},
    }


@dataclass(frozen=True, kw_only=True)
class BadWebhooks:
    """The webhooks of a tenant of which two rows are a newer version's: one webhook's own, and that of the delivery
    which is to try another one that rests."""

    unreadable: dict[str, Any]
    sibling: dict[str, Any]
    resting: dict[str, Any]
    probe: dict[str, Any]
    waiting: dict[str, Any]


def bad_webhooks(seed: int, *, tenant_id: str, now: Milliseconds) -> BadWebhooks:
    """The items of such webhooks. Nothing can be sent to any of them, and the sibling is disabled, so that it only
    notes its events."""
    chance = random.Random(f"{seed} webhooks {tenant_id}")

    def endpoint(place: int, **stated: Any) -> Endpoint:
        url = f"https://poison-{place}.invalid/"
        endpoint_id = endpoint_id_from(place, chance.randbytes(RANDOM_BYTES))
        usual: dict[str, Any] = {"events": ("*",), "created_at": now, "due_at": now - 86_400_000}
        return Endpoint(tenant_id=tenant_id, endpoint_id=endpoint_id, url=url, **usual | stated)

    def delivery(number: int) -> dict[str, Any]:
        made = new_delivery(
            endpoint_id=resting.endpoint_id,
            tenant_id=tenant_id,
            event_id=f"poison-{number}",
            event_type="image.done",
            time=now - 86_400_000 + number,
            body="{}",
            now=now - 86_400_000,
        )
        return DELIVERIES.item_of(made)

    def item_of(row: Endpoint) -> dict[str, Any]:
        key = {"place": {"N": str(place_of(row.endpoint_id))}, "due_shard": {"S": row.due_shard}}
        return ENDPOINTS.item_of(row) | key

    resting = endpoint(9, events=("webhook.failing",), failures=3, failing_since=now - 1, rests_until=now - 1)
    probe = delivery(1)
    return BadWebhooks(
        unreadable=item_of(endpoint(7)) | {"state": {"S": "of a later version"}},
        sibling=item_of(endpoint(8, state=EndpointState.DISABLED, due_at=None)),
        resting=item_of(replace(resting, probe=probe["delivery_id"]["S"])),
        probe=probe | {"status": {"S": "of a later version"}},
        waiting=delivery(2),
    )


_OF_LATER = frozenset(
    {
        *("completed_at", "completed_version", "lease_until", "claimed_by", "error"),
        *("dead_letter", "process_at", "expires_at"),
    }
)


def upload_notification(key: str) -> str:
    """S3's event of an object."""
    record = {"eventSource": "aws:s3", "eventName": "ObjectCreated:Post", "s3": {"object": {"key": key, "size": 1}}}
    return json.dumps({"Records": [record]})


def _batch_dead_letter(key: str) -> str:
    return json.dumps({"v": 1, "batch": key, "position": 0, "error": "e", "cause": "c", "execution": "arn:none"})


def _key(chance: random.Random, now: Milliseconds) -> str:
    return _key_of(_nonce(chance).encode(), now)


def _key_of(dumped: bytes, wake_at: Milliseconds) -> str:
    """The key of such an object, however damaged it is: `batch_key` only needs the batch's time."""
    return batch_key(Batch(level=RELEASE.name, wake_at=wake_at, entries=()), dumped)


def _message(chance: random.Random) -> dict[str, Any]:
    return {
        "v": 1,
        "image_id": _image_id(chance),
        "tenant_id": TENANT,
        "lane": chance.choice(sorted(LANE_QUEUES)),
        "run": 1,
        "schedule": 0,
    }


def _text(message: Mapping[str, Any]) -> str:
    return json.dumps(message)


def _image_id(chance: random.Random) -> str:
    return image_id_from_bits(chance.randbytes(16))


def _nonce(chance: random.Random) -> str:
    return chance.randbytes(8).hex()
