"""The sweeper benchmark's own parts: works at once, the processor, latencies, the indexes, and what is played."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.sweeper.loads import MINUTE, NOISY, TENANTS, Load
from benchmarks.sweeper.plane import Plane
from benchmarks.sweeper.scenarios import Pile, after_an_outage, behind_a_pile, steady_removals
from benchmarks.sweeper.stores import LAG_MILLISECONDS, IndexedImages
from darkroom.domain.images.image import DUE_PARTITIONS, DUE_SHARD_NAMES
from tests.support.fakes.stores import FakeImages
from tests.support.virtual.virtual_time import START, VirtualTime


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


def test_what_goes_wrong_in_a_sweep_is_raised() -> None:
    plane = Plane(day="good", seed=1)
    broken = replace(Load(1).lost(TENANTS[1], START - MINUTE), lane="unknown")
    plane.images.put([broken])
    plane.sweep_every_minute()
    plane.run(30)
    with pytest.raises(Exception, match="unknown"):
        plane.close()
