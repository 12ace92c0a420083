"""How many invocations run at once on a machine, and the processes that run them."""

import threading
from dataclasses import dataclass
from itertools import islice

import pytest

from local_aws.concurrency import Bounds, Pool, bounds_of, pauses, share

GIB = 1024**3


@pytest.mark.guards("concurrency-memory-bound", "concurrency-queues-per-core")
@pytest.mark.parametrize(
    ("cores", "memory_gib", "expected"),
    [
        (2, 24, Bounds(function=16, account=96, by_queues=2)),
        (2, 4, Bounds(function=8, account=16, by_queues=2)),
        (4, 8, Bounds(function=16, account=32, by_queues=4)),
        (8, 16, Bounds(function=32, account=64, by_queues=8)),
        (16, 64, Bounds(function=128, account=256, by_queues=16)),
        (1, 1, Bounds(function=4, account=8, by_queues=1)),
    ],
)
def test_a_machines_cores_and_memory_bound_a_function_and_the_account(
    cores: int, memory_gib: int, expected: Bounds
) -> None:
    assert bounds_of(cores=cores, memory_bytes=memory_gib * GIB) == expected


@pytest.mark.guards("concurrency-account-room")
def test_a_chosen_bound_leaves_the_account_room_for_another_function() -> None:
    assert bounds_of(cores=2, memory_bytes=4 * GIB, function=2) == Bounds(function=2, account=16, by_queues=2)
    assert bounds_of(cores=2, memory_bytes=4 * GIB, function=100) == Bounds(function=100, account=200, by_queues=100)


@pytest.mark.guards("concurrency-mapping-minimum")
@pytest.mark.parametrize(
    ("wanted", "wanted_together", "bound", "expected"),
    [(20, 30, 30, 20), (20, 30, 16, 10), (10, 30, 16, 5), (2, 100, 16, 1), (5, 5, 0, 0), (5, 5, 1, 1)],
)
def test_mappings_share_their_functions_bound_in_proportion_and_none_is_left_without(
    wanted: int, wanted_together: int, bound: int, expected: int
) -> None:
    assert share(wanted, wanted_together=wanted_together, bound=bound) == expected


def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(pauses(1, 300), 11)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


@dataclass(eq=False)
class Process:
    """A process that records only its use."""

    in_use: bool = False
    last_used: float = 0.0


class Processes:
    """A pool, and the processes that it has started and ended."""

    def __init__(self, most: int = 10) -> None:
        self.ended: list[Process] = []
        self.by_function: dict[str, list[Process]] = {}
        self._pool = Pool(self.by_function, threading.Lock(), most=most, end=self.ended.extend)

    def take(self, function: str = "one") -> Process:
        return self._pool.take(function, Process)[0]

    def used(self, *, at: float, function: str = "one") -> Process:
        """A process whose invocation ended then."""
        process = self.take(function)
        self.give_back(process, at=at)
        return process

    def give_back(self, process: Process, *, at: float) -> None:
        self._pool.give_back(process, now=at)

    def discard(self, process: Process) -> None:
        self._pool.discard(process)

    def replace(self, function: str) -> None:
        self._pool.replace(lambda key: key == function)

    def end_unused_since(self, moment: float) -> None:
        self._pool.end_unused_since(moment)

    def living(self) -> list[Process]:
        return [process for processes in self.by_function.values() for process in processes]


@pytest.fixture
def pool() -> Processes:
    return Processes()


@pytest.mark.guards("concurrency-warmest-process-reused")
def test_of_the_idle_processes_the_one_used_last_is_used_again(pool: Processes) -> None:
    first, second, third = pool.take(), pool.take(), pool.take()
    for moment, process in ((1, third), (2, first), (3, second)):
        pool.give_back(process, at=moment)
    assert [pool.take(), pool.take(), pool.take()] == [second, first, third]
    assert pool.take() not in (first, second, third)


@pytest.mark.guards("concurrency-process-not-shared")
def test_a_process_in_use_is_given_to_nobody_else_and_one_of_another_function_neither(pool: Processes) -> None:
    busy, idle = pool.take(), pool.used(at=1, function="another")
    assert pool.take() not in (busy, idle)


def test_a_process_that_cannot_be_used_again_is_forgotten(pool: Processes) -> None:
    broken = pool.take()
    pool.discard(broken)
    assert pool.ended == [broken]
    assert pool.take() is not broken


@pytest.mark.guards("concurrency-update-kills-no-work", "concurrency-outdated-process-ended")
def test_of_a_function_that_is_updated_what_idles_ends_at_once_and_what_works_with_its_work(pool: Processes) -> None:
    busy, broken, idle, another = pool.take(), pool.take(), pool.used(at=1), pool.take("another")
    pool.replace("one")
    assert pool.ended == [idle]
    new = pool.take()
    assert new not in (busy, broken, idle)
    pool.replace("nobody's")
    pool.give_back(busy, at=2)
    pool.discard(broken)
    pool.give_back(new, at=3)
    pool.give_back(another, at=4)
    assert pool.ended == [idle, busy, broken]
    assert (pool.take(), pool.take("another")) == (new, another)


@pytest.mark.guards("concurrency-process-not-shared")
def test_what_has_been_idle_for_too_long_is_ended_and_what_is_in_use_never(pool: Processes) -> None:
    busy, recent, old = pool.take(), pool.take(), pool.take()
    pool.give_back(old, at=1)
    pool.give_back(recent, at=3)
    pool.end_unused_since(2)
    assert pool.ended == [old]
    assert pool.living() == [busy, recent]
    pool.end_unused_since(3)
    assert pool.living() == [busy]


def test_of_a_function_that_nobody_asks_for_nothing_stays(pool: Processes) -> None:
    pool.used(at=1)
    pool.end_unused_since(1)
    assert pool.by_function == {}


@pytest.mark.guards("concurrency-coldest-makes-room", "concurrency-process-replacement")
def test_a_further_process_takes_the_place_of_the_one_that_idles_for_longest() -> None:
    pool = Processes(most=3)
    oldest, newer, busy = pool.used(at=1, function="a"), pool.used(at=2, function="b"), pool.take("c")
    made = pool.take("d")
    assert pool.ended == [oldest]
    assert pool.living() == [newer, busy, made]


@pytest.mark.guards("concurrency-process-not-shared")
def test_with_all_processes_in_use_none_is_ended_and_nobody_waits() -> None:
    pool = Processes(most=1)
    busy = pool.take()
    further = pool.take()
    assert pool.ended == []
    assert pool.living() == [busy, further]
