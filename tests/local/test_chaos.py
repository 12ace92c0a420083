"""Poison in every queue, row, record and batch, among kills, pauses and duplicates: its neighbours notice nothing.

The short form of `python -m tests.chaos`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.__main__ import Found, rehearse
from tests.chaos.comparison import SWEEPS_APART_SECONDS
from tests.local.local_stack import LocalStack
from tests.support.running.stack import Stack

pytestmark = pytest.mark.promise("poison")

IMAGES = 36
"""Enough for one image of every kind to be struck."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """Both rehearsals, on their own stack: they move its clock."""
    local = LocalStack(state=tmp_path_factory.mktemp("chaos"))
    with local.serving("--access", "keys"):
        yield rehearse(Stack(state=local.state), images=IMAGES, seed=20261122)


@pytest.mark.parametrize("rehearsal", ["without poison", "with poison"])
def test_nothing_is_lost_doubled_or_stuck_and_every_dead_letter_and_all_poison_is_where_it_should_be(
    results: Found, rehearsal: str
) -> None:
    account = results.accounts[rehearsal]
    assert account.broken == []
    assert account.deaths and account.pauses and account.duplicates, "it was chaos"


def test_no_neighbour_of_poison_is_a_minute_late(results: Found) -> None:
    assert results.comparison is not None
    assert results.comparison.late == ()
    assert results.comparison.compared >= IMAGES // 2
    assert results.accounts["with poison"].poison > 100


@pytest.mark.parametrize("rehearsal", ["without poison", "with poison"])
def test_the_sweeper_goes_on(results: Found, rehearsal: str) -> None:
    assert results.accounts[rehearsal].longest_gap_seconds <= SWEEPS_APART_SECONDS
