"""An operator's replay that dies at every call, and is run again: each image is replayed once, and none is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from darkroom.domain.dead_letters.dead_letter import Verdict
from darkroom.domain.images.claim import Claim, claim
from darkroom.domain.images.image import DeadLetterState, Image, Status
from darkroom.domain.images.transitions import complete
from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.dead_letters.cases import CasePorts
from darkroom_cli.operator.operations.dead_letters.drop_dead_letters import DropDeadLettersPorts, drop_dead_letters
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import DeadLetterSelection, list_dead_letters
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    Counts,
    NotReplayable,
    QueuePorts,
    replay_dead_letters,
    replay_image,
    replay_queue,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.support.dead_letters import given_up
from tests.support.fakes import FakeDeadLetters, FakeImages, FakeLanes, World
from tests.support.fakes.audit import trail_of
from tests.support.fakes.dead_letters import FakeRedrives
from tests.support.fakes.rows import lease
from tests.support.faults import Faults, Mode, ProcessDied, at
from tests.support.images import NOW

pytestmark = pytest.mark.promise("replay-faults")

MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")
MEANWHILE = ("nobody", "the sweeper", "the sweeper and a worker")


@dataclass
class Night:
    """Four images with dead letters: one given up, one with the same dead letter twice, one whose dead letter has yet
    to be placed and that has a raw one, and one that is done."""

    images: FakeImages = field(default_factory=FakeImages)
    lanes: FakeLanes = field(default_factory=FakeLanes)
    dead_letters: FakeDeadLetters = field(default_factory=FakeDeadLetters)
    now: int = NOW + 60_000

    def __post_init__(self) -> None:
        self.redrives = FakeRedrives(self.dead_letters, self.lanes)
        rows = [given_up(number) for number in range(4)]
        rows[2] = replace(rows[2], dead_letter=DeadLetterState.OWED, due_at=NOW)
        rows[3] = replace(rows[3], status=Status.DONE, dead_letter=None)
        for number, row in enumerate(rows):
            self.images.rows[row.image_id] = row
            body = f'{{"image_id":"{row.image_id}","tenant_id":"default","lane":"slow","run":1,"schedule":0}}'
            for _ in range(2 if number == 1 else 1):
                self.dead_letters.add("slow", body)

    def operator(self, faults: Faults) -> QueuePorts:
        return QueuePorts(
            audit=trail_of(),
            images=faults.around("images", self.images),
            lanes=faults.around("lanes", self.lanes),
            dead_letters=faults.around("letters", self.dead_letters),
            redrives=faults.around("redrives", self.redrives),
            clock=lambda: self.now,
            pause=self.pause,
        )

    def pause(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def meanwhile(self, who: str) -> None:
        """The minutes until the operator runs the same command again."""
        self.now += 61_000
        self.dead_letters.hidden.clear()
        if "sweeper" in who:
            self.sweep()
        if "worker" in who:
            self.work()

    def sweep(self) -> None:
        world = World(images=self.images, lanes=self.lanes, dead_letters=self.dead_letters, now=self.now)
        sweep = world.sweep()
        assert not sweep.errors

    def work(self) -> None:
        """Takes every message in a lane; developing succeeds at once."""
        messages = list(self.lanes.sent)
        self.lanes.sent.clear()
        for message in messages:
            row = self.images.rows[message.image_id]
            decision = claim(row, message, lease(now=self.now))
            if isinstance(decision, Claim):
                claimed = self.images.change(row, decision.image)
                self.images.change(claimed, complete(claimed, (), notices=(), now=self.now))

    def settle(self) -> None:
        """Hours pass in which sweeper and worker run."""
        for _ in range(6):
            self.work()
            self.now += 1_300_000
            self.dead_letters.hidden.clear()
            self.sweep()
        self.work()


def letter_by_letter(night: Night, ports: QueuePorts) -> None:
    pace = RateLimiter(per_second=1000, clock=ports.clock, pause=ports.pause)
    assert replay_dead_letters(ports, "slow", DeadLetterSelection(), pace=pace, stop=lambda: False, counts=Counts())


def all_at_once(night: Night, ports: QueuePorts) -> None:
    replay_queue(ports, "slow", per_second=100, stop=lambda: False, counts=Counts())


def image_by_image(night: Night, ports: QueuePorts) -> None:
    for number in range(3):
        try:
            replay_image(ports, f"{number:026d}")
        except NotReplayable as refusal:  # an earlier try has opened it
            assert "in run 2" in str(refusal)


type Command = Callable[[Night, QueuePorts], None]
COMMANDS: tuple[Command, ...] = (letter_by_letter, all_at_once, image_by_image)


def calls_of(command: Command) -> list[str]:
    faults, night = Faults(), Night()
    command(night, night.operator(faults))
    return faults.calls


PLACES = [
    pytest.param(command, at, id=f"{command.__name__}-{at}-{name}")
    for command in COMMANDS
    for at, name in enumerate(calls_of(command))
]


def test_every_kind_of_call_is_struck() -> None:
    assert set(calls_of(letter_by_letter)) == {
        "images.get", "images.change", "lanes.send", "letters.take", "letters.give_back", "letters.remove",
    }  # fmt: skip
    assert {"redrives.latest", "redrives.start", "images.change", "letters.depth"} <= set(calls_of(all_at_once))


@pytest.mark.parametrize(("command", "number"), PLACES)
def test_a_replay_that_dies_and_is_typed_again_replays_each_image_once(command: Command, number: int) -> None:
    for mode in MODES:
        for who in MEANWHILE:
            night, faults = Night(), Faults(at(number, mode))
            with suppress(ProcessDied, Retryable):
                command(night, night.operator(faults))
            assert faults.struck
            night.meanwhile(who)
            command(night, night.operator(Faults()))
            night.settle()
            assert_each_once(night)


def assert_each_once(night: Night) -> None:
    rows: list[Image] = [night.images.rows[f"{number:026d}"] for number in range(4)]
    assert [(row.status, row.run) for row in rows] == [(Status.DONE, 2)] * 3 + [(Status.DONE, 1)]
    assert [row.due_at for row in rows] == [None] * 4
    listing = list_dead_letters(
        CasePorts(dead_letters=night.dead_letters, images=night.images, clock=lambda: night.now),
        ("slow",),
        limit=100,
    )
    assert {case.verdict for case in listing.cases} <= {Verdict.SETTLED}, "what is left can be dropped"
    drop_dead_letters(
        DropDeadLettersPorts(
            audit=trail_of(), dead_letters=night.dead_letters, images=night.images, clock=lambda: night.now
        ),
        "slow",
        DeadLetterSelection(),
        force=False,
        stop=lambda: False,
        counts=Counts(counts=Counter()),
    )
    assert night.dead_letters.messages["slow"] == []
