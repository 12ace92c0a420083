"""The sweeper benchmark's own parts: works at once, the processor, latencies, the indexes, and what is played."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest

from benchmarks.sweeper.loads import MINUTE, NOISY, TENANTS, Load
from benchmarks.sweeper.plane import Plane
from benchmarks.sweeper.scenarios import Pile, after_an_outage, behind_a_pile, idle, steady_removals
from benchmarks.sweeper.stores import LAG_MILLISECONDS, IndexedImages
from benchmarks.virtual.latencies import DAYS, Latency
from benchmarks.virtual.processor import WHOLE_MEGABYTES, Processor
from benchmarks.virtual.virtual_time import START, VirtualTime
from darkroom.domain.images.image import DUE_PARTITIONS, DUE_SHARD_NAMES
from tests.support.fakes.stores import FakeImages


def test_works_at_once_take_as_long_as_the_slowest_and_answer_in_their_order() -> None:
    time = VirtualTime()

    def work(milliseconds: float) -> float:
        time.pause(milliseconds)
        return milliseconds

    works = [lambda ms=ms: work(ms) for ms in (30.0, 10.0, 20.0)]
    assert time.at_once(works) == [30, 10, 20]
    assert time.elapsed() == 30
    assert time.at_once(works, most=2) == [30, 10, 20]
    assert time.elapsed() == 60
    assert time.at_once([]) == []
    time.close()


def test_works_at_once_raise_the_first_failure_after_all_have_ended() -> None:
    time = VirtualTime()
    ended = []

    def fail(name: str, milliseconds: float) -> None:
        time.pause(milliseconds)
        ended.append(name)
        raise LookupError(name)

    with pytest.raises(LookupError, match="first"):
        time.at_once([lambda: fail("first", 20), lambda: fail("second", 10), lambda: ended.append("third")])
    assert ended == ["third", "second", "first"]
    time.close()


def test_a_processor_serves_one_thread_at_a_time_by_the_share_that_its_memory_gives() -> None:
    time = VirtualTime()
    half, twice = Processor(time, megabytes=WHOLE_MEGABYTES // 2), Processor(time, megabytes=2 * WHOLE_MEGABYTES)
    assert [round(half.take(10)), round(half.take(10))] == [20, 40]
    assert [twice.take(10), twice.take(10)] == [10, 20]
    time.pause(30)
    assert (round(half.take(0)), twice.take(5)) == (10, 5)
    assert (round(half.busy_milliseconds), twice.busy_milliseconds) == (40, 25)


@pytest.mark.parametrize("latency", [latency for day in DAYS.values() for latency in day.values()])
def test_latencies_have_their_median_and_their_p99(latency: Latency) -> None:
    chance = random.Random(1)
    drawn = sorted(latency.draw(chance) for _ in range(20_000))
    assert median(drawn) == pytest.approx(latency.median, rel=0.03)
    assert drawn[19_800] == pytest.approx(latency.p99, rel=0.1)


def test_indexes_list_what_the_fake_lists_once_a_write_shows() -> None:
    time, load, chance = VirtualTime(), Load(1), random.Random(2)
    images, plain = IndexedImages(time=time), FakeImages()
    rows = [load.lost(NOISY, START + at * 1000, lane=chance.choice(("fast", "slow"))) for at in range(60)]
    images.put(rows[:30])
    plain.rows.update({row.image_id: row for row in rows[:30]})
    for row in rows[30:]:
        images.create(row)
        plain.create(row)
    for row in chance.sample(rows, 40):
        for_both = replace(row, due_at=chance.choice((None, START + chance.randrange(90_000))), waiting_since=None)
        images.change(row, for_both)
        plain.change(row, for_both)
    shards = [shard for partitions in DUE_PARTITIONS.values() for shard in partitions]
    asked = [
        (shard, START + 60_000, limit, latest) for shard in shards for limit in (2, 90) for latest in (False, True)
    ]
    assert [*images.due(shards[0], START + 60_000, 90)] != [*plain.due(shards[0], START + 60_000, 90)]
    time.pause(LAG_MILLISECONDS)
    for shard, now, limit, latest in asked:
        due = [*images.due(shard, now, limit, latest_first=latest)]
        assert due == [*plain.due(shard, now, limit, latest_first=latest)]
    places = [(lane, shard) for lane in ("fast", "slow") for shard in DUE_SHARD_NAMES]
    assert [images.oldest_waiting(*place) for place in places] == [plain.oldest_waiting(*place) for place in places]


def test_lost_messages_of_others_are_rescued_behind_a_pile_which_is_worked_off_as_well() -> None:
    pile = Pile(deletions=300, announcements=300, fetches=30)
    row = behind_a_pile(day="good", seed=1, pile=pile, victims=6, minutes=7)
    assert row["unrescued"] == 0
    assert row["outcomes"]["removed"] >= 300
    assert row["outcomes"]["expired"] == 300
    assert row["outcomes"]["rescued"] >= 36


def test_messages_that_could_not_be_sent_are_sent_once_each_after_an_outage() -> None:
    row = after_an_outage(day="good", seed=1, rows=200)
    assert (row["rescued"], row["sent_twice"]) == (200, 0)


def test_every_tombstone_has_the_look_that_removes_and_the_last_one() -> None:
    row = steady_removals(day="good", seed=1, per_minute=30, minutes=3)
    assert row["removed"] + row["waiting_at_the_end"] == pytest.approx(2 * 90, abs=3)


def test_a_smaller_memory_makes_an_idle_sweep_longer_and_leaves_its_calls() -> None:
    small, large = (idle(day="usual", seed=1, megabytes=megabytes, sweeps=3) for megabytes in (512, 1769))
    assert small["milliseconds_each"] > large["milliseconds_each"]
    assert small["calls_each"] == large["calls_each"]


def test_what_goes_wrong_in_a_sweep_is_raised() -> None:
    plane = Plane(day="good", seed=1)
    broken = replace(Load(1).lost(TENANTS[1], START - MINUTE), lane="unknown")
    plane.images.put([broken])
    plane.sweep_every_minute()
    plane.run(30)
    with pytest.raises(Exception, match="unknown"):
        plane.close()
