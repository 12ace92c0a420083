"""What Hypothesis generates for both models: processes that pause and are struck, and faults of a queue."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.simulation.model.processes import MODES, Call, Fault
from tests.simulation.model.simulated import Simulated
from tests.simulation.model.stores import QueuedMessage, SimulatedQueue

type ProcessOptions = dict[str, Any]
type Step = tuple[Any, ...]

ANY = st.integers(0, 30)
"""An index into the existing ones, modulo their number."""

ONE = st.just(0) | ANY
"""The same, but half the time the first: the one that a paused process works on."""

deliveries = st.tuples(st.just("deliver"), ONE)
sweeps = st.just(("sweep",))


def calls_of(*counts: tuple[str, int]) -> tuple[Call, ...]:
    """The first calls of stores, so many of each."""
    return tuple(Call(store=store, number=number) for store, count in counts for number in range(count))


def faults_at(calls: Sequence[Call]) -> st.SearchStrategy[Fault]:
    """Something that strikes one of the calls."""
    return st.builds(Fault, at=st.sampled_from(calls), mode=st.sampled_from(MODES))


def options_of(calls: Sequence[Call]) -> st.SearchStrategy[ProcessOptions]:
    """What happens to a process and where it pauses, if at all."""
    return st.fixed_dictionaries(
        {"fault": st.none() | faults_at(calls), "stops_at": st.none() | st.sampled_from(calls)}
    )


def stopped_at(calls: Sequence[Call], steps: st.SearchStrategy[Step]) -> st.SearchStrategy[tuple[Step, ProcessOptions]]:
    """A process that pauses at one of its calls, and may be struck later."""
    faults = st.none() | st.none() | faults_at(calls)
    return st.tuples(steps, st.fixed_dictionaries({"fault": faults, "stops_at": st.sampled_from(calls)}))


queue_faults: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("duplicate"), st.integers(1, 10)),
    st.just(("reorder",)),
    st.tuples(st.just("delay"), st.sampled_from([1, 60, 900, 4 * 3600])),
    st.just(("expire visibility",)),
    st.just(("lose a message",)),
)


class ProcessMachine[M: Simulated](RuleBasedStateMachine):
    """One history; at its end every fault is over, and the system must come to rest as it should."""

    counts: ClassVar[Any]
    """What has happened over all histories of this process."""

    sweep_calls: ClassVar[Sequence[Call]]
    model: M

    def teardown(self) -> None:
        try:
            if (failure := sys.exception()) is not None:
                failure.add_note("\n".join(self.model.story))
            else:
                self.model.settle()
                self._has_ended()
        finally:
            self.model.close()

    def _has_ended(self) -> None:
        raise NotImplementedError

    def _happens(self, name: str) -> None:
        raise NotImplementedError

    def _do(self, step: Step, options: ProcessOptions) -> None:
        raise NotImplementedError

    @rule(turns=st.lists(st.integers(1, 4), max_size=8), data=st.data())
    def two_sweeps(self, turns: list[int], data: st.DataObject) -> None:
        self._happens("two sweeps at once")
        self.model.sweep_twice(turns, **data.draw(options_of(self.sweep_calls)))

    @precondition(lambda self: self.model.stopped)
    @rule(which=ANY)
    def crash(self, which: int) -> None:
        self._happens("crash")
        self.model.kill(self.model.stopped[which % len(self.model.stopped)])

    @precondition(lambda self: self.model.stopped)
    @rule(which=ANY, calls=st.none() | st.integers(1, 9))
    def go_on(self, which: int, calls: int | None) -> None:
        self._happens("go on")
        self.model.go_on(self.model.stopped[which % len(self.model.stopped)], calls)

    @precondition(lambda self: self.model.surroundings.under_way)
    @rule()
    def land(self) -> None:
        self._happens("apply late")
        self.model.surroundings.land()

    @rule(minutes=st.integers(1, 12))
    def let_run(self, minutes: int) -> None:
        self._happens("let run")
        self.model.let_run(minutes)

    @invariant()
    def what_always_holds(self) -> None:
        self.model.check()

    def _meanwhile(self, first: Step, options: ProcessOptions, meantime: list[Step]) -> None:
        """A process pauses at one of its calls while others run, and then continues, if it still can."""
        before = set(self.model.stopped)
        self._do(first, options)
        self._happens("meanwhile")
        for step in meantime:
            self._do(step, {})
        for process in set(self.model.stopped) - before:
            self.model.go_on(process)

    def _play(self, queue: SimulatedQueue[Any], message: QueuedMessage[Any], fault: Step) -> None:
        """What happens to a message in its queue."""
        match fault:
            case ("duplicate", times):
                for _ in range(times):
                    queue.send(message.message)
            case ("reorder",):
                at = queue.messages.index(message)
                queue.messages[:] = queue.messages[at:][::-1] + queue.messages[:at]
            case ("delay", seconds):
                queue.hide(message, seconds)
            case ("expire visibility",):
                queue.hide(message, 0)
            case ("lose a message",):
                queue.acknowledge(message)
        self._happens(fault[0])
