"""The timing wheel: which images wait together, until when, and what is written down."""

import gzip
import json
import random
import re
import tracemalloc
import zlib
from collections import Counter
from functools import partial

import pytest

from darkroom.domain.kernel.lanes import LANE_DELAY_SECONDS, LANES
from darkroom.domain.schedules.hold import (
    BATCH_LIMIT,
    FULL_SLOT,
    HELD_AT_MOST_SECONDS,
    MAX_BATCH_BYTES,
    RELEASE,
    WHEEL,
    Batch,
    HeldMessage,
    UnreadableBatch,
    batch_key,
    batches_of,
    execution_name,
    is_near,
    level_of,
    read_batch,
    read_stored_batch,
    unplaceable_because,
)
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from tests.support.fakes.damage import damaged
from tests.support.schedules import DAY, NOW, entry


def spread(count: int, seconds: float) -> list[HeldMessage]:
    chance = random.Random(7)
    return [entry(number, chance.uniform(LANE_DELAY_SECONDS + 0.001, seconds)) for number in range(count)]


@pytest.mark.parametrize("days", [0.02, 0.25, 1, 7, 28, 30, 364])
def test_every_image_waits_in_one_batch_that_wakes_before_its_time(days: float) -> None:
    entries = spread(2_000, days * DAY)
    batches = list(batches_of(entries, NOW))
    assert sorted((entry for batch in batches for entry in batch.entries), key=hash) == sorted(entries, key=hash)
    for batch in batches:
        assert batch.wake_at % 1000 == 0, "Step Functions would cut the rest off, and wake it early"
        first, last = batch.entries[0].process_at, batch.entries[-1].process_at
        assert NOW < batch.wake_at <= first
        if batch.is_release:
            assert last - batch.wake_at <= LANE_DELAY_SECONDS * 1000, "its lane can hold all of it from then on"
        else:
            assert first - batch.wake_at >= LANE_DELAY_SECONDS * 1000, "there is time to hold it once more"


def test_a_release_leaves_time_for_crashes_before_anything_is_late() -> None:
    (batch,) = batches_of([entry(1, 3600)], NOW)
    assert batch.is_release
    assert batch.entries[0].process_at - batch.wake_at >= RELEASE.lead_seconds * 1000


def test_few_at_one_time_wait_with_others_of_their_distance_and_many_in_their_release_bucket_at_once() -> None:
    (batch,) = batches_of([entry(number, 30 * DAY) for number in range(FULL_SLOT)], NOW)
    assert (batch.is_release, len(batch.entries)) == (True, FULL_SLOT)
    (batch,) = batches_of([entry(number, 30 * DAY) for number in range(FULL_SLOT - 1)], NOW)
    assert batch.level == "weeks"


@pytest.mark.parametrize(("seconds", "count"), [(3600, 2), (3600, 600), (30 * DAY, 600)])
def test_what_is_released_together_is_of_one_lane_whose_pace_it_keeps(seconds: float, count: int) -> None:
    batches = list(batches_of([entry(n, seconds, lane=("fast", "slow")[n % 2]) for n in range(count)], NOW))
    lanes = [{entry.message.lane for entry in batch.entries} for batch in batches if batch.is_release]
    assert sorted(map(sorted, lanes)) == [["fast"], ["slow"]]


def test_a_year_of_scattered_images_is_few_objects() -> None:
    batches = list(batches_of(spread(7_000, MAX_DELAY_SECONDS), NOW))
    assert len(batches) < 100


def test_a_batch_has_a_limit() -> None:
    batches = list(batches_of([entry(number, 3600) for number in range(BATCH_LIMIT + 1)], NOW))
    assert sorted(len(batch.entries) for batch in batches) == [1, BATCH_LIMIT]


@pytest.mark.guards("hold-slot-never-reentered")
def test_each_ring_brings_its_images_to_a_narrower_one() -> None:
    names = [level.name for level in WHEEL]
    # Also the last of each slot, which are further off than the narrower ring reaches.
    for days in (*(1 + hours / 4 / 24 for hours in range(24)), 6.9, *range(8, 28), 27.9, 100, 364):
        (batch,) = batches_of([entry(1, days * DAY)], NOW)
        for clock in (0, -3_000, -60_000):  # of whoever holds it once more
            level = level_of(batch.entries[0].process_at, batch.wake_at + clock)
            assert names.index(level.name) < names.index(batch.level)


def test_the_wheel_reaches_as_far_as_clients_may_schedule_and_outlives_no_execution() -> None:
    assert WHEEL[-1].horizon_seconds >= MAX_DELAY_SECONDS
    assert level_of(NOW + MAX_DELAY_SECONDS * 1000, NOW).name == "weeks"
    # A year in all (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
    assert HELD_AT_MOST_SECONDS + LANE_DELAY_SECONDS < 365 * DAY


@pytest.mark.parametrize(("seconds", "near"), [(-5, True), (0, True), (900, True), (900.001, False)])
def test_a_lane_holds_what_is_near(seconds: float, near: bool) -> None:
    assert is_near(entry(1, seconds), NOW) == near


def test_a_batch_is_read_as_it_was_written() -> None:
    entries = (entry(3, 7200, schedule=4), entry(1, 7200.5, tenant_id="acme"), entry(2, 7201))
    batch = Batch(level="hours", wake_at=NOW // 1000 * 1000, entries=entries)
    assert read_batch(batch.dumped()) == batch


def test_the_same_images_are_the_same_object_in_whatever_order_they_came_and_after_a_move_there_and_back_another() -> (
    None
):
    forwards, other = (list(batches_of(entries, NOW)) for entries in (spread(50, DAY), spread(50, DAY)[::-1]))
    assert {batch_key(batch, batch.dumped()) for batch in forwards} == {
        batch_key(batch, batch.dumped()) for batch in other
    }
    keys = set()
    for schedule in (0, 2):
        (batch,) = batches_of([entry(1, DAY, schedule=schedule)], NOW)
        keys.add(batch_key(batch, batch.dumped()))
    assert len(keys) == 2


def test_names_are_ones_that_s3_and_step_functions_take() -> None:
    (batch,) = batches_of([entry(1, DAY)], NOW)
    key = batch_key(batch, batch.dumped())
    assert key.startswith("holds/2026-11-2") and ":" not in key and key.endswith(".json.gz")
    assert len(execution_name(key)) <= 78, "a dash and a digit for another attempt must fit into 80 characters"
    assert execution_name(key).replace("-", "").isalnum()


EMPTY = Batch(level="release", wake_at=0, entries=()).dumped()


@pytest.mark.guards("hold-cut-off-batch", "hold-trailing-data-refused", "hold-wake-time-bounds")
@pytest.mark.parametrize(
    "dumped",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(b"{}"),
        gzip.compress(json.dumps({"v": 2, "level": "release", "wake_at": 0, "groups": []}).encode()),
        gzip.compress(json.dumps({"v": 1, "level": "release", "wake_at": 0, "groups": [], "more": 1}).encode()),
        EMPTY[:-4],
        EMPTY + b"\0",
        EMPTY + EMPTY,
        gzip.compress(b"[" * 1_000_000),
        gzip.compress(b'{"v":1,"level":"release","wake_at":%s,"groups":[]}' % (b"9" * 5_000)),
        gzip.compress(b'{"v":1,"level":"release","wake_at":%s,"groups":[]}' % (b"9" * 500 + b"000")),
        gzip.compress(b'{"v":1,"level":"release","wake_at":1001,"groups":[]}'),
        gzip.compress(b'{"v":1,"level":"release","wake_at":-1000,"groups":[]}'),
        gzip.compress(b'{"v":1,"level":"release","wake_at":1e3,"groups":[]}'),
        gzip.compress(b'{"v":1,"level":"release","wake_at":0,"groups":[{"tenant_id":"t","lane":"","images":[[0]]}]}'),
        gzip.compress(b'{"v":1,"level":"\xff","wake_at":0,"groups":[]}'),
    ],
    # gzip writes the time into its output, and two workers must get the same names.
    ids=[
        "empty",
        "no gzip",
        "no JSON",
        "no fields",
        "another version",
        "one field more",
        "cut off",
        "a byte behind it",
        "twice",
        "deep",
        "5,000 digits",
        "503 digits",
        "no whole second",
        "before 1970",
        "a float",
        "no images",
        "no text",
    ],
)
def test_what_is_no_batch_of_this_version_is_not_guessed_at(dumped: bytes) -> None:
    with pytest.raises(UnreadableBatch):
        read_batch(dumped)


@pytest.mark.guards("hold-decompressed-size-bound")
def test_an_object_that_unfolds_to_far_more_than_any_batch_is_given_up_after_the_most_that_a_batch_has() -> None:
    squeezer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    bomb = b"".join([*(squeezer.compress(bytes(2**24)) for _ in range(16)), squeezer.flush()])
    tracemalloc.start()
    with pytest.raises(UnreadableBatch, match="too long"):
        read_batch(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < 2**19 and peak < 3 * MAX_BATCH_BYTES


def test_the_largest_batch_can_be_read() -> None:
    tenants = ["\\" * 124 + f"{number:04d}" for number in range(BATCH_LIMIT)]
    entries = [
        entry(number, 3600 + number % 600 / 1000, schedule=10**9, tenant_id=tenants[number])
        for number in range(BATCH_LIMIT)
    ]
    (batch,) = batches_of(entries, NOW)
    assert read_batch(batch.dumped()) == batch


@pytest.mark.guards("hold-error-text-bound")
def test_an_error_about_ten_thousand_images_is_short() -> None:
    images = [[f"{number:026d}", "one", 0, 0] for number in range(BATCH_LIMIT)]
    document = {"v": 1, "level": "release", "wake_at": 0, "groups": [{"tenant_id": "", "lane": "", "images": images}]}
    with pytest.raises(UnreadableBatch) as raised:
        read_batch(gzip.compress(json.dumps(document).encode()))
    assert len(str(raised.value)) < 1_000


DAMAGES = 20_000


@pytest.mark.guards("hold-batch-digest", "hold-decompression-damage")
def test_every_damage_of_an_object_is_an_unreadable_batch() -> None:
    chance = random.Random(20261122)
    images = [entry(number, 7200 + number, tenant_id="default" if number % 3 else "acme") for number in range(12)]
    (batch,) = batches_of(images, NOW)
    dumped = batch.dumped()
    key, still_decode = batch_key(batch, dumped), 0
    assert read_stored_batch(key, dumped) == batch
    for number in range(DAMAGES):
        changed = damaged(dumped, chance)
        with pytest.raises(UnreadableBatch):
            read_stored_batch(key, changed)
        try:
            assert read_batch(changed) == batch, f"damage {number} is another batch"
            still_decode += 1
        except UnreadableBatch:
            pass
    assert still_decode, "what gzip does not see is among the damages, and only the key tells it"


def _constant(value: bytes, _: object) -> bytes:
    return value


def test_whatever_stands_in_an_object_it_is_a_batch_or_unreadable() -> None:
    chance = random.Random(20261122)
    images = [entry(number, 7200 + number, lane=("slow", "fast", "newer")[number % 3]) for number in range(6)]
    text = gzip.decompress(Batch(level="hours", wake_at=0, entries=tuple(images)).dumped())
    outcomes = Counter[str]()
    for _ in range(DAMAGES // 4):
        changed = damaged(text, chance)
        if chance.random() < 0.2:
            number = chance.choice((b"-1", b"1e9", b"9" * 40, b"9" * 5_000, b"null", b"[" * 5_000, b'"\\ud800"'))
            changed = re.sub(rb"\d+", partial(_constant, number), changed, count=chance.randrange(1, 9))
        try:
            batch = read_batch(gzip.compress(changed, compresslevel=1))
        except UnreadableBatch:
            outcomes["unreadable"] += 1
            continue
        outcomes["read"] += 1
        for held in batch.entries:
            unplaceable_because(held, NOW, LANES)
    assert outcomes.keys() == {"unreadable", "read"}


@pytest.mark.guards("hold-time-lower-bound", "hold-time-upper-bound", "hold-unknown-lane")
@pytest.mark.parametrize(
    ("seconds", "lane", "why"),
    [
        (3600, "slow", None),
        (MAX_DELAY_SECONDS, "fast", None),
        (-NOW / 1000, "slow", None),
        (HELD_AT_MOST_SECONDS, "slow", None),
        (HELD_AT_MOST_SECONDS + 1, "slow", "364 days"),
        (10.0**27, "slow", "364 days"),
        (-NOW / 1000 - 1, "slow", "1970"),
        (3600, "newer", "'newer'"),
    ],
)
def test_only_what_a_lane_of_this_version_can_be_brought_is_placed(seconds: float, lane: str, why: str | None) -> None:
    reason = unplaceable_because(entry(1, seconds, lane=lane), NOW, LANES)
    assert (reason is None) == (why is None) and (why or "") in (reason or "")
