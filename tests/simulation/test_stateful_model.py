"""Generated histories: nothing accepted is lost, doubled or stuck in them, and everything has happened in them."""

from __future__ import annotations

import pytest

from tests.simulation.model.__main__ import never_happened, run, table
from tests.simulation.model.histories import Histories, RealHistories

pytestmark = pytest.mark.promise("random-histories")


@pytest.mark.parametrize("histories", [100, pytest.param(400, marks=pytest.mark.long)])
def test_nothing_is_lost_doubled_or_stuck_in_hundreds_of_histories(histories: int) -> None:
    counts = run(Histories, histories=histories)
    print(table(counts))
    assert histories < 400 or never_happened(counts) == [], "a few histories may leave out what is rare"


def test_the_real_engine_gives_the_same_bytes_in_every_history() -> None:
    assert run(RealHistories, histories=15).endings["done"]
