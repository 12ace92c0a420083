"""The only in-memory implementation of the ports: unit tests, the contract suite and the simulation share it."""

from proof.fakes.originals import FakeVersionedOriginals
from proof.fakes.stores import FakeDeadLetters, FakeImages, FakeLanes, FakeOnce, FakeOriginals, FakeOutputs
from proof.fakes.world import World

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
