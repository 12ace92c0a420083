"""Histories of webhooks as Hypothesis generates them: what events, queues, workers, owners and receivers do."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from darkroom.domain.events.event import EventType
from darkroom.domain.webhooks.delivery import MAX_ATTEMPTS
from darkroom.domain.webhooks.endpoint import LAG_SECONDS
from tests.simulation.model.machine import (
    ANY,
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
from tests.simulation.webhooks.world import BUSY, DOWN, GONE, LATE, SLOW, STORES, UNREACHED, Model, What
from tests.support.fakes.webhooks import OK
from tests.support.fakes.world import TENANT

COUNTS: Counter[str] = Counter()
"""How often everything has happened, over all histories of this process."""

WHATS: tuple[What, ...] = get_args(What.__value__)
ANSWERS = {"ok": OK, "down": DOWN, "gone": GONE, "slow": SLOW, "busy": BUSY, "late": LATE, "unreached": UNREACHED}

RULES = (
    *("tell", "tell twice", "delete", "hear", "deliver", "sweep", "two sweeps at once", "meanwhile", "crash", "go on"),
    *("duplicate", "reorder", "delay", "expire visibility", "lose a message", "apply late", "throttle"),
    *(f"receiver: {name}" for name in ANSWERS),
    *(f"owner: {what}" for what in WHATS),
    *("suspend", "lag of the index", "use up attempts", "pass time", "let run"),
    *("a newer version writes: endpoint", "a newer version writes: delivery", "a newer version writes: probe"),
    "the newer version again",
)
"""Everything that can happen in a history, by the names in a report's table."""

OUTCOMES = (
    *("delivered", "failed", "gave_up", "leased", "early", "ended"),
    *("disabled", "resting", "busy", "suspended", "endpoint_gone", "unreadable"),
)
"""What a message can come to; each must have come to pass."""

LOOKS = ("sent", "quiet", "resting", "suspended", "unreachable", "unreadable", "not_due")
"""The outcomes that looks must have had."""

hearings = st.tuples(st.just("hear"), ANY, st.integers(1, 3))
questions = st.tuples(st.just("ask"), st.sampled_from([*WHATS[:-1], *WHATS[:-1], "remove"]), ANY)


CALLS = {
    "hear": calls_of(("images", 2), ("endpoints", 4), ("deliveries", 3), ("queue", 3), ("events", 2)),
    "deliver": calls_of(
        *(("endpoints", 4), ("deliveries", 5), ("receiver", 1), ("receiver", 1), ("queue", 3)),
        *(("secret", 1), ("tenants", 1), ("index", 1)),
    ),
    "sweep": calls_of(("endpoints", 8), ("deliveries", 3), ("index", 2), ("queue", 2), ("tenants", 2)),
    "ask": calls_of(("endpoints", 3), ("deliveries", 1), ("queue", 1), ("secret", 1)),
}
"""The first calls that a process makes, by their stores."""


meantimes: st.SearchStrategy[Step] = st.one_of(
    deliveries,
    deliveries,
    hearings,
    sweeps,
    questions,
    st.tuples(st.just("delete"), ANY),
    st.tuples(st.just("pass time"), st.sampled_from([1, 5, 44, 61])),
    st.tuples(st.just("receiver"), st.sampled_from(sorted(ANSWERS))),
)
"""What may happen while another process is paused."""

store_faults: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("throttle"), st.sampled_from(STORES), st.sampled_from([1, 60, 300])),
    st.tuples(st.just("receiver"), st.sampled_from(["ok", *sorted(ANSWERS)])),
    st.just(("suspend",)),
    st.just(("use up attempts",)),
    st.tuples(st.just("newer"), st.sampled_from(["endpoint", "delivery", "probe"]), ANY),
    st.just(("newer again",)),
    st.tuples(st.just("lag"), st.integers(0, LAG_SECONDS - 1)),
)


class Histories(ProcessMachine[Model]):
    """One history of webhooks."""

    counts = COUNTS
    sweep_calls = CALLS["sweep"]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(counts=COUNTS)
        self.events = 0
        self.deleted: set[int] = set()

    def _has_ended(self) -> None:
        COUNTS["histories"] += 1

    def _happens(self, name: str) -> None:
        COUNTS[f"rule: {name}"] += 1

    @initialize(count=st.integers(1, 6), two=st.booleans(), is_wide=st.booleans())
    def begin(self, count: int, two: bool, is_wide: bool) -> None:
        self.model.add(is_wide=is_wide)
        if two:
            self.model.add(1)
        for _ in range(count):
            self._tell(EventType.DONE, 1)
        for message in self.model.events.visible():
            self.model.hear(message)

    # ── Processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(kind=st.sampled_from([EventType.DONE, EventType.DONE, EventType.FAILED]), copies=st.sampled_from([1, 1, 2]))
    def tell(self, kind: EventType, copies: int) -> None:
        self._tell(kind, copies)

    @rule(which=ANY)
    def delete(self, which: int) -> None:
        self._delete(which)

    @precondition(lambda self: self.model.events.visible())
    @rule(step=hearings, options=options_of(CALLS["hear"]))
    def hear(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @precondition(lambda self: self.model.queue.visible())
    @rule(step=deliveries)
    def deliver_well(self, step: Step) -> None:
        self._do(step, {})

    @precondition(lambda self: self.model.queue.visible())
    @rule(step=deliveries, options=options_of(CALLS["deliver"]))
    def deliver(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(step=sweeps, options=options_of(CALLS["sweep"]))
    def sweep(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @rule(step=questions, options=options_of(CALLS["ask"]))
    def ask(self, step: Step, options: ProcessOptions) -> None:
        self._do(step, options)

    @precondition(lambda self: self.model.queue.visible())
    @rule(first=stopped_at(CALLS["deliver"], deliveries), meantime=st.lists(meantimes, min_size=1, max_size=4))
    def while_a_worker_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    @rule(
        first=stopped_at(CALLS["sweep"], sweeps)
        | stopped_at(CALLS["ask"], questions)
        | stopped_at(CALLS["hear"], hearings),
        meantime=st.lists(meantimes, min_size=1, max_size=3),
    )
    def while_another_stands(self, first: tuple[Step, ProcessOptions], meantime: list[Step]) -> None:
        self._meanwhile(*first, meantime)

    def _tell(self, kind: EventType, copies: int) -> None:
        self._happens("tell" if copies == 1 else "tell twice")
        self.model.tell(self.events, kind, copies=copies)
        self.events += 1

    def _delete(self, which: int) -> None:
        if (number := which % self.events) not in self.deleted:
            self._happens("delete")
            self.deleted.add(number)
            self.model.delete(number)

    def _do(self, step: Step, options: ProcessOptions) -> None:
        model = self.model
        visible = model.events.visible()
        sent = sorted(model.queue.visible(), key=lambda message: not model.is_at(message.message.delivery_id))
        endpoints = model.endpoints.all()
        match step:
            case ("hear", which, count) if visible:
                self._happens("hear")
                which %= len(visible)
                model.hear(*visible[which : which + count], **options)
            case ("deliver", which) if sent:
                self._happens("deliver")
                model.deliver(sent[which % len(sent)], **options)
            case ("sweep",):
                self._happens("sweep")
                model.sweep(**options)
            case ("ask", what, which) if endpoints:
                self._happens(f"owner: {what}")
                model.ask(what, endpoints[which % len(endpoints)].endpoint_id, **options)
            case ("delete", which):
                self._delete(which)
            case ("pass time", seconds):
                self._happens("pass time")
                model.pass_time(seconds)
            case ("receiver", name):
                self._happens(f"receiver: {name}")
                model.receiver.answer = ANSWERS[name]

    # ── Queues ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.model.queue.messages)
    @rule(which=ANY, queue_fault=queue_faults)
    def play(self, which: int, queue_fault: Step) -> None:
        """One rule for everything that happens to a message, so that it does not crowd out the deliveries."""
        messages = self.model.queue.messages
        self._play(self.model.queue, messages[which % len(messages)], queue_fault)

    # ── The environment ──────────────────────────────────────────────────────────────────────────────────────────────

    @rule(store_fault=store_faults)
    def change(self, store_fault: Step) -> None:
        """One rule for everything that only changes the environment, so that it does not crowd out the other rules."""
        match store_fault:
            case ("throttle", store, seconds):
                self._happens("throttle")
                self.model.throttle(store, seconds)
            case ("suspend",):
                self._happens("suspend")
                self.model.tenants.suspended ^= {TENANT}
            case ("use up attempts",):
                self._happens("use up attempts")
                self.model.plant(attempt=MAX_ATTEMPTS - 1)
            case ("newer", what, which):
                if self.model.write_as_newer(which, an_endpoint=what == "endpoint", is_probe=what == "probe"):
                    self._happens(f"a newer version writes: {what}")
            case ("newer again",) if self.model.newer:
                self._happens("the newer version again")
                self.model.deploy_newer()
            case ("lag", seconds):
                self._happens("lag of the index")
                self.model.deliveries.lag = seconds * 1000
            case _:
                self._do(store_fault, {})

    @rule(seconds=st.sampled_from([1, 5, 25, 61, 361, 900, 3601, 86_400]))
    def pass_time(self, seconds: int) -> None:
        self._happens("pass time")
        self.model.pass_time(seconds)
