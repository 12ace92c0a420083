"""The only in-memory implementation of the ports: unit tests, the contract suite and the simulation share it."""

import logging

from tests.support.fakes.originals import FakeVersionedOriginals
from tests.support.fakes.stores import FakeDeadLetters, FakeImages, FakeLanes, FakeOnce, FakeOriginals, FakeOutputs
from tests.support.fakes.world import World

# In the simulated worlds bookkeeping fails thousands of times, and each time is a warning. That is no result:
# without a handler Python would print them all between the results.
logging.getLogger("darkroom.bookkeeping").addHandler(logging.NullHandler())

__all__ = [
    "FakeDeadLetters",
    "FakeImages",
    "FakeLanes",
    "FakeOnce",
    "FakeOriginals",
    "FakeOutputs",
    "FakeVersionedOriginals",
    "World",
]
