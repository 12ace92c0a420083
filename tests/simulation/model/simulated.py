"""Processes over stores, in virtual time: what two models have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from tests.simulation.model.processes import Call, Fault, Process, Surroundings


@dataclass(eq=False)
class Simulated:
    """A clock, the processes that are paused, the stores that are down, and the story of what was called.

    A process lasts at most `timeout_seconds`, unless it is one of `endless`; `first_read` is a sweep's first call.
    """

    timeout_seconds: ClassVar[int]
    endless: ClassVar[tuple[str, ...]] = ()
    first_read: ClassVar[Call]

    now: int = 0
    began: int = 0
    surroundings: Surroundings = field(default_factory=Surroundings)
    stopped: list[Process] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    _up_again: dict[str, int] = field(default_factory=dict)

    def clock(self) -> int:
        """What time it is."""
        return self.now

    def close(self) -> None:
        """Ends the paused processes."""
        for process in self.stopped:
            process.die()

    def start(
        self, name: str, body: Callable[[], None], *, fault: Fault | None = None, stops_at: Call | None = None
    ) -> Process:
        """Starts a process, which runs to its end or to where it pauses."""
        deadline = None if name in self.endless else self.now + self.timeout_seconds * 1000
        process = Process(name, self.surroundings, body, fault=fault, stops_at=stops_at, deadline=deadline)
        self.stopped.append(process)
        self._tell(f"{(self.now - self.began) / 1000:10.1f} s  {name}", process.go_on)
        self._end_processes()
        return process

    def go_on(self, process: Process | None = None, calls: int | None = None) -> None:
        """The process continues, or each that is paused."""
        for paused in list(self.stopped) if process is None else [process]:
            if not paused.is_over:
                self._tell(f"              {paused.name} goes on", lambda paused=paused: paused.go_on(calls))  # type: ignore[misc]
        self._end_processes()

    def kill(self, process: Process) -> None:
        """The process dies where it is paused."""
        process.die()
        self._end_processes()

    def sweep(self, **how: object) -> None:
        """The schedule invokes the sweeper."""
        self.start("sweep", self._sweep, **how)  # type: ignore[arg-type]

    def _sweep(self) -> None:
        raise NotImplementedError

    def sweep_twice(self, turns: list[int], *, fault: Fault | None = None, stops_at: Call | None = None) -> None:
        """Two interleaved sweeps: AWS may invoke a schedule's function more than once, also concurrently."""
        first = self.start("sweep", self._sweep, stops_at=stops_at or self.first_read)
        second = self.start("sweep", self._sweep, fault=fault, stops_at=self.first_read)
        for turn, calls in enumerate([*turns, None, None]):
            process = (second, first)[turn % 2]
            if not process.is_over:
                process.go_on(calls)
        self._end_processes()

    def throttle(self, store: str, seconds: int) -> None:
        """The store does not answer for a while."""
        self.surroundings.down.add(store)
        self._up_again[store] = self.now + seconds * 1000

    def pass_time(self, seconds: int) -> None:
        """Nothing is in flight for longer than a moment, and no function runs past its deadline."""
        self.surroundings.land()
        self.now += seconds * 1000
        for process in self.stopped:
            if process.deadline is not None and process.deadline <= self.now:
                process.die()
        self._end_processes()
        self.surroundings.down -= {store for store, instant in self._up_again.items() if instant <= self.now}
        self._tell_time()

    def _tell_time(self) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        """Everything that is visible now is delivered."""
        raise NotImplementedError

    def let_run(self, minutes: int) -> None:
        """Minutes in which only time passes: everything visible is delivered, and each minute ends with a sweep."""
        for _ in range(minutes):
            self.drain()
            self.pass_time(60)
            self.sweep()

    def check(self) -> None:
        """What holds at every moment."""
        raise NotImplementedError

    def settle(self) -> None:
        """With every fault over, lets the system come to rest, and checks what must hold then."""
        raise NotImplementedError

    def is_at(self, row_id: str) -> bool:
        """Whether a paused process is working on that row."""
        return any(process.at == row_id for process in self.stopped)

    def _end_processes(self) -> None:
        self.stopped = [process for process in self.stopped if not process.is_over]

    def _tell(self, what: str, go_on: Callable[[], None]) -> None:
        first = len(self.surroundings.calls)
        go_on()
        calls = ", ".join(f"{number} {call}" for number, call in enumerate(self.surroundings.calls[first:], first))
        self.story.append(f"{what}: {calls or 'no calls'}")
