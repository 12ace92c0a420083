"""A process that is ready to strike histories as soon as it has imported this."""

from tests.simulation.crashes.exploration import prepare

prepare()
