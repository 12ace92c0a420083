"""Time that passes only when nothing else is left to do, and threads that run one at a time in it."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds

START: Milliseconds = 1_795_251_600_000


class _Participant:
    """A thread that has the baton or waits for it; `job` is what it is to do next."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.turn.acquire()
        self.job: Callable[[], None] | None = None
        self.thread: threading.Thread | None = None


class VirtualTime:
    """Calls happen at instants, in the order of these and then of their making. What waits in between (`pause`) is a
    thread of its own; the one that has to wait itself takes the next step, so that nobody has to conduct.

    The thread that makes it is a participant as well; an error in any other is raised there."""

    def __init__(self, start: Milliseconds = START) -> None:
        self._start = start
        self._now = 0.0
        self._made = 0
        self._ahead: list[tuple[float, int, Callable[[], None] | _Participant]] = []
        self._main = _Participant()
        self._own = threading.local()
        self._own.participant = self._main
        self._idle: list[_Participant] = []
        self._all: list[_Participant] = []
        self._error: BaseException | None = None
        self._is_over = False

    def now(self) -> Milliseconds:
        """The instant, in whole milliseconds."""
        return self._start + int(self._now)

    def elapsed(self) -> float:
        """Milliseconds since the beginning."""
        return self._now

    def at(self, milliseconds: float, happen: Callable[[], None]) -> None:
        """Calls `happen`, which must not pause, so many milliseconds after the beginning, or now if that has passed."""
        self._put(max(milliseconds, self._now), happen)

    def at_instant(self, instant: Milliseconds, happen: Callable[[], None]) -> None:
        """The same, at an instant."""
        self.at(instant - self._start, happen)

    def after(self, milliseconds: float, happen: Callable[[], None]) -> None:
        """The same, so many milliseconds from now."""
        self._put(self._now + milliseconds, happen)

    def start(self, work: Callable[[], None]) -> None:
        """Calls `work`, which may pause, now and in a thread of its own."""
        if self._idle:
            participant = self._idle.pop()
        else:
            participant = _Participant()
            self._all.append(participant)
            participant.thread = threading.Thread(target=self._live, args=(participant,), daemon=True)
            participant.thread.start()
        participant.job = work
        self._put(self._now, participant)

    def pause(self, milliseconds: float) -> None:
        """Lets so many milliseconds pass for the thread that calls it."""
        until = self._now + milliseconds
        if not self._ahead or until < self._ahead[0][0]:
            self._now = until
            return
        participant: _Participant = self._own.participant
        self._put(until, participant)
        self._step(participant)

    def run(self, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Lets time pass until nothing is ahead any more, or `stop` says so."""
        while self._ahead and not stop():
            self.pause(self._ahead[0][0] - self._now)

    def at_once(self, works: Sequence[Callable[[], Any]], *, most: int | None = None) -> Sequence[Any]:
        """As the port `AtOnce`: does the works at the same time, at most so many, and lets time pass for the thread
        that calls it until all have ended."""
        results: list[Any] = [None] * len(works)
        errors: dict[int, Exception] = {}
        places = iter(range(len(works)))
        participant: _Participant = self._own.participant
        working = min(len(works), most or len(works))

        def work() -> None:
            nonlocal working
            for place in places:
                try:
                    results[place] = works[place]()
                except Exception as error:
                    errors[place] = error
            working -= 1
            if not working:
                self._put(self._now, participant)

        for _ in range(working):
            self.start(work)
        if works:
            self._step(participant)
        if errors:
            raise errors[min(errors)]
        return results

    def close(self) -> None:
        """Ends the threads that wait for work; those that are in the middle of some stay where they are."""
        self._is_over = True
        for participant in self._idle:
            participant.turn.release()
            if participant.thread is not None:
                participant.thread.join()

    def _put(self, instant: float, what: Callable[[], None] | _Participant) -> None:
        self._made += 1
        heapq.heappush(self._ahead, (instant, self._made, what))

    def _step(self, own: _Participant) -> None:
        """Does what comes next, until it is the turn of `own`."""
        while self._error is None:
            instant, _, what = heapq.heappop(self._ahead)
            self._now = max(self._now, instant)
            if what is own:
                return
            if isinstance(what, _Participant):
                what.turn.release()
                own.turn.acquire()
                break
            try:
                what()
            except BaseException as error:
                self._fail(own, error)
        if own is self._main and self._error is not None:
            raise self._error

    def _fail(self, own: _Participant, error: BaseException) -> None:
        """Has the error raised in the main thread; this one has nothing more to do."""
        self._error = error
        if own is not self._main:
            self._main.turn.release()
            own.turn.acquire()

    def _live(self, own: _Participant) -> None:
        self._own.participant = own
        own.turn.acquire()
        while not self._is_over:
            if own.job is not None:
                try:
                    own.job()
                except BaseException as error:
                    self._fail(own, error)
            own.job = None
            self._idle.append(own)
            self._step(own)
