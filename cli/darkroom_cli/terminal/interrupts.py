"""Treats the first Ctrl-C as a request to end cleanly; a second one ends at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Self

LEAVING = (signal.SIGTERM, signal.SIGHUP)
"""How a command is ended when nobody waits for it: by a service manager, by a terminal that closes."""

INTERRUPTED = 130
"""The exit status of an interrupted command: 128 plus the number of SIGINT, as in shells."""

_LONGEST_SLEEP_SECONDS = 0.1


class Interrupted(Exception):
    """A pause was cut short: begin nothing more."""


@dataclass
class Ending:
    """Asks the commands of a thread (`ended_by`) to end cleanly, as the first Ctrl-C does."""

    requested: bool = False


_ending: ContextVar[Ending | None] = ContextVar("ending", default=None)


@contextmanager
def ended_by(ending: Ending) -> Iterator[None]:
    """In this block, and in its thread, `ending` is to Interrupts what a SIGINT is."""
    token = _ending.set(ending)
    try:
        yield
    finally:
        _ending.reset(token)


class Interrupts:
    """While this is entered, the first SIGINT only sets `requested`; the next raises KeyboardInterrupt as usual. Each
    of `others` only sets it: a terminal that closes sends more than one, and nobody waits. `on_request` is called at
    each, for what does not look at `requested`.

    An exception at an arbitrary point could lose a response that has just arrived. This is a flag, not an Event, whose
    lock the thread in which the handler runs may hold. Signals reach the main thread alone: made and entered in
    another one, it handles none, and hears only of the Ending that the thread has.
    """

    def __init__(self, *others: signal.Signals, on_request: Callable[[], None] = lambda: None) -> None:
        self._signals, self._on_request = (signal.SIGINT, *others), on_request
        self._asked = _ending.get() or Ending()
        self.ending = False
        self._raising = False

    @property
    def requested(self) -> bool:
        """Whether the end was asked for."""
        return self._asked.requested

    def __enter__(self) -> Self:
        # guard: operate-main-thread-signals
        handled = self._signals if threading.current_thread() is threading.main_thread() else ()
        self._before = {number: signal.getsignal(number) for number in handled}
        for number, before in self._before.items():
            if before is not signal.SIG_IGN:  # as shells start what runs in the background
                signal.signal(number, self._handle)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def wait(self, duration_seconds: float) -> None:
        """Waits in any thread, at most until the end is requested."""
        until = time.monotonic() + duration_seconds
        while (left_seconds := until - time.monotonic()) > 0 and not (self.requested or self.ending):
            time.sleep(min(left_seconds, _LONGEST_SLEEP_SECONDS))

    def pause(self, duration_seconds: float) -> None:
        """Waits in any thread; raises Interrupted once the end is requested."""
        self.wait(duration_seconds)
        if self.requested or self.ending:
            raise Interrupted

    @contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """In this block the first signal, too, raises KeyboardInterrupt: for a wait that may be cut short anywhere."""
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        is_first, self._asked.requested = not self.requested, True
        self._on_request()
        if self._raising if is_first else number == signal.SIGINT:
            raise KeyboardInterrupt
