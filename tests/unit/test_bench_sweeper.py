"""The sweeper benchmark's own parts: works at once, the processor, latencies, the indexes, and what is played."""

from __future__ import annotations

from benchmarks.sweeper.scenarios import Pile, after_an_outage, behind_a_pile


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
