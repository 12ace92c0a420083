"""How many invocations run at once on this machine, and the processes that run them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

_PER_CORE = 8
_FEWEST = 4

# The key of those that are to end with their work, which nobody asks for.
_OUTDATED = "outdated"

# Roughly what a function's process takes: 50 to 100 MB once the SDK is loaded, a transcoder more while it works.
_PROCESS_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The maximum number of concurrent invocations: of one function, of all functions together, and of one function by
    queues."""

    function: int
    account: int
    by_queues: int


def bounds_of(*, cores: int, memory_bytes: int, function: int | None = None) -> Bounds:
    """Return the bounds of a machine: 8 invocations of a function per core, limited to the processes that fit into a
    quarter of the memory; for all functions together, half of the memory; by queues, one per core, because no client
    waits for the answer and each further process would only take time from the others. `function` replaces the first
    and the last.
    """
    processes = memory_bytes // _PROCESS_BYTES
    by_queues = cores if function is None else function  # guard: concurrency-queues-per-core
    if function is None:
        function = max(_FEWEST, min(_PER_CORE * cores, processes // 4))  # guard: concurrency-memory-bound
    # guard: concurrency-account-room
    return Bounds(function=function, account=max(2 * function, processes // 2), by_queues=by_queues)


def share(wanted: int, *, wanted_together: int, bound: int) -> int:
    """Return how much of a function's `bound` a mapping gets if it wants so many, next to the function's others."""
    if wanted_together <= bound:
        return wanted
    return min(bound, max(1, wanted * bound // wanted_together))  # guard: concurrency-mapping-minimum


def pauses(first_seconds: float, longest_seconds: float) -> Iterator[float]:
    """Yield pauses that double each time, up to the longest."""
    pause_seconds = first_seconds
    while True:
        yield pause_seconds
        pause_seconds = min(2 * pause_seconds, longest_seconds)


class Process(Protocol):
    """A process that runs one invocation at a time; `last_used` is when its last one ended, in seconds."""

    in_use: bool
    last_used: float


class Pool[P: Process]:
    """The processes of all functions: the most recently used is reused; an idle one ends when it is old or makes room.

    It never blocks. It keeps at most `most` processes as long as fewer than that are in use, which callers have to
    ensure.
    """

    def __init__(
        self,
        processes: dict[str, list[P]],
        lock: AbstractContextManager[Any],
        *,
        most: int,
        end: Callable[[list[P]], None],
    ) -> None:
        self._processes = processes
        self._lock = lock
        self._most = most
        self._end = end

    def take(self, key: str, make: Callable[[], P]) -> tuple[P, bool]:
        """Return a process for one invocation of that key's function, and whether it is new."""
        with self._lock:
            idle = _idle(self._processes.get(key, []))
            if idle:
                # The most recently used, so that surplus processes get old.
                taken = max(idle, key=_last_used)  # guard: concurrency-warmest-process-reused
                taken.in_use = True
                return taken, False
            everything = self._all()
            coldest = sorted(_idle(everything), key=_last_used)  # guard: concurrency-coldest-makes-room
            # guard: concurrency-process-replacement
            ended = self._remove(coldest[: max(0, len(everything) + 1 - self._most)])
            made = make()
            made.in_use = True
            self._processes.setdefault(key, []).append(made)
        self._end(ended)
        return made, True

    def give_back(self, process: P, *, now: float) -> None:
        """Return a process, so that it can be reused, unless it is outdated."""
        with self._lock:
            process.in_use = False
            process.last_used = now
            is_outdated = process in self._processes.get(_OUTDATED, ())
            ended = self._remove([process]) if is_outdated else []  # guard: concurrency-outdated-process-ended
        self._end(ended)

    def discard(self, process: P) -> None:
        """Drop a process that cannot be reused."""
        with self._lock:
            ended = self._remove([process])
        self._end(ended)

    def replace(self, is_outdated: Callable[[str], bool]) -> None:
        """End the processes of these keys, so that new ones are made: idle ones at once, others when they are given
        back."""
        with self._lock:
            outdated = self._remove(
                [process for key in filter(is_outdated, self._processes) for process in self._processes[key]]
            )
            ended = _idle(outdated)  # guard: concurrency-update-kills-no-work
            self._processes.setdefault(_OUTDATED, []).extend(process for process in outdated if process.in_use)
        self._end(ended)

    def end_unused_since(self, moment: float) -> None:
        """End the processes that have been idle since then."""
        with self._lock:
            ended = self._remove([process for process in _idle(self._all()) if process.last_used <= moment])
        self._end(ended)

    def _all(self) -> list[P]:
        return [process for processes in self._processes.values() for process in processes]

    def _remove(self, ended: list[P]) -> list[P]:
        for key, processes in list(self._processes.items()):
            processes[:] = [process for process in processes if process not in ended]
            if not processes:
                del self._processes[key]
        return ended


def _idle[P: Process](processes: Iterable[P]) -> list[P]:
    return [process for process in processes if not process.in_use]  # guard: concurrency-process-not-shared


def _last_used(process: Process) -> float:
    return process.last_used
