"""A process that is ready to strike histories as soon as it has imported this."""

from tests.simulation.crashes.exploration import prepare
from tests.support.shared_memory import share_with_forks

prepare()
share_with_forks()
