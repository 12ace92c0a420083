"""Histories of a Darkroom as Hypothesis generates them: what clients, queues, processes, clocks and operators do."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from darkroom.domain.images.image import Status, run_key
from darkroom.domain.kernel.message import Message
from tests.simulation.model.processes import MODES, Call, Fault
from tests.simulation.model.world import (
    ROLES,
    SKEW_LIMIT_SECONDS,
    STORES,
    TENANTS,
    Counts,
    Model,
    pretended_engine,
    real_engine,
)

COUNTS = Counts()
"""The counts over all histories of this process."""

RULES = (
    "submit",
    "submit with a key",
    "delete",
    "deliver",
    "duplicate",
    "reorder",
    "delay",
    "expire visibility",
    "lose a message",
    "forge a message",
    "remember otherwise",
    "lose its original",
    "meanwhile",
    "crash",
    "go on",
    "apply late",
    "throttle",
    "break the worker",
    "skew a clock",
    "crowd a lane",
    "lag of the index",
    "mend the bug",
    "bring the bug back",
    "plant a row of an unknown version",
    "list",
    "pass time",
    "let run",
    "sweep",
    "two sweeps at once",
    "replay by letters",
    "replay by redrive",
    "replay by row",
    "redo by row",
    "lose an output",
    "make again what was lost",
    "drop what is settled",
    "drop by force",
)
"""Everything that can happen in a history, by the names in a report's table."""

type ProcessOptions = dict[str, Any]
type Upload = tuple[int, str, int, str | None]
type Step = tuple[Any, ...]

ANY = st.integers(0, 30)
"""An index into the existing ones, modulo their number."""

uploads: st.SearchStrategy[Upload] = st.tuples(
    ANY, st.sampled_from(TENANTS), st.integers(0, 1), st.none() | st.sampled_from(["order-1", "order-2"])
)
queues = st.sampled_from(["slow", "slow", "slow", "fast"])
ONE = st.just(0) | ANY
"""The same, but half the time the first: the one that a paused process works on."""

deliveries = st.tuples(st.just("deliver"), ONE)
sweeps = st.just(("sweep",))
withdrawals = st.tuples(st.just("delete"), ONE, st.sampled_from([True, True, False]))
replays = st.tuples(st.just("replay"), queues, st.sampled_from(["letters", "redrive", "row"]), ONE) | st.tuples(
    st.just("redo"), st.booleans(), ONE
)
drops = st.tuples(st.just("drop"), queues, st.booleans())


def _calls(*counts: tuple[str, int]) -> tuple[Call, ...]:
    return tuple(Call(store=store, number=number) for store, count in counts for number in range(count))


CALLS = {
    "submit": _calls(("images", 3), ("originals", 1), ("message_keys", 1), ("lanes", 1)),
    "deliver": _calls(
        *(("message_keys", 1), ("images", 3), ("once", 2), ("originals", 1), ("engine", 1), ("outputs", 2)),
        *(("lanes", 1), ("dead_letters", 1)),
    ),
    "sweep": _calls(
        *(("images", 5), ("index", 4), ("outputs", 1), ("originals", 1), ("message_keys", 1), ("lanes", 2)),
        *(("dead_letters", 6),),
    ),
    "delete": _calls(("images", 3)),
    "replay": _calls(("images", 4), ("message_keys", 1), ("lanes", 1), ("dead_letters", 4), ("redrives", 3)),
    "drop": _calls(("images", 2), ("dead_letters", 4)),
}
"""The first calls that a process makes, by their stores."""


def process_options(process: str) -> st.SearchStrategy[ProcessOptions]:
    """What happens to a process and where it pauses, if at all."""
    calls = st.sampled_from(CALLS[process])
    faults = st.builds(Fault, at=calls, mode=st.sampled_from(MODES))
    return st.fixed_dictionaries({"fault": st.none() | faults | faults, "stops_at": st.none() | calls})


def stopped(process: str, steps: st.SearchStrategy[Step]) -> st.SearchStrategy[tuple[Step, ProcessOptions]]:
    """A process that pauses at one of its calls, and may be struck later."""
    calls = st.sampled_from(CALLS[process])
    faults = st.builds(Fault, at=calls, mode=st.sampled_from(MODES))
    return st.tuples(steps, st.fixed_dictionaries({"fault": st.none() | st.none() | faults, "stops_at": calls}))


orders: st.SearchStrategy[tuple[Step, ProcessOptions]] = st.one_of(
    st.tuples(withdrawals, process_options("delete")),
    st.tuples(replays, process_options("replay")),
    st.tuples(drops, process_options("drop")),
)

meantimes: st.SearchStrategy[Step] = st.one_of(
    deliveries,
    deliveries,
    sweeps,
    withdrawals,
    replays,
    drops,
    st.tuples(st.just("pass time"), st.sampled_from([1, 25, 61])),
    st.tuples(st.just("skew"), st.sampled_from(ROLES), st.sampled_from([-SKEW_LIMIT_SECONDS, 0, SKEW_LIMIT_SECONDS])),
)
"""What may happen while another process is paused."""

queue_faults: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("duplicate"), st.integers(1, 10)),
    st.just(("reorder",)),
    st.tuples(st.just("delay"), st.sampled_from([1, 60, 900, 4 * 3600])),
    st.just(("expire visibility",)),
    st.just(("lose a message",)),
    st.just(("remember otherwise",)),
    st.just(("lose its original",)),
    st.tuples(
        st.just("forge a message"),
        st.sampled_from(
            [{"run": 7}, {"schedule": 1}, {"tenant_id": "mallory"}, {"lane": "fast"}, {"image_id": "0" * 26}, {}]
        ),
        st.booleans(),
    ),
)

store_faults: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("throttle"), st.sampled_from(STORES), st.sampled_from([1, 60, 300])),
    st.tuples(st.just("break the worker"), st.sampled_from([60, 300, 3600])),
    st.tuples(st.just("skew a clock"), st.sampled_from(ROLES), st.integers(-SKEW_LIMIT_SECONDS, SKEW_LIMIT_SECONDS)),
    st.tuples(st.just("crowd a lane"), st.sampled_from([0, 100, 5000])),
    st.just(("lag of the index",)),
    st.just(("mend the bug",)),
    st.just(("bring the bug back",)),
    st.tuples(
        st.just("plant a row of an unknown version"),
        st.sampled_from(TENANTS),
        st.sampled_from(["slow", "fast"]),
        st.sampled_from([False, False, True]),
    ),
    st.tuples(st.just("list"), st.sampled_from(TENANTS)),
)


class Histories(RuleBasedStateMachine):
    """One history; at its end every fault is over, and the system must come to rest as it should."""

    def __init__(self) -> None:
        super().__init__()
        self.model = self._model()

    def _model(self) -> Model:
        return Model(pretended_engine(), COUNTS)

    def teardown(self) -> None:
        try:
            if sys.exception() is None:
                self.model.settle()
                COUNTS.totals["histories"] += 1
        finally:
            self.model.close()

    def _happens(self, name: str) -> None:
        COUNTS.rules[name] += 1

    @initialize(uploads=st.lists(uploads, min_size=1, max_size=3))
    def begin(self, uploads: list[Upload]) -> None:
        for upload in uploads:
            self._submit(upload, {})

    # ── Processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(upload=uploads, options=process_options("submit"))
    def submit(self, upload: Upload, options: ProcessOptions) -> None:
        self._submit(upload, options)

    @precondition(lambda self: self.model.lanes.visible())
    @rule(step=deliveries)
    def deliver_well(self, step: Step) -> None:
        self._do(step, {})

    @precondition(lambda self: self.model.lanes.visible())
    @rule(step=deliveries, options=process_options("deliver"))
    def deliver(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(step=sweeps, options=process_options("sweep"))
    def sweep(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(order=orders)
    def order(self, order: tuple[Step, ProcessOptions]) -> None:
        """One rule for everything that clients and operators request, so that it does not crowd out the work itself."""
        self._do(*order)

    @precondition(lambda self: self.model.lanes.visible())
    @rule(first=stopped("deliver", deliveries), meantime=st.lists(meantimes, min_size=1, max_size=3))
    def while_a_worker_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(first=stopped("sweep", sweeps), meantime=st.lists(meantimes, min_size=1, max_size=3))
    def while_a_sweep_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(
        first=stopped("delete", withdrawals) | stopped("replay", replays),
        meantime=st.lists(meantimes, min_size=1, max_size=3),
    )
    def while_another_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(turns=st.lists(st.integers(1, 4), max_size=8), options=process_options("sweep"))
    def two_sweeps(self, turns: list[int], options: ProcessOptions) -> None:
        self._happens("two sweeps at once")
        self.model.sweep_twice(turns, **options)

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

    def _meanwhile(self, first: Step, options: ProcessOptions, meantime: list[Step]) -> None:
        """A process pauses at one of its calls while others run, and then continues, if it still can."""
        verdict = set(self.model.stopped)
        self._do(first, options)
        self._happens("meanwhile")
        for step in meantime:
            self._do(step, {})
        for process in set(self.model.stopped) - verdict:
            self.model.go_on(process, None)

    def _submit(self, upload: Upload, options: ProcessOptions) -> None:
        which, tenant, recipe, key = upload
        self._happens("submit" if key is None else "submit with a key")
        photos = self.model.engine.photos
        self.model.submit(photos[which % len(photos)], tenant, recipe, key, **options)

    def _do(self, step: Step, options: ProcessOptions) -> None:
        model = self.model
        rows = sorted(model.images.rows.values(), key=lambda row: not model.is_at(row.image_id))
        visible = sorted(model.lanes.visible(), key=lambda message: not model.is_at(message.message.image_id))
        match step:
            case ("deliver", which) if visible:
                self._happens("deliver")
                model.deliver(visible[which % len(visible)], **options)
            case ("sweep",):
                self._happens("sweep")
                model.sweep(**options)
            case ("delete", which, owns) if rows:
                self._happens("delete")
                row = rows[which % len(rows)]
                model.delete(row.image_id, row.tenant_id if owns else "mallory", **options)
            case ("replay", queue, by, which) if rows:
                self._happens(f"replay by {by}")
                model.replay(queue, by, rows[which % len(rows)].image_id, **options)
            case ("redo", is_lost, which) if done := [row for row in rows if row.status is Status.DONE]:
                self._happens("redo by row")
                image_id = done[which % len(done)].image_id
                if is_lost:
                    self._happens("lose an output")
                    model.lose_output(image_id)
                model.redo(image_id, **options)
            case ("drop", queue, force) if rows:
                self._happens("drop by force" if force else "drop what is settled")
                model.drop(queue, force=force, **options)
            case ("pass time", seconds):
                model.pass_time(seconds)
            case ("skew", role, seconds):
                model.skew(role, seconds)

    # ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.model.lanes.messages)
    @rule(which=ANY, queue_fault=queue_faults)
    def play(self, which: int, queue_fault: Step) -> None:
        """One rule for everything that happens to a message, so that it does not crowd out the deliveries."""
        lanes = self.model.lanes
        which %= len(lanes.messages)
        message = lanes.messages[which]
        match queue_fault:
            case ("duplicate", times):
                COUNTS.totals["duplicates"] += times
                for _ in range(times):
                    lanes.send(message.message)
            case ("reorder",):
                lanes.messages[:] = lanes.messages[which:][::-1] + lanes.messages[:which]
            case ("delay", seconds):
                lanes.hide(message, seconds)
            case ("expire visibility",):
                lanes.hide(message, 0)
            case ("lose a message",):
                lanes.acknowledge(message)
            case ("forge a message", change, is_signed):
                self.model.forge(message.message.model_copy(update=change), is_signed=is_signed)
            case ("remember otherwise",):
                self.model.once.remember_otherwise(self._key_of(message.message))
            case ("lose its original",):
                self.model.lose_original(message.message.image_id)
        self._happens(queue_fault[0])

    def _key_of(self, message: Message) -> str:
        row = self.model.images.rows.get(message.image_id)
        # Nobody works on what was withdrawn, so nobody remembers anything of it from then on.
        return "" if row is None or row.is_deleted else run_key(row.image_id, row.run)

    # ── The environment ──────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.model.surroundings.under_way)
    @rule()
    def land(self) -> None:
        self._happens("apply late")
        self.model.surroundings.land()

    @rule(store_fault=store_faults)
    def change(self, store_fault: Step) -> None:
        """One rule for everything that only changes the environment, so that it does not crowd out the other rules."""
        model = self.model
        match store_fault:
            case ("throttle", store, seconds):
                model.throttle(store, seconds)
            case ("break the worker", seconds):
                model.throttle("worker", seconds)
            case ("skew a clock", role, seconds):
                model.skew(role, seconds)
            case ("crowd a lane", messages):
                model.lanes.crowd = messages
            case ("lag of the index",):
                model.images.lagging = dict(model.images.rows) if model.images.lagging is None else None
            case ("mend the bug",):
                model.mend()
            case ("bring the bug back",):
                model.mended = False
            case ("plant a row of an unknown version", tenant, lane, has_dead_letter):
                model.plant(tenant, lane, has_dead_letter=has_dead_letter)
            case ("list", tenant):
                model.look_through(tenant)
        self._happens(store_fault[0])

    @rule(seconds=st.sampled_from([1, 25, 61, 361, 900, 1201, 3600]))
    def pass_time(self, seconds: int) -> None:
        self._happens("pass time")
        self.model.pass_time(seconds)

    @rule(minutes=st.integers(1, 12))
    def let_run(self, minutes: int) -> None:
        self._happens("let run")
        self.model.let_run(minutes)

    @invariant()
    def what_always_holds(self) -> None:
        self.model.check()


class RealHistories(Histories):
    """The same by the real engine."""

    def _model(self) -> Model:
        return Model(real_engine(), COUNTS)
