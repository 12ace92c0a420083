"""Thousands of delays from a second to 364 days: none early, lost, doubled, late or released after its withdrawal."""

import pytest

from tests.simulation.delays import MUST_HAPPEN, Simulation

pytestmark = pytest.mark.promise("delays")


def test_every_delayed_image_comes_in_its_time() -> None:
    simulation = Simulation(seed=20261121, images=5_000)
    simulation.run()
    counts = simulation.counts + simulation.faults.struck
    assert not simulation.broken, (simulation.seed, simulation.examples)
    assert [name for name in MUST_HAPPEN if not counts[name]] == []


def test_without_the_check_of_the_time_the_simulation_sees_early_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the guard `delay-no-early-start` keeps from happening: the simulation can fail."""
    monkeypatch.setattr("tests.simulation.delays.SKEW_MILLISECONDS", -1)
    monkeypatch.setattr("tests.simulation.delays.ALLOWANCE_SECONDS", -60)
    simulation = Simulation(seed=1, images=200)
    monkeypatch.setattr(simulation.chance, "randint", lambda low, high: 0)
    simulation.run()
    assert simulation.broken["late"]
