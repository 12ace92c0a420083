"""Processes that die, pause and continue between any two of their calls, one at a time, as a history says."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Never

from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import IdempotencyUnavailable
from darkroom.ports.kernel import Fenced
from tests.support.faults import Faults, Mode, ProcessDied, strike

MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost", "applied late")


@dataclass(frozen=True, kw_only=True)
class Call:
    """A process's call of a store: the first is number 0."""

    store: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to a process at one of its calls."""

    at: Call
    mode: Mode


@dataclass
class Surroundings(Faults):
    """Which process is running, which stores do not answer, and what was sent and has not arrived yet.

    Every call is one of the running process's. `reads` are the methods that change nothing, by store: the effect of any
    other may come late. `indexes` are those that another store answers, by store and method.
    """

    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    indexes: Mapping[str, str] = field(default_factory=dict)
    on_strike: Callable[[str], None] = lambda mode: None
    running: Process | None = None
    down: set[str] = field(default_factory=set)
    under_way: list[Callable[[], Any]] = field(default_factory=list)
    is_landing: bool = False
    """Whether the call that is applied now comes late."""
    modes: list[tuple[Mode, ...]] = field(default_factory=list)
    """For each call so far, the faults at it that make a history of their own."""

    def call(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any], make: Callable[[], Any]) -> Any:
        if self.running is None:
            raise RuntimeError("only processes call stores")
        store, _, method = name.partition(".")
        if name in ("images.get", "deliveries.get"):
            self.running.at = arguments[-1]
        is_write = method not in self.reads.get(store, ())
        return self.running.call(self.indexes.get(name, store), name, make, is_write=is_write)

    def land(self) -> None:
        """Applies late calls now; no process is left to see their answers."""
        self.is_landing = True
        while self.under_way:
            with suppress(Fenced, Retryable, IdempotencyUnavailable):
                self.under_way.pop(0)()
        self.is_landing = False


class Process:
    """One run of a function or of an operator's command.

    It runs whole within `go_on` unless it is to pause: then it lives in its own thread, which waits at that call until
    it may continue. Two never run at once, so that a history can be repeated.
    """

    def __init__(
        self,
        name: str,
        surroundings: Surroundings,
        body: Callable[[], None],
        *,
        fault: Fault | None = None,
        stops_at: Call | None = None,
        deadline: int | None = None,
    ) -> None:
        self.name = name
        self.deadline = deadline
        self.at: str | None = None  # the image or the delivery whose row it read last
        self.is_over = False
        self.is_struck = False  # by anything that may cost it its attempt
        self._surroundings = surroundings
        self._body = body
        self._fault = fault
        self._stops_at = stops_at
        self._calls_left: int | None = None
        self._calls: Counter[str] = Counter()
        self._is_resumed = True  # it has just begun, waited while others ran, or was struck
        self._dies = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        # Locks that one thread acquires and the other releases: the fastest way to hand over.
        self._may_go, self._has_stopped = threading.Lock(), threading.Lock()
        self._may_go.acquire()
        self._has_stopped.acquire()

    def go_on(self, calls: int | None = None) -> None:
        """Runs to its first pause, and later until it has made that many more calls, or else to its end.

        An exception that it raises because of a bug is raised here.
        """
        before, self._surroundings.running = self._surroundings.running, self
        try:
            if self._thread is None and self._stops_at is None:
                self._live()
            else:
                if self._thread is not None:
                    self._stops_at, self._calls_left = None, calls
                self._run_in_thread()
        finally:
            self._surroundings.running = before
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def die(self) -> None:
        """The process is killed where it is paused."""
        self._dies = self.is_struck = True
        if not self.is_over and self._thread is not None:
            self.go_on()
        self.is_over = True

    def call(self, store: str, name: str, call: Callable[[], Any], *, is_write: bool) -> Any:
        """One call of this process to the world, with the fault that strikes it."""
        here = Call(store=store, number=self._calls[store])
        self._calls[store] += 1
        if self._thread is not None:
            self._stop_if_told(here)
        if self._dies:
            raise ProcessDied
        self._surroundings.modes.append(_modes_at(is_write=is_write, is_resumed=self._is_resumed))
        mode = self._surroundings.plan(self._surroundings.next_call(name, (), {}))
        if isinstance(mode, BaseException):
            raise mode
        if self._fault is not None and self._fault.at == here:
            mode = self._fault.mode
        if mode is not None:
            self._surroundings.on_strike(mode)
        # An unavailable memory is no excuse: the work is done without it.
        is_down = store in self._surroundings.down
        self._is_resumed = mode is not None or is_down
        costs_attempt = store != "once" or mode in ("dies before", "dies after")
        if costs_attempt and (mode is not None or is_down):
            self.is_struck = True
        if is_down and mode != "dies before":
            mode = "throttled"
        if mode is None:
            return call()
        later = self._surroundings.under_way.append if is_write else None
        return strike(mode, name, call, die=self._die_here, later=later)

    def _stop_if_told(self, here: Call) -> None:
        """`calls_left` counts from the call at which it is paused, which is made first."""
        if here == self._stops_at or self._calls_left == 1:
            self._is_resumed = True
            self._has_stopped.release()
            self._may_go.acquire()
        elif self._calls_left is not None:
            self._calls_left -= 1

    def _die_here(self) -> Never:
        self._dies = True  # its clean-up code no longer has any effect
        raise ProcessDied

    def _run_in_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._live_in_thread, daemon=True)
            self._thread.start()
        self._may_go.release()
        self._has_stopped.acquire()
        if self.is_over:
            self._thread.join()

    def _live_in_thread(self) -> None:
        self._may_go.acquire()
        self._live()
        self._has_stopped.release()

    def _live(self) -> None:
        try:
            self._body()
        except ProcessDied:
            pass
        except BaseException as error:  # raised again where the process was told to go on
            self._error = error
        self.is_over = True


def _modes_at(*, is_write: bool, is_resumed: bool) -> tuple[Mode, ...]:
    """The faults that make a history of their own at a call. A process that dies before a call has died after its last
    write; and of a read that changes nothing it sees the same error whether the call or the answer was lost."""
    modes: tuple[Mode, ...] = ("dies after", "throttled", "answer lost", "applied late") if is_write else ("throttled",)
    return ("dies before", *modes) if is_resumed else modes
