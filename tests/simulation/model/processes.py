"""Processes that die, pause and continue between any two of their calls, one at a time, as a history says."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import IdempotencyUnavailable
from darkroom.ports.kernel import Fenced
from tests.support.faults import ProcessDied

type Mode = Literal["dies before", "dies after", "throttled", "answer lost", "applied late"]
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
class Surroundings:
    """Which process is running, which stores do not answer, and what was sent and has not arrived yet. `calls` names
    all calls so far, of whatever process, and `strikes` says which of them, by their numbers, are struck and how."""

    running: Process | None = None
    down: set[str] = field(default_factory=set)
    under_way: list[Callable[[], Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    strikes: dict[int, Mode] = field(default_factory=dict)
    struck: Callable[[str], None] = lambda mode: None
    is_landing: bool = False
    """Whether the call that is applied now comes late."""

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
        mode = self._surroundings.strikes.get(len(self._surroundings.calls))
        self._surroundings.calls.append(name)
        if self._fault is not None and self._fault.at == here:
            mode = self._fault.mode
        if mode is not None:
            self._surroundings.struck(mode)
        # An unavailable memory is no excuse: the work is done without it.
        costs_attempt = store != "once" or mode in ("dies before", "dies after")
        if costs_attempt and (mode is not None or store in self._surroundings.down):
            self.is_struck = True
        if mode == "dies before":
            self._die_here()
        if mode == "throttled" or store in self._surroundings.down:
            raise Retryable(f"{name}: throttled")
        if mode == "applied late" and is_write:
            self._surroundings.under_way.append(call)
        else:
            answer = call()
            if mode is None:
                return answer
        if mode == "dies after":
            self._die_here()
        raise Retryable(f"{name}: the answer never came")

    def _stop_if_told(self, here: Call) -> None:
        """`calls_left` counts from the call at which it is paused, which is made first."""
        if here == self._stops_at or self._calls_left == 1:
            self._has_stopped.release()
            self._may_go.acquire()
        elif self._calls_left is not None:
            self._calls_left -= 1

    def _die_here(self) -> None:
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


class Struck:
    """A store as processes see it: every call may be struck, and the process may pause before it.

    `writes` are the methods whose effect may come late, `indexes` those that another store answers.
    """

    def __init__(
        self,
        name: str,
        store: Any,
        surroundings: Surroundings,
        *,
        writes: frozenset[str],
        indexes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._name, self._store, self._surroundings = name, store, surroundings
        self._writes, self._indexes = writes, indexes

    def __getattr__(self, method: str) -> Any:
        value = getattr(self._store, method)
        if not callable(value) or method == "url_of":
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            process = self._surroundings.running
            if process is None:
                raise RuntimeError("only processes call stores")
            if method == "get" and self._name in ("images", "deliveries"):
                process.at = arguments[-1]
            return process.call(
                self._indexes.get(method, self._name),
                f"{self._name}.{method}",
                lambda: value(*arguments, **options),
                is_write=method in self._writes,
            )

        return call
