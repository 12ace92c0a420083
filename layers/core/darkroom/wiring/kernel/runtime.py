"""What every function's process has: a clock, randomness, and a limit on the time of its calls to AWS."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context

from darkroom.aws.kernel import clients
from darkroom.aws.kernel.errors import mendable  # guard: wiring-own-operation-only
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import AtOnce
from darkroom.settings import InitialisationSettings


def _prepare_for_a_snapshot() -> None:
    """Keeps out of a snapshot what must differ between the environments that start from it, or must not be old.

    They would share the state of `random`, from which the SDK's retries take their jitter; `randomness` comes from the
    operating system and differs. What a call to AWS leaves behind is newer than the snapshot, because none is made
    before it, not even for credentials.
    """
    from snapshot_restore_py import register_after_restore  # noqa: PLC0415 -- Lambda's runtime brings it along

    register_after_restore(random.seed)  # guard: snapshots-random-reseeded
    clients.fetch_credentials_when_used()  # guard: snapshots-fresh-credentials


if InitialisationSettings.read().is_for_a_snapshot:  # guard: snapshots-only-where-taken
    _prepare_for_a_snapshot()


def clock() -> Milliseconds:
    """The current instant by this machine's clock."""
    return time.time_ns() // 1_000_000


randomness = secrets.token_bytes

within = clients.within


@contextmanager
def answering(seconds: float) -> Iterator[None]:
    """Bounds the total time of all AWS calls for one request, and turns those that are refused into Misconfigured."""
    with mendable(), clients.within(seconds):  # guard: denied-answered-unavailable
        yield


def at_once[Result](works: Sequence[Callable[[], Result]]) -> Sequence[Result]:
    """Does each work in a thread of its own, and within the same limit of time."""
    with ThreadPoolExecutor(max_workers=len(works)) as threads:
        return _all_of(threads, works)


def kept_threads(count: int) -> AtOnce:
    """The same in threads that are kept for the next works, for a function that has some all the time. None of the
    works may have works of its own done by them, which would wait for the thread that waits for them."""
    threads = ThreadPoolExecutor(max_workers=count)

    def at_once_in_them[Result](works: Sequence[Callable[[], Result]]) -> Sequence[Result]:
        return _all_of(threads, works)

    return at_once_in_them


def _all_of[Result](threads: ThreadPoolExecutor, works: Sequence[Callable[[], Result]]) -> Sequence[Result]:
    begun = [threads.submit(copy_context().run, work) for work in works]  # guard: deadline-in-parallel-work
    # guard: threads-failure-waits
    wait(begun)  # for all, also if one fails
    return [work.result() for work in begun]
