"""Small histories of webhooks, and every fault that makes a difference at every call of them: alone, and in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from unittest.mock import patch

from darkroom.domain.events.event import EventType
from darkroom.domain.webhooks import endpoint as endpoints
from darkroom.domain.webhooks.delivery import LEASE_SECONDS, MAX_ATTEMPTS, DeliveryStatus
from darkroom.domain.webhooks.endpoint import FAILURES_TO_REST, MAX_FLIGHTS
from darkroom.operations.webhooks import sweep_due_endpoints
from tests.simulation.model.processes import Call
from tests.simulation.model.stores import Broken, ViolationName
from tests.simulation.webhooks.world import DOWN, GONE, LATE, SLOW, UNREACHED, Model
from tests.support.fakes.webhooks import OK
from tests.support.fakes.world import TENANT
from tests.support.faults import Mode

POST = Call(store="receiver", number=0)
TAKE_OFF = Call(store="endpoints", number=1)
CLAIM = Call(store="deliveries", number=1)
"""A worker's calls."""

type Script = Callable[[Model], None]

HISTORIES: dict[str, Script] = {}
"""The histories by their names."""


def _history(script: Script) -> Script:
    HISTORIES[script.__name__.replace("_", " ")] = script
    return script


def _hear(model: Model) -> None:
    for message in model.events.visible():
        model.hear(message)


@_history
def delivered(model: Model) -> None:
    model.add()
    model.tell(1)
    model.drain()


@_history
def told_to_two_of_three(model: Model) -> None:
    for which in range(3):
        model.add(which)
    model.tell(1)
    model.drain()


@_history
def failed_and_retried(model: Model) -> None:
    model.add()
    model.receiver.answer = DOWN
    model.tell(1)
    model.drain()
    model.receiver.answer = OK
    model.let_run(2)


@_history
def its_message_lost(model: Model) -> None:
    model.add()
    model.tell(1)
    _hear(model)
    model.queue.messages.clear()
    model.let_run(3)


@_history
def an_event_twice(model: Model) -> None:
    model.add()
    model.tell(1, copies=2)
    model.drain()
    model.tell(1)
    model.drain()


@_history
def two_workers_with_one_message(model: Model) -> None:
    model.add()
    model.tell(1)
    _hear(model)
    for message in list(model.queue.messages):
        model.queue.send(message.message)
    for call, message in zip((TAKE_OFF, CLAIM), list(model.queue.messages), strict=False):
        model.deliver(message, stops_at=call)
    model.go_on()
    model.drain()


@_history
def more_than_may_be_on_their_way(model: Model) -> None:
    model.add()
    for number in range(MAX_FLIGHTS + 1):
        model.tell(number)
    _hear(model)
    for message in model.queue.visible():
        model.deliver(message, stops_at=POST)
    model.go_on()
    model.drain()


@_history
def resting(model: Model) -> None:
    model.add()
    model.receiver.answer = DOWN
    for number in range(FAILURES_TO_REST + 1):
        model.tell(number)
    model.drain()
    model.let_run(1)
    model.receiver.answer = OK
    model.let_run(5)


@_history
def more_than_may_be_on_their_way_to_one_host(model: Model) -> None:
    """Each takes off while the others do, and one of them takes its flight back."""
    for _ in range(MAX_FLIGHTS + 1):
        model.add()
    model.tell(1)
    _hear(model)
    for message in model.queue.visible():
        model.deliver(message, stops_at=TAKE_OFF)
    for process in list(model.stopped):
        model.go_on(process, 3)
    model.go_on()
    model.drain()


@_history
def resting_for_their_host(model: Model) -> None:
    """Its owner tries one of them while the other is to, and then the host answers."""
    _, mine = model.add(), model.add(1)
    model.receiver.answer = UNREACHED
    for number in range(2):
        model.tell(number)
    model.drain()
    model.receiver.answer = OK
    model.insist("ping", mine.endpoint_id)
    model.drain()


@_history
def resting_and_tried_by_its_owner(model: Model) -> None:
    endpoint = model.add()
    model.receiver.answer = SLOW
    for number in range(FAILURES_TO_REST):
        model.tell(number)
    model.drain()
    model.receiver.answer = OK
    model.insist("ping", endpoint.endpoint_id)
    model.drain()


@_history
def disabled_and_enabled(model: Model) -> None:
    endpoint = model.add()
    model.tell(1)
    model.tell(2)
    _hear(model)
    for message in model.queue.visible()[:1]:
        model.deliver(message, stops_at=POST)
    model.insist("disable", endpoint.endpoint_id)
    model.go_on()
    model.tell(3)
    model.drain()
    model.let_run(1)
    model.insist("enable", endpoint.endpoint_id)
    model.let_run(2)


@_history
def gone(model: Model) -> None:
    model.add()
    model.receiver.answer = GONE
    model.tell(1)
    model.tell(2)
    model.drain()


@_history
def recovered(model: Model) -> None:
    """Three deliveries that have failed, of which the first look opens one and the second the others."""
    endpoint = model.add()
    for number in range(3):
        model.tell(number)
    _hear(model)
    model.queue.messages.clear()
    model.plant(status=DeliveryStatus.FAILED, attempt=MAX_ATTEMPTS, due_at=None, ended_at=model.now)
    model.insist("recover", endpoint.endpoint_id)
    with patch.object(sweep_due_endpoints, "RECOVERED_FIRST", 1):
        model.let_run(4)


@_history
def sent_again_although_it_was_delivered(model: Model) -> None:
    endpoint = model.add()
    model.tell(1)
    model.drain()
    model.let_run(1)
    model.insist("resend", endpoint.endpoint_id)
    model.drain()


@_history
def sent_again_while_it_waits_and_its_endpoint_rests(model: Model) -> None:
    endpoint = model.add()
    model.receiver.answer = DOWN
    for number in range(FAILURES_TO_REST + 1):
        model.tell(number)
    model.drain()
    model.let_run(1)
    model.receiver.answer = OK
    model.insist("resend", endpoint.endpoint_id)
    model.drain()


@_history
def its_last_attempt_fails(model: Model) -> None:
    model.add()
    model.tell(1)
    _hear(model)
    model.plant(attempt=MAX_ATTEMPTS - 1, attempts=())
    model.receiver.answer = DOWN
    model.drain()


@_history
def its_last_worker_died(model: Model) -> None:
    model.add()
    model.tell(1)
    _hear(model)
    lease_until = model.now + LEASE_SECONDS * 1000
    model.plant(status=DeliveryStatus.SENDING, attempt=MAX_ATTEMPTS, lease_until=lease_until, due_at=lease_until)
    model.let_run(3)


@_history
def removed(model: Model) -> None:
    """Another endpoint then has its place."""
    endpoint = model.add()
    model.tell(1)
    model.tell(2)
    _hear(model)
    for message in model.queue.visible()[:1]:
        model.deliver(message, stops_at=POST)
    model.insist("remove", endpoint.endpoint_id)
    model.add()
    model.go_on()
    model.tell(3)
    model.drain()


@_history
def of_an_image_that_is_deleted(model: Model) -> None:
    """One delivery was made to an endpoint that is gone, one is on its way, and one event is heard after the last look
    at what is left of its image."""
    gone = model.add()
    model.tell(1)
    model.drain()
    model.insist("remove", gone.endpoint_id)
    model.add()
    model.tell(2)
    _hear(model)
    for message in model.queue.visible()[:1]:
        model.deliver(message, stops_at=POST)
    model.tell(3)
    model.events.hide(model.events.messages[-1], 3600)
    for number in (1, 2, 3):
        model.delete(number)
    model.sweep()
    model.go_on()
    model.drain()


@_history
def its_secret_rotated(model: Model) -> None:
    endpoint = model.add()
    model.tell(1)
    _hear(model)
    for message in model.queue.visible():
        model.deliver(message, stops_at=TAKE_OFF)
    model.insist("rotate", endpoint.endpoint_id)
    model.go_on()
    model.drain()


@_history
def its_tenant_suspended(model: Model) -> None:
    model.add()
    model.tenants.suspended.add(TENANT)
    model.tell(1)
    model.drain()
    model.let_run(1)


@_history
def its_sibling_unreadable(model: Model) -> None:
    """Every event reaches the endpoint whose row can be read; the other's waits for a newer version."""
    model.add(1)
    model.add()
    model.write_as_newer(0, an_endpoint=True)
    model.tell(1)
    model.drain()
    model.let_run(1)


@_history
def resting_with_an_unreadable_probe(model: Model) -> None:
    """The receiver is healthy again, and the delivery that was to find out cannot be read; nor can those before it."""
    model.add()
    model.receiver.answer = DOWN
    for number in range(FAILURES_TO_REST + MAX_FLIGHTS):
        model.tell(number)
    model.drain()
    model.write_as_newer(0, an_endpoint=False, is_probe=True)
    for number in range(MAX_FLIGHTS):
        model.write_as_newer(number, an_endpoint=False)
    model.receiver.answer = OK
    model.let_run(8)


@_history
def of_several_types(model: Model) -> None:
    model.add(1)
    model.add(2)
    for number, kind in enumerate((EventType.ACCEPTED, EventType.FAILED)):
        model.tell(number, kind)
    for message in [model.events.visible()]:
        model.hear(*message)
    model.drain()


@_history
def from_runways(model: Model) -> None:
    """One message comes twice at a time, and one delivery is lost on its runway."""
    model.add(is_wide=True)
    for number in range(3):
        model.tell(number)
    _hear(model)
    messages = list(model.queue.messages)
    model.queue.send(messages[0].message)
    for message, call in zip([*messages, model.queue.messages[-1]], (POST, CLAIM, CLAIM, POST), strict=False):
        model.deliver(message, stops_at=call)
    for process in model.stopped[1:2]:
        model.kill(process)
    model.go_on()
    model.drain()


@_history
def from_a_runway_that_is_full(model: Model) -> None:
    model.add(is_wide=True)
    for number in range(2):
        model.tell(number)
    _hear(model)
    with patch.object(endpoints, "RUNWAY_PLACES", 0):
        for message in model.queue.visible():
            model.deliver(message, stops_at=POST)
        model.go_on()
        model.drain()


@_history
def from_runways_until_it_is_slow(model: Model) -> None:
    """While one is on its runway, others make the endpoint narrow, and the message of that one comes again."""
    model.add(is_wide=True)
    model.receiver.answer = LATE
    for number in range(3):
        model.tell(number)
    _hear(model)
    messages = model.queue.visible()
    for message in messages[:1]:
        model.deliver(message, stops_at=POST)
        model.queue.send(message.message)
    for message in messages[1:]:
        model.deliver(message)
    model.drain()
    model.go_on()
    model.drain()


@_history
def from_runways_until_it_fails(model: Model) -> None:
    """An image is deleted while an event of it is on its runway."""
    model.add(is_wide=True)
    for number in range(2):
        model.tell(number)
    _hear(model)
    messages = model.queue.visible()
    for message in messages[:1]:
        model.deliver(message, stops_at=Call(store="deliveries", number=2))
    model.delete(0)
    model.sweep()
    model.go_on()
    model.receiver.answer = DOWN
    for message in messages[1:]:
        model.deliver(message)
    model.receiver.answer = OK
    model.drain()
    model.let_run(2)


# ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A promise that a struck history broke: which, how, and what happened until then."""

    history: str
    strikes: Mapping[int, Mode]
    harm: ViolationName | None
    problem: str
    story: str

    @property
    def replay(self) -> str:
        """What `--replay` takes."""
        return f"{self.history}: " + "; ".join(f"{mode} at {number}" for number, mode in self.strikes.items())

    def __str__(self) -> str:
        return f"{self.story}\n{self.replay}\n{self.problem}"


@dataclass(kw_only=True)
class Findings:
    """What was struck: `points` are the calls of the undisturbed history; `offered` are the faults that make a history
    of their own there or, in pairs, after the first; `struck` counts those that have hit a call. `repeated` is how
    many more requests than without a fault a receiver got that had taken them, in the worst; `resent` are those that
    its owner has asked for."""

    points: list[str] = field(default_factory=list)
    offered: int = 0
    struck: int = 0
    repeated: int = 0
    resent: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)


def play(name: str, strikes: Mapping[int, Mode]) -> tuple[Model, Violation | None]:
    """Plays the history with these strikes, until everything has come to rest."""
    model = Model()
    model.surroundings.plan = lambda call: strikes.get(call.number)
    try:
        HISTORIES[name](model)
        model.check()
        model.settle()
    except Exception as error:
        harm = error.harm if isinstance(error, Broken) else None
        problem = f"{type(error).__name__}: {error}"
        return model, Violation(
            history=name, strikes=dict(strikes), harm=harm, problem=problem, story="\n".join(model.story)
        )
    finally:
        model.close()
    return model, None


def strike(name: str, *, faults: int, every: int = 1, first: int = 0) -> Findings:
    """Strikes every call of the history in every way that makes a difference; with two faults, every call after that,
    too, where the first is at one of their `sample`."""
    findings = Findings()
    undisturbed, violation = play(name, {})
    findings.points = list(undisturbed.surroundings.calls)
    findings.violations += [] if violation is None else [violation]
    findings.resent = undisturbed.counts["sent again"]  # as its owner has asked
    calls = len(findings.points)
    for point, mode in _faults(undisturbed, range(calls) if faults == 1 else sample(calls, every, first)):
        if faults == 1:
            _strike(findings, name, {point: mode})
            continue
        struck, _ = play(name, {point: mode})
        for second, other in _faults(struck, range(point + 1, len(struck.surroundings.calls))):
            _strike(findings, name, {point: mode, second: other})
    return findings


def _faults(played: Model, points: range) -> Iterator[tuple[int, Mode]]:
    return ((point, mode) for point in points for mode in played.surroundings.modes[point])


def sample(calls: int, every: int, first: int) -> range:
    """Each `every`th of so many calls, from `first` on; of fewer calls from one that another call comes after."""
    return range(first % max(1, min(every, calls - 1)), calls, every)


def _strike(findings: Findings, name: str, strikes: dict[int, Mode]) -> None:
    model, violation = play(name, strikes)
    findings.offered += 1
    findings.struck += max(strikes) < len(model.surroundings.calls)
    findings.repeated = max(findings.repeated, model.counts["sent again"] - findings.resent)
    findings.counts.update(model.counts)
    findings.violations += [] if violation is None else [violation]
