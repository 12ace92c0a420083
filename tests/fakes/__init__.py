"""The only in-memory implementation of the ports: unit tests, the contract suite and the simulation share it."""

from tests.fakes.originals import FakeVersionedOriginals
from tests.fakes.stores import FakeDeadLetters, FakeImages, FakeLanes, FakeOnce, FakeOriginals, FakeOutputs
from tests.fakes.world import World

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
