"""What happens to each image of a seed, decided before the first is sent, so that both rehearsals follow one plan."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from darkroom.domain.kernel.lanes import FAST, SLOW
from tests.support.running.conditions import ACCEPTOR, FETCHER, HOLDER, RELEASER, SWEEPER, TRANSCODER, UPLOAD_ACCEPTOR

PHOTOS = 12
"""Distinct photos; an image's photo is recognised by what each lane makes of it undisturbed."""

SHORT_DELAY = "PT12S"
"""A delay that gives a client time to repeat itself before the first attempt."""

INSTANTS_SECONDS = (45 * 60, 56 * 60, 8 * 3600)
"""When scheduled images are due, after the rehearsal's beginning: late enough for everything else to be over, in two
slots of the release ring, and on an outer ring first."""


SHORT_IMAGES = 100
"""Smaller plans have one instant, and no process that holds images dies: each costs seconds of moving the clock."""


class Way(StrEnum):
    """How an image is uploaded."""

    DIRECT = "direct"
    SHORTLY = "shortly"
    FORM = "form"
    FETCHED = "fetched"
    SCHEDULED = "scheduled"


@dataclass(frozen=True, kw_only=True)
class Strike:
    """Where a process of `function` dies: at its AWS call number `call` (counting only `operation`, if that is given),
    before the call is made or `after` it was answered, in the first invocation whose event contains the target image,
    or in the next invocation of any."""

    function: str
    call: int
    operation: str | None = None
    after: bool = False


@dataclass(frozen=True, kw_only=True)
class Sending:
    """One image: how it is uploaded, and what happens to it.

    `repetitions` are further requests of its client; `copies_at_once` further messages to the queue that its own went
    to, sent when it is accepted, and `copies_later` when all images are done. If it `is_doomed` it loses its original;
    `stale` says that a process that then died has begun its work, which only poison does.
    """

    number: int
    lane: str
    way: Way
    photo: int
    instant: int | None = None
    repetitions: int = 0
    copies_at_once: int = 0
    copies_later: int = 0
    strike: Strike | None = None
    is_repeated: bool = True
    is_doomed: bool = False
    is_stale: bool = False

    @property
    def is_neighbour(self) -> bool:
        """Whether no poison is aimed at it, so that it must be developed in time."""
        return not self.is_doomed and not self.is_stale


@dataclass(frozen=True, kw_only=True)
class Pause:
    """The emulator pauses for so long, once that many images are answered or from that instant on."""

    seconds: float
    at_image: int | None = None
    at_instant: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that happens in a rehearsal except poison, which has its own random choices.

    `strikes` hit the next processes that work for many images at once, once that many images are answered;
    `releases_struck` are the instants whose releases die.
    """

    instants_seconds: tuple[int, ...]

    seed: int
    sendings: tuple[Sending, ...]
    strikes: tuple[tuple[int, Strike], ...]
    releases_struck: tuple[int, ...]
    pauses: tuple[Pause, ...]

    @property
    def scheduled(self) -> int:
        """How many come first, to wait."""
        return sum(sending.way is Way.SCHEDULED for sending in self.sendings)


def plan_of(images: int, seed: int) -> Plan:
    """The plan of so many images."""
    chance = random.Random(f"{seed} images")
    is_short = images < SHORT_IMAGES
    instants = INSTANTS_SECONDS[:1] if is_short else INSTANTS_SECONDS
    scheduled = max(6, images * 3 // 10)
    counts = {Way.FORM: max(2, images // 10), Way.SHORTLY: max(4, images // 12), Way.FETCHED: max(2, images // 15)}
    counts[Way.DIRECT] = images - scheduled - sum(counts.values())
    ways = [way for way, count in counts.items() for _ in range(count)]
    chance.shuffle(ways)
    sendings = [
        _sending(chance, number=number, way=way, instants=len(instants))
        for number, way in enumerate([Way.SCHEDULED] * scheduled + ways)
    ]
    for number, change in _marks(random.Random(f"{seed} strikes"), sendings, images):
        sendings[number] = replace(sendings[number], **change)
    elsewhere = random.Random(f"{seed} functions")
    few = max(1, images // 500)
    strikes = [(elsewhere.randrange(scheduled, images), _strike(elsewhere, SWEEPER, 20)) for _ in range(few)]
    if not is_short:
        strikes.append((scheduled // 2, _strike(elsewhere, HOLDER, 3)))
    pauses = [
        Pause(seconds=elsewhere.uniform(3, 7), at_image=elsewhere.randrange(scheduled, images * 9 // 10))
        for _ in range(1 + images // 500)
    ]
    pauses.append(Pause(seconds=elsewhere.uniform(3, 7), at_instant=0))
    return Plan(
        seed=seed,
        instants_seconds=instants,
        sendings=tuple(sendings),
        strikes=tuple(sorted(strikes, key=lambda strike: strike[0])),
        releases_struck=tuple(range(min(2, few))),
        pauses=tuple(pauses),
    )


def _sending(chance: random.Random, *, number: int, way: Way, instants: int) -> Sending:
    copies = chance.choices((0, 1, 3, 10), (70, 20, 8, 2))[0]
    several = way is Way.SHORTLY
    return Sending(
        number=number,
        lane=chance.choices((FAST.name, SLOW.name), (40, 60))[0],
        way=way,
        photo=chance.randrange(PHOTOS),
        instant=chance.choices(range(instants), (60, 25, 15)[:instants])[0] if way is Way.SCHEDULED else None,
        repetitions=chance.randint(3, 6) if several else chance.choices((0, 1, 2), (80, 15, 5))[0],
        copies_at_once=copies,
        copies_later=chance.choices((0, 1), (80, 20))[0],
    )


def _marks(chance: random.Random, sendings: list[Sending], images: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Choose which images are struck, doomed or meet a stale record: at most one of these per image."""

    def some(count: int, *ways: Way, lane: str | None = None) -> list[int]:
        among = [
            sending.number
            for sending in sendings
            if sending.way in ways and lane in (None, sending.lane) and sending.number in free
        ]
        chosen = chance.sample(among, min(count, len(among)))
        free.difference_update(chosen)
        return chosen

    free = set(range(len(sendings)))
    for number in some(max(1, images // 40), Way.DIRECT, Way.SHORTLY, Way.FORM, Way.FETCHED):
        yield number, {"strike": _strike(chance, TRANSCODER, 9)}
    for number in some(max(1, images // 150), Way.DIRECT, Way.FETCHED):
        yield number, {"strike": _strike(chance, ACCEPTOR, 6)}
    # After its row and before its message, and its client never repeats: only the sweeper can find it.
    for number in some(max(1, images // 300), Way.DIRECT, lane=FAST.name):
        strike = Strike(function=ACCEPTOR, call=1, operation="SendMessage")
        yield number, {"strike": strike, "is_repeated": False, "repetitions": 0, "copies_at_once": 0}
    for number in some(max(1, images // 300), Way.FORM):
        yield number, {"strike": _strike(chance, UPLOAD_ACCEPTOR, 6)}
    for number in some(max(1, images // 150), Way.FETCHED):
        yield number, {"strike": _strike(chance, FETCHER, 5)}
    for number in some(max(1, images // 500), Way.SHORTLY):
        yield number, {"is_doomed": True}
    for number in some(max(2, images // 50), Way.DIRECT):
        # More than it has attempts, since a copy that meets another one's attempt is settled.
        yield number, {"is_stale": True, "copies_at_once": 16}


def _strike(chance: random.Random, function: str, calls: int) -> Strike:
    return Strike(function=function, call=chance.randint(1, calls), after=chance.random() < 0.5)


def release_strike(seed: int, number: int) -> Strike:
    """Where the process that makes a release dies."""
    return _strike(random.Random(f"{seed} release {number}"), RELEASER, 5)
