"""Histories of a Darkroom as Hypothesis generates them: what clients, queues, processes, clocks and operators do."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from darkroom.domain.images.image import Status, run_key
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.visibility import Visibility
from tests.simulation.model.machine import (
    ANY,
    ONE,
    ProcessMachine,
    ProcessOptions,
    Step,
    calls_of,
    deliveries,
    options_of,
    queue_faults,
    stopped_at,
    sweeps,
)
from tests.simulation.model.world import (
    REUSE,
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
    "submit to reuse",
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
    "add variants",
    "change visibility",
    "lose an output",
    "make again what was lost",
    "drop what is settled",
    "drop by force",
)
"""Everything that can happen in a history, by the names in a report's table."""

type Upload = tuple[int, str, int, str | None]
uploads: st.SearchStrategy[Upload] = st.tuples(
    ANY, st.sampled_from(TENANTS), st.integers(0, 1), st.none() | st.sampled_from(["order-1", "order-2", REUSE, REUSE])
)
queues = st.sampled_from(["slow", "slow", "slow", "fast"])
withdrawals = st.tuples(st.just("delete"), ONE, st.sampled_from([True, True, False]))
additions = st.tuples(
    st.just("variants"), st.sampled_from([0, 1, 1, 2]), st.none() | st.sampled_from(["more-1", "more-2"]), ONE
)
visibilities = st.tuples(st.just("visibility"), st.sampled_from(["public", "signed"]), ONE)
replays = st.tuples(st.just("replay"), queues, st.sampled_from(["letters", "redrive", "row"]), ONE) | st.tuples(
    st.just("redo"), st.sampled_from(["", "output", "original"]), ONE
)
drops = st.tuples(st.just("drop"), queues, st.booleans())


CALLS = {
    "submit": calls_of(("images", 3), ("originals", 1), ("message_keys", 1), ("lanes", 1)),
    "deliver": calls_of(
        *(("message_keys", 1), ("images", 3), ("once", 2), ("originals", 1), ("engine", 1), ("outputs", 4)),
        *(("lanes", 1), ("dead_letters", 1), ("edge", 2)),
    ),
    "sweep": calls_of(
        *(("images", 5), ("index", 4), ("outputs", 1), ("originals", 1), ("message_keys", 1), ("lanes", 2)),
        *(("dead_letters", 6),),
    ),
    "delete": calls_of(("images", 3)),
    "add variants": calls_of(("images", 4), ("message_keys", 1), ("lanes", 1)),
    "change visibility": calls_of(("images", 4), ("message_keys", 1), ("lanes", 1)),
    "replay": calls_of(("images", 4), ("message_keys", 1), ("lanes", 1), ("dead_letters", 4), ("redrives", 3)),
    "drop": calls_of(("images", 2), ("dead_letters", 4)),
}
"""The first calls that a process makes, by their stores."""


orders: st.SearchStrategy[tuple[Step, ProcessOptions]] = st.one_of(
    st.tuples(withdrawals, options_of(CALLS["delete"])),
    st.tuples(replays, options_of(CALLS["replay"])),
    st.tuples(additions, options_of(CALLS["add variants"])),
    st.tuples(visibilities, options_of(CALLS["change visibility"])),
    st.tuples(drops, options_of(CALLS["drop"])),
)

meantimes: st.SearchStrategy[Step] = st.one_of(
    deliveries,
    deliveries,
    sweeps,
    withdrawals,
    replays,
    additions,
    visibilities,
    drops,
    st.tuples(st.just("pass time"), st.sampled_from([1, 25, 61])),
    st.tuples(st.just("skew"), st.sampled_from(ROLES), st.sampled_from([-SKEW_LIMIT_SECONDS, 0, SKEW_LIMIT_SECONDS])),
)
"""What may happen while another process is paused."""

message_faults: st.SearchStrategy[Step] = st.one_of(
    queue_faults,
    queue_faults,
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


class Histories(ProcessMachine[Model]):
    """One history of images."""

    counts = COUNTS
    sweep_calls = CALLS["sweep"]

    def __init__(self) -> None:
        super().__init__()
        self.model = self._model()

    def _model(self) -> Model:
        return Model(pretended_engine(), COUNTS)

    def _has_ended(self) -> None:
        COUNTS.totals["histories"] += 1

    def _happens(self, name: str) -> None:
        COUNTS.rules[name] += 1

    @initialize(uploads=st.lists(uploads, min_size=1, max_size=3))
    def begin(self, uploads: list[Upload]) -> None:
        for upload in uploads:
            self._submit(upload, {})

    # ── Processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(upload=uploads, options=options_of(CALLS["submit"]))
    def submit(self, upload: Upload, options: ProcessOptions) -> None:
        self._submit(upload, options)

    @precondition(lambda self: self.model.lanes.visible())
    @rule(step=deliveries)
    def deliver_well(self, step: Step) -> None:
        self._do(step, {})

    @precondition(lambda self: self.model.lanes.visible())
    @rule(step=deliveries, options=options_of(CALLS["deliver"]))
    def deliver(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(step=sweeps, options=options_of(CALLS["sweep"]))
    def sweep(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(order=orders)
    def order(self, order: tuple[Step, ProcessOptions]) -> None:
        """One rule for everything that clients and operators request, so that it does not crowd out the work itself."""
        self._do(*order)

    @precondition(lambda self: self.model.lanes.visible())
    @rule(first=stopped_at(CALLS["deliver"], deliveries), meantime=st.lists(meantimes, min_size=1, max_size=3))
    def while_a_worker_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(first=stopped_at(CALLS["sweep"], sweeps), meantime=st.lists(meantimes, min_size=1, max_size=3))
    def while_a_sweep_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(
        first=stopped_at(CALLS["delete"], withdrawals)
        | stopped_at(CALLS["replay"], replays)
        | stopped_at(CALLS["add variants"], additions)
        | stopped_at(CALLS["change visibility"], visibilities),
        meantime=st.lists(meantimes, min_size=1, max_size=3),
    )
    def while_another_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    def _submit(self, upload: Upload, options: ProcessOptions) -> None:
        which, tenant, recipe, key = upload
        self._happens("submit" if key is None else "submit to reuse" if key == REUSE else "submit with a key")
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
            case ("redo", lost, which) if done := [row for row in rows if row.outcome is Status.DONE]:
                self._happens("redo by row")
                image_id = done[which % len(done)].image_id
                if lost:
                    self._happens(f"lose an {lost}" if lost == "output" else "lose its original")
                    (model.lose_output if lost == "output" else model.lose_original)(image_id)
                model.redo(image_id, **options)
            case ("variants", addition, key, which) if done := [row for row in rows if row.outcome is Status.DONE]:
                self._happens("add variants")
                model.add_variants(done[which % len(done)].image_id, addition, key, **options)
            case ("visibility", exposed, which) if done := [row for row in rows if row.outcome is Status.DONE]:
                self._happens("change visibility")
                model.change_visibility(done[which % len(done)].image_id, Visibility(exposed), **options)
            case ("drop", queue, force) if rows:
                self._happens("drop by force" if force else "drop what is settled")
                model.drop(queue, force=force, **options)
            case ("pass time", seconds):
                model.pass_time(seconds)
            case ("skew", role, seconds):
                model.skew(role, seconds)

    # ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.model.lanes.messages)
    @rule(which=ANY, fault=message_faults)
    def play(self, which: int, fault: Step) -> None:
        """One rule for everything that happens to a message, so that it does not crowd out the deliveries."""
        lanes = self.model.lanes
        message = lanes.messages[which % len(lanes.messages)]
        match fault:
            case ("duplicate", times):
                COUNTS.totals["duplicates"] += times
            case ("forge a message", change, is_signed):
                self.model.forge(message.message.model_copy(update=change), is_signed=is_signed)
            case ("remember otherwise",):
                self.model.once.remember_otherwise(self._key_of(message.message))
            case ("lose its original",):
                self.model.lose_original(message.message.image_id)
        self._play(lanes, message, fault)

    def _key_of(self, message: Message) -> str:
        row = self.model.images.rows.get(message.image_id)
        # Nobody works on what was withdrawn, so nobody remembers anything of it from then on.
        return "" if row is None or row.is_deleted else run_key(row.image_id, row.run)

    # ── The environment ──────────────────────────────────────────────────────────────────────────────────────────────

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


class RealHistories(Histories):
    """The same by the real engine."""

    def _model(self) -> Model:
        return Model(real_engine(), COUNTS)
