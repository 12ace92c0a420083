"""Plays a history with every fault that makes a difference at every point, and every second one at every later point.

Histories branch by fork: a child is struck where its parent passes, so nothing is played twice up to there, and every
point that the code makes is struck without a list of points. A history that reaches exactly the same state as an
earlier one, down to the last byte and millisecond, is not played further: what follows is already known.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from tests.simulation.crashes import deployment
from tests.simulation.crashes.engine import developed, is_prepared, remember
from tests.simulation.crashes.histories import HISTORIES, Ending, History, check_promises
from tests.simulation.crashes.promises import Broken, ViolationKind
from tests.simulation.crashes.scale import Scale
from tests.simulation.crashes.wire import Planned, Point, modes_at
from tests.simulation.crashes.world import World
from tests.support.faults import BEFORE, Mode
from tests.support.shared_memory import share_with_forks

HISTORY_SECONDS = 120
"""A history that takes this much processor time counts as endless."""

_SHOWN_LINES = 60
"""Lines of a story that are shown."""

_BLOCK = 8
"""Consecutive points that one explorer takes: neighbours often leave the same world behind."""


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A fault at a point."""

    point: Point
    mode: Mode

    def __str__(self) -> str:
        return f"{self.mode} at {self.point}"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A promise that a history broke, with everything that happened in it."""

    history: str
    strikes: tuple[Strike, ...]
    harm: ViolationKind | None
    problem: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        """All of it, as text."""
        struck = "; then ".join(map(str, self.strikes)) or "undisturbed"
        title = f"{self.history}, {struck}: {'failed' if self.harm is None else self.harm.upper()}, {self.problem}"
        story = self.story
        if len(story) > _SHOWN_LINES:
            story = (
                *story[: _SHOWN_LINES // 2],
                f"… {len(story) - _SHOWN_LINES} lines …",
                *story[-_SHOWN_LINES // 2 :],
            )
        return "\n    ".join([title, *story])

    @property
    def replay(self) -> str:
        """The argument that replays this one history."""
        return f"{self.history}: " + "; ".join(f"{strike.mode} at {strike.point.number}" for strike in self.strikes)


@dataclass(kw_only=True)
class Findings:
    """The result of an exploration; the counters count by how many faults struck: 1 for singles, 2 for pairs.

    `offered` are the histories that faults could make, one for each fault that is possible at a point, `struck` those
    that were made, and `alike` those of them that reached the state of an earlier one. `settled` are those that left a
    dead letter of an image that ended otherwise.
    """

    points: tuple[Point, ...] = ()
    offered: Counter[int] = field(default_factory=Counter)
    struck: Counter[int] = field(default_factory=Counter)
    alike: Counter[int] = field(default_factory=Counter)
    settled: Counter[int] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    known: dict[int, dict[bytes, int]] = field(default_factory=dict)
    """By how many faults may still strike: the worlds that have been explored further, and the strikes that took."""

    def counts(self) -> Findings:
        """The same without what only explorers need: the part that is sent to be added up."""
        return replace(self, known={})

    def add(self, other: Findings) -> None:
        """Adds what another explorer has found."""
        self.offered += other.offered
        self.struck += other.struck
        self.alike += other.alike
        self.settled += other.settled
        self.modes += other.modes
        self.events += other.events
        self.violations += other.violations
        for left, worlds in other.known.items():
            self.known.setdefault(left, {}).update(worlds)


class _SeenBefore(BaseException):
    """The world is in a state in which another history has already left it."""


@dataclass(eq=False)
class _Explorer:
    """Strikes one history and all that branch from it; `left` more faults may strike.

    Of the first strikes it follows only those in its `share` of `shares`; other explorers follow the rest. A sample has
    its first strike only at every `every`th point, from number `first` on.
    """

    history: History
    left: int
    share: int
    shares: int
    every: int
    first: int
    known: dict[int, dict[bytes, int]]
    spares: frozenset[str] = frozenset()
    on_point: Callable[[Point, Findings], None] = lambda point, findings: None
    findings: Findings = field(default_factory=Findings)
    strikes: tuple[Strike, ...] = ()
    passed: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """The quiet worlds on the way, each with how many strikes and points came before it."""
    sending: int | None = None
    world: World = field(init=False)

    # ── Called by the wire ────────────────────────────────────────────────────────────────────────────────────────

    def before(self, point: Point) -> Mode | None:
        if self.left and self._is_ours(point):
            self.findings.offered[len(self.strikes) + 1] += len(modes_at(point))
        return self._branch(point, "dies before") or self._branch(point, "throttled") or self._branch(point, "denied")

    def after(self, point: Point) -> Mode | None:
        later = (mode for mode in modes_at(point) if mode not in BEFORE)
        return next(filter(None, (self._branch(point, mode) for mode in later)), None)

    def quiet(self) -> None:
        """Called by the world whenever no function is at work."""
        here = self.world.state()
        if self.strikes and here in self.known.get(self.left, {}):
            self._count_as_seen(self.known[self.left][here], depth=len(self.strikes))
            raise _SeenBefore
        self.passed.setdefault(here, (self._below(), len(self.world.wire.points)))

    # ── Branching ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _branch(self, point: Point, mode: Mode) -> Mode | None:
        """In a child, returns the mode that strikes it; in the parent, None, after adding the child's findings."""
        if not self.left or not self._is_ours(point):
            return None
        depth = len(self.strikes) + 1
        self.findings.struck[depth] += 1
        self.findings.modes[f"{depth} {mode}"] += 1
        start = None
        if mode in ("dies before", "dies after"):
            start = self.world.state(dying=True)
            worlds = self.known.get(self.left - 1, {})
            if start in worlds:
                self._count_as_seen(worlds[start], depth=depth)
                return None
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receiving)
            self._become_struck(Strike(point=point, mode=mode), start, sending)
            return mode
        os.close(sending)
        with os.fdopen(receiving, "rb") as answer:
            pickled = answer.read()
        _, status = os.waitpid(child, 0)
        if pickled:
            findings = pickle.loads(pickled)
        else:
            problem = f"its process ended with status {status}: perhaps a history without an end"
            findings = Findings(
                violations=[self._violation(ViolationKind.STUCK, problem, Strike(point=point, mode=mode))]
            )
        self._take(findings)
        if depth == 1:
            self.on_point(point, self.findings)
        return None

    def _is_ours(self, point: Point) -> bool:
        if self.strikes:
            return True
        number, between = divmod(point.number - self.first, self.every)
        return number >= 0 and between == 0 and number // _BLOCK % self.shares == self.share

    def _become_struck(self, strike: Strike, start: bytes | None, sending: int) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, HISTORY_SECONDS)  # the signal ends the process
        self.left -= 1
        self.strikes += (strike,)
        self.findings = Findings()
        self.passed = {} if start is None else {start: (0, 0)}
        self.world.events.clear()  # its parent counts earlier events
        self.sending = sending

    def _take(self, findings: Findings) -> None:
        self.findings.add(findings)
        for left, worlds in findings.known.items():
            self.known.setdefault(left, {}).update(worlds)

    def _below(self) -> int:
        return sum(self.findings.struck.values())

    def _count_as_seen(self, below: int, *, depth: int) -> None:
        """Counts a history that is not played further, and the strikes below it, which hit its double."""
        self.findings.alike[depth] += 1
        self.findings.offered[depth + 1] += below
        self.findings.struck[depth + 1] += below
        self.findings.alike[depth + 1] += below

    # ── The end of a history ──────────────────────────────────────────────────────────────────────────────────────

    def play(self, scale: Scale, undisturbed: Ending | None, *, every_minute: bool = False) -> Ending | None:
        """Plays the history to its end, in the parent and in each child; a child does not return."""
        ending = None
        try:
            with World(
                scale=scale,
                faults=self,
                on_quiet=self.quiet,
                every_minute=every_minute,
                pauses=self.history.pauses,
            ) as world:
                self.world = world
                # What dies is replaced by what was initialised before the history branched: no child pays for it.
                world.start_spares(self.spares, self.left and self.left + 1)  # one is at work
                try:
                    image_id = self.history.play(world)
                    ending = check_promises(world, self.history, image_id, undisturbed)
                    self.findings.settled[len(self.strikes)] += bool(ending.settled_dead_letters)
                    self._remember_way()
                except _SeenBefore:
                    self._remember_way()
                except Broken as broken:
                    self.findings.violations.append(self._violation(broken.harm, str(broken)))
                except Exception:
                    self.findings.violations.append(self._violation(None, traceback.format_exc()))
                self.findings.points = tuple(world.wire.points)
                self.findings.events += world.events
                self._tell_parent()
        finally:
            if self.sending is not None:
                os._exit(1)
        return ending

    def _remember_way(self) -> None:
        total = self._below()
        self.findings.known.setdefault(self.left, {}).update(
            {here: total - below for here, (below, _) in self.passed.items()}
        )

    def _tell_parent(self) -> None:
        if self.sending is not None:
            with os.fdopen(self.sending, "wb") as parent:
                pickle.dump(self.findings, parent)
            os._exit(0)

    def _violation(self, harm: ViolationKind | None, problem: str, *strikes: Strike) -> Violation:
        return Violation(
            history=self.history.name,
            strikes=self.strikes + strikes,
            harm=harm,
            problem=problem,
            story=tuple(self.world.story),
        )


def prepare() -> None:
    """Develops the histories' photos in a separate process, so that this one stays without threads and can fork.

    Done once, here or in the process that this one branched from.
    """
    if is_prepared():
        return
    deployment.functions()  # remembered here, for that process and all that follow
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for name in (
                "good",
                "refused",
                "uploaded",
                "variants added",
                "edited",
            ):  # lanes develop a photo differently
                with World() as world:
                    HISTORIES[name].play(world)
            with os.fdopen(sending, "wb") as parent:
                parent.write(developed())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as answer:
        made = answer.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("a history that nothing strikes has failed: its traceback is above")
    remember(made)


def strikes_at(points: Sequence[Point]) -> int:
    """How many histories single faults at these points make."""
    return sum(len(modes_at(point)) for point in points)


def own_points(history: History, scale: Scale, points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points of a history after the beginning that it has in common with the one that it continues."""
    if history.continues is None:
        return points
    others = undisturbed(HISTORIES[history.continues], scale).points
    return points[sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(points, others, strict=False))) :]


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A history without faults: `passed` are the quiet worlds on its way, with how many strikes can come after each."""

    points: tuple[Point, ...]
    ending: Ending
    passed: dict[bytes, int]


def undisturbed(history: History, scale: Scale, *, every_minute: bool = False) -> Plain:
    """Plays the history without faults. Raises RuntimeError if it breaks a promise even so."""
    explorer = _Explorer(history=history, left=0, share=0, shares=1, every=1, first=0, known={})
    ending = explorer.play(scale, None, every_minute=every_minute)
    if ending is None:
        raise RuntimeError("\n".join(map(str, explorer.findings.violations)))
    points = explorer.findings.points
    return Plain(
        points=points,
        ending=ending,
        passed={here: strikes_at(points[before:]) for here, (_, before) in explorer.passed.items()},
    )


def explore(
    name: str,
    scale: Scale,
    *,
    faults: int,
    share: int = 0,
    shares: int = 1,
    every: int = 1,
    first: int = 0,
    plain: Plain | None = None,
    on_point: Callable[[Point, Findings], None] = lambda point, findings: None,
) -> Findings:
    """Plays the history of that name with up to so many faults (1 or 2): every mode at every point, and again after
    each. `plain` is the same without faults, if it has been played.

    With `every` the first fault strikes only a sample of the points: every Nth, from number `first` on.
    """
    history = HISTORIES[name]
    plain = plain or undisturbed(history, scale)
    explorer = _Explorer(
        history=history,
        left=faults,
        share=share,
        shares=shares,
        every=every,
        first=first,
        # What one more fault can do from there on is what the first faults do after that point.
        known={left: {here: left * after for here, after in plain.passed.items()} for left in (0, 1)},
        spares=frozenset(point.function for point in plain.points),
        on_point=on_point,
    )
    share_with_forks()
    gc.disable()
    try:
        explorer.play(scale, plain.ending)
    finally:
        gc.enable()
    return explorer.findings


def play_struck(name: str, scale: Scale, modes: dict[int, Mode]) -> tuple[str | None, tuple[str, ...]]:
    """Plays one history with these faults; returns how it broke a promise, if it did, and its story."""
    history = HISTORIES[name]
    plain = undisturbed(history, scale)
    with World(scale=scale, faults=Planned(modes=modes)) as world:
        try:
            check_promises(world, history, history.play(world), plain.ending)
        except Broken as broken:
            return f"{broken.harm}: {broken}", tuple(world.story)
        return None, tuple(world.story)
