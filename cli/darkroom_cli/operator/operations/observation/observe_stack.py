"""Observes a stack as it is now: what waits, who works on what, what fails, what is late and which alarms are on.

Every part is read by itself and with a bound, so that a part that cannot be read hides no other, and a stack in trouble
costs no more to look at than a quiet one. Nothing is changed.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from darkroom.domain.images.image import DUE_PARTITIONS, DutyKind, Image, waiting_shards_of
from darkroom.domain.images.load_shedding import drain_per_second
from darkroom.domain.images.service_level import FAST_MINUTES, SLOW_MINUTES, burn, failing_percent, needed_since
from darkroom.domain.kernel.fingerprint import StackFrame, guilty_frame
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.sweeping.due import ENDPOINTS
from darkroom.domain.tenants.shares import WINDOW_MINUTES, TenantShare, ranking
from darkroom.domain.webhooks.endpoint import DUE_SHARD_NAMES as ENDPOINT_PARTITIONS
from darkroom.domain.webhooks.endpoint import Endpoint, as_seen, at_one_host
from darkroom.operations.dead_letters.cases import Case, CasePorts, grouped, look_up
from darkroom.parts import PARTS
from darkroom.ports.dead_letters import DeadLetters
from darkroom.ports.images import Images, OutcomeCounts, Throughput, Waiting
from darkroom.ports.kernel import AtOnce, Clock
from darkroom.ports.webhooks import Deliveries, Endpoints
from darkroom_cli.operator.domain.budgets import Budget
from darkroom_cli.operator.domain.observation import (
    Alarm,
    Condition,
    Counted,
    LaneWaits,
    Measured,
    Overdue,
    QueueCount,
    Recent,
    Upcoming,
    Working,
    condition_of,
    incident_first,
    lane_waits,
    longest_waiting,
    overdue,
    upcoming,
    working,
)
from darkroom_cli.operator.operations.dead_letters.list_given_up import ListGivenUpPorts, list_given_up
from darkroom_cli.operator.operations.images.list_retrying import Defect, defects_of
from darkroom_cli.operator.ports import Alarms, Measurements, PauseRegistry, QueueCounts

ROWS_PER_LANE = 100
"""How many rows of a lane are read, those that have waited longest: as many as BatchGetItem takes."""

ENTRIES_PER_SHARD = 100
"""How many entries of each shard of the waiting index are read: what waits is counted exactly up to about 1,600."""

ENDPOINTS_READ, ENDPOINTS_SHOWN = 1000, 10
"""How many endpoints are read, and of how many that do not fare well the waiting deliveries are counted."""

DELIVERIES_COUNTED = 100

YEAR = 366 * 24 * 3_600_000
"""A scheduled image waits at most 364 days."""

SKEW = 10_000  # guard: top-scheduled-clock-skew
"""How far a function's clock may be ahead of the operator's: an image that was accepted just now is not scheduled."""

MEASURED_SECONDS, SLOW_SECONDS, SAMPLE_SECONDS, BUDGET_SECONDS = 30, 15, 60, 300
"""How long what was read earlier serves again: measurements, of which there is one per minute; scheduled images,
webhooks and outcomes; the causes of dead letters whose numbers have not changed; and error budgets of weeks."""

LOOK_LATE_SECONDS = 120
"""A look that is later than this was not done by the sweep after its time, nor by the next."""

ERRORS_SECONDS = 60
"""The same of functions' errors: CloudWatch takes money for each function."""


@dataclass(frozen=True, kw_only=True)
class Panel[Value]:
    """One part of what was observed: the `value` as it was at `read_at`, and why it could not be read anew; both are
    None if it could never be read."""

    value: Value | None = None
    read_at: Milliseconds | None = None
    problem: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The images whose time has come: how they wait in each lane, and, of the `looked_at` that have waited longest,
    those in work, those that are tried again by what went wrong, and the scheduled ones that were not begun. `is_all`
    says whether there are no more; `unreadable` rows are among them."""

    lanes: Mapping[str, LaneWaits]
    working: tuple[Working, ...]
    defects: tuple[Defect, ...]
    overdue: Overdue
    looked_at: int
    unreadable: int
    is_all: bool


@dataclass(frozen=True, kw_only=True)
class DeadLetterCause:
    """What some dead letters have in common: their queue, the cause as operators name it, the fingerprint of the defect
    (None if no exception was raised), its guilty frame and message, and one image."""

    queue: str
    cause: str
    fingerprint: str | None
    frame: StackFrame | None
    message: str | None
    image_id: str | None
    dead_letters: int


@dataclass(frozen=True, kw_only=True)
class DeadLetterCounts:
    """The dead letters: about how many each queue has, and the causes of the `sampled` ones, the most frequent
    first. So many are `coming`: of images that were given up since the last sweep."""

    depths: Mapping[str, int]
    causes: tuple[DeadLetterCause, ...]
    sampled: int
    sampled_at: Milliseconds
    coming: Counted

    @property
    def number(self) -> int:
        """About how many there are."""
        return sum(self.depths.values())


@dataclass(frozen=True, kw_only=True)
class Unhealthy:
    """An endpoint that does not fare well, and how many deliveries wait for it."""

    endpoint: Endpoint
    condition: Condition
    deliveries: Counted


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """The endpoints by how they fare, of the first `endpoints` that were read; and those that fare worst."""

    endpoints: Counted
    conditions: Mapping[Condition, int]
    unhealthy: tuple[Unhealthy, ...]


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was observed of a stack with these optional `parts`, panel by panel; a panel may be older than the others,
    and says when it was read. `sweeper` is, by kind, how many seconds late its oldest look is that a sweep should have
    done; empty if none is. `tenants` has what each took of a lane, the most first."""

    observed_at: Milliseconds
    service: Mapping[str, Lane]
    parts: Collection[str]
    queues: Panel[Mapping[str, QueueCount]]
    unfinished: Panel[Unfinished]
    drains: Panel[Mapping[str, float]]
    outcomes: Panel[Mapping[str, Recent]]
    budgets: Panel[Mapping[str, Budget]]
    measured: Panel[Measured]
    function_errors: Panel[Mapping[str, int]]
    dead_letters: Panel[DeadLetterCounts]
    alarms: Panel[tuple[Alarm, ...]]
    scheduled: Panel[Upcoming]
    sweeper: Panel[Mapping[str, float]]
    webhooks: Panel[Webhooks]
    pauses: Panel[tuple[Pause, ...]]
    tenants: Panel[Mapping[str, tuple[TenantShare, ...]]]

    @property
    def problems(self) -> Mapping[str, Exception]:
        """Why parts could not be read, by their names."""
        named = {name: getattr(self, name).problem for name in PANELS}
        return {name: problem for name, problem in named.items() if problem is not None}


PANELS = (
    *("alarms", "queues", "unfinished", "drains", "outcomes", "budgets", "measured"),
    *("dead_letters", "function_errors", "scheduled", "sweeper", "webhooks", "pauses", "tenants"),
)
"""The names of an observation's parts."""


@dataclass(frozen=True, kw_only=True)
class ObserveStackPorts:
    """What observing needs: the queues of work, those of what was `given_up`, of these the `dead_letters` that a row of
    an image explains, and each lane's deployed configuration."""

    images: Images
    queues: QueueCounts
    given_up: QueueCounts
    dead_letters: DeadLetters
    throughput: Throughput
    outcome_counts: OutcomeCounts
    measurements: Measurements
    alarms: Alarms
    endpoints: Endpoints
    deliveries: Deliveries
    pauses: PauseRegistry
    at_once: AtOnce
    clock: Clock
    service: Mapping[str, Lane]
    parts: Collection[str] = PARTS


def observe_stack(ports: ObserveStackPorts, before: Observation | None = None) -> Observation:
    """Reads everything that changes by the second, and of the rest what `before` does not have or has for too long. It
    never raises: what cannot be read is a problem of that part alone, which keeps what it had before."""
    now = ports.clock()

    def part(name: str, read: Callable[[], Any], fresh_seconds: int = 0) -> Panel[Any]:
        earlier: Panel[Any] = Panel() if before is None else getattr(before, name)
        if earlier.read_at is not None and 0 <= now - earlier.read_at < fresh_seconds * 1000:
            return earlier
        try:
            return Panel(value=read(), read_at=now)
        except Exception as error:  # guard: top-part-failure-isolated
            return Panel(value=earlier.value, read_at=earlier.read_at, problem=error)

    dead_letters_before = None if before is None else before.dead_letters.value
    parts: Sequence[tuple[str, Callable[[], Any], int]] = (
        ("alarms", lambda: incident_first(ports.alarms.on()), 0),
        ("queues", lambda: _counts(ports, ports.queues), 0),
        ("unfinished", lambda: _unfinished(ports, now), 0),
        ("drains", lambda: _drains(ports, now), SLOW_SECONDS),
        ("outcomes", lambda: _outcomes(ports, now), SLOW_SECONDS),
        ("budgets", lambda: ports.measurements.budgets(now), BUDGET_SECONDS),
        ("measured", lambda: ports.measurements.latest(now), MEASURED_SECONDS),
        ("function_errors", lambda: ports.measurements.function_errors(now), ERRORS_SECONDS),
        ("dead_letters", lambda: _dead_letters(ports, dead_letters_before, now), 0),
        ("scheduled", lambda: _scheduled(ports, now), SLOW_SECONDS),
        ("sweeper", lambda: _late_looks(ports, now), SLOW_SECONDS),
        ("webhooks", lambda: _webhooks(ports) if "webhooks" in ports.parts else None, SLOW_SECONDS),
        ("pauses", lambda: _pauses(ports) if "bulk" in ports.parts else (), SLOW_SECONDS),
        ("tenants", lambda: _tenants(ports, now), SLOW_SECONDS),
    )
    panels = ports.at_once([partial(part, *each) for each in parts])
    named = dict(zip((name for name, *_ in parts), panels, strict=True))
    return Observation(observed_at=now, service=ports.service, parts=ports.parts, **named)


def _counts(ports: ObserveStackPorts, queues: QueueCounts) -> Mapping[str, QueueCount]:
    counted = ports.at_once([partial(queues.count, queue) for queue in queues.queues])
    return dict(zip(queues.queues, counted, strict=True))


def _drains(ports: ObserveStackPorts, now: Milliseconds) -> Mapping[str, float]:
    minutes = ports.at_once([partial(ports.throughput.latest, lane, now) for lane in ports.service])
    return {
        name: drain_per_second(lane, of_lane)
        for (name, lane), of_lane in zip(ports.service.items(), minutes, strict=True)
    }


def _tenants(ports: ObserveStackPorts, now: Milliseconds) -> Mapping[str, tuple[TenantShare, ...]]:
    since = now - WINDOW_MINUTES * 60_000
    busy = ports.at_once([partial(ports.throughput.of_tenants, lane, since) for lane in ports.service])
    return {
        name: ranking(of_lane, lane.concurrency)
        for (name, lane), of_lane in zip(ports.service.items(), busy, strict=True)
    }


def _outcomes(ports: ObserveStackPorts, now: Milliseconds) -> Mapping[str, Recent]:
    minutes = ports.at_once([partial(ports.outcome_counts.since, lane, needed_since(now)) for lane in ports.service])
    return {
        lane: Recent(
            fast_burn=burn(of_lane, FAST_MINUTES, now),
            slow_burn=burn(of_lane, SLOW_MINUTES, now),
            failing_percent=failing_percent(of_lane, now),
        )
        for lane, of_lane in zip(ports.service, minutes, strict=True)
    }


def _shards(
    ports: ObserveStackPorts, *, since: Milliseconds, until: Milliseconds
) -> Mapping[str, Sequence[Sequence[Waiting]]]:
    """The first entries of each shard of each lane's waiting index in that time."""

    def first(lane: str, shard: str) -> Sequence[Waiting]:
        entries = ports.images.waiting(lane, shard, since=since, until=until, page_size=ENTRIES_PER_SHARD)
        return list(islice(entries, ENTRIES_PER_SHARD))  # guard: top-shard-entries-bound

    places = [(lane, shard) for lane in ports.service for shard in waiting_shards_of(lane)]
    read = ports.at_once([partial(first, *place) for place in places])
    entries_by_lane: dict[str, list[Sequence[Waiting]]] = {lane: [] for lane in ports.service}
    for (lane, _), entries in zip(places, read, strict=True):
        entries_by_lane[lane].append(entries)
    return entries_by_lane


def _unfinished(ports: ObserveStackPorts, now: Milliseconds) -> Unfinished:
    shards = _shards(ports, since=0, until=now + SKEW)
    # guard: top-lane-rows-bound
    chosen = {lane: longest_waiting(of_lane, ROWS_PER_LANE) for lane, of_lane in shards.items()}
    wanted = [[image_id for _, image_id in entries] for entries in chosen.values()]
    read = ports.at_once([partial(ports.images.get_all, ids) for ids in wanted if ids])
    known = {image_id: row for rows in read for image_id, row in rows.items()}
    rows = {
        lane: [row for _, image_id in entries if isinstance(row := known.get(image_id), Image)]
        for lane, entries in chosen.items()
    }
    each = list(heapq.merge(*rows.values(), key=lambda row: (row.waiting_since or 0, row.image_id)))
    waits = {
        name: lane_waits(lane, shards[name], rows[name], shard_limit=ENTRIES_PER_SHARD, now=now)
        for name, lane in ports.service.items()
    }
    return Unfinished(
        lanes=waits,
        working=working(each, now=now),
        defects=defects_of(each),
        overdue=overdue(each, now=now),
        looked_at=sum(map(len, wanted)),
        unreadable=sum(not isinstance(row, Image) for row in known.values()),
        is_all=all(wait.images.is_all and wait.images.number <= ROWS_PER_LANE for wait in waits.values()),
    )


def _scheduled(ports: ObserveStackPorts, now: Milliseconds) -> Upcoming:
    shards = _shards(ports, since=now + SKEW, until=now + YEAR)
    each = [shard for of_lane in shards.values() for shard in of_lane]
    return upcoming(each, shard_limit=ENTRIES_PER_SHARD, now=now)


def _late_looks(ports: ObserveStackPorts, now: Milliseconds) -> Mapping[str, float]:
    """By kind, how late its oldest look is; one that the next sweep does in time is not late."""
    until = now - LOOK_LATE_SECONDS * 1000

    def oldest(due: Callable[[str, Milliseconds, int], Iterable[Any]], partition: str) -> Sequence[Milliseconds]:
        return [entry.due_at for entry in due(partition, until, 1)]

    places: list[tuple[str, Callable[..., Iterable[Any]], str]] = [
        (kind.value, ports.images.due, name) for kind in DutyKind for name in DUE_PARTITIONS[kind]
    ]
    if "webhooks" in ports.parts:  # guard: top-absent-webhooks-not-late
        places += [(ENDPOINTS, ports.endpoints.due, name) for name in ENDPOINT_PARTITIONS]
    read = ports.at_once([partial(oldest, due, name) for _, due, name in places])
    late: dict[str, float] = {}
    for (kind, *_), due in zip(places, read, strict=True):
        for due_at in due:
            late[kind] = max(late.get(kind, 0.0), (now - due_at) / 1000)
    return late


def _dead_letters(ports: ObserveStackPorts, before: DeadLetterCounts | None, now: Milliseconds) -> DeadLetterCounts:
    depths = {queue: count.total for queue, count in _counts(ports, ports.given_up).items()}
    looked = ListGivenUpPorts(images=ports.images, at_once=ports.at_once, clock=ports.clock)
    given_up = list_given_up(looked, ahead_seconds=0, limit=ROWS_PER_LANE)
    coming = Counted(number=len(given_up.coming), is_all=given_up.is_all)
    if before is not None and before.depths == depths and now - before.sampled_at < SAMPLE_SECONDS * 1000:
        return replace(before, coming=coming)
    full = [queue for queue in ports.dead_letters.queues if depths.get(queue)]
    sampled = ports.at_once([partial(_sample, ports, queue) for queue in full])
    causes = [cause for of_queue in sampled for cause in of_queue]
    return DeadLetterCounts(
        depths=depths,
        causes=tuple(sorted(causes, key=lambda cause: -cause.dead_letters)),
        sampled=sum(cause.dead_letters for cause in causes),
        sampled_at=now,
        coming=coming,
    )


def _sample(ports: ObserveStackPorts, queue: str) -> Sequence[DeadLetterCause]:
    """The causes of some of a queue's dead letters. They stay where they are, and visible."""
    needed = CasePorts(dead_letters=ports.dead_letters, images=ports.images, clock=ports.clock)
    groups = grouped(ports.dead_letters.sample(queue))
    cases = ports.at_once([partial(look_up, needed, group) for group in groups])
    numbers: Counter[tuple[str, str | None]] = Counter()
    firsts: dict[tuple[str, str | None], Case] = {}
    for case in cases:
        key = (case.cause or case.verdict.value, case.fingerprint)
        numbers[key] += len(case.dead_letters)
        firsts.setdefault(key, case)
    return [_cause_of(firsts[key], *key, dead_letters=number) for key, number in numbers.items()]


def _cause_of(case: Case, cause: str, fingerprint: str | None, *, dead_letters: int) -> DeadLetterCause:
    error = case.last_error
    return DeadLetterCause(
        queue=case.queue,
        cause=cause,
        fingerprint=fingerprint,
        frame=None if error is None else guilty_frame(str(error.get("stack") or "")),
        message=case.problem if error is None else str(error.get("message") or ""),
        image_id=None if case.message is None else case.message.image_id,
        dead_letters=dead_letters,
    )


def _webhooks(ports: ObserveStackPorts) -> Webhooks:
    read = list(islice(ports.endpoints.everything(), ENDPOINTS_READ + 1))
    of_tenant = defaultdict[str, list[Endpoint]](list)
    for row in read[:ENDPOINTS_READ]:
        if isinstance(row, Endpoint):
            of_tenant[row.tenant_id].append(row)
    rows = [as_seen(at_one_host(row, of_all)) for of_all in of_tenant.values() for row in of_all]
    conditions = Counter(map(condition_of, rows))
    severity = list(Condition).index
    unhealthy = sorted(
        (row for row in rows if condition_of(row) is not Condition.HEALTHY),
        key=lambda row: (-severity(condition_of(row)), row.endpoint_id),
    )[:ENDPOINTS_SHOWN]
    waiting = ports.at_once([partial(_deliveries, ports, row) for row in unhealthy])
    return Webhooks(
        endpoints=Counted(number=min(len(read), ENDPOINTS_READ), is_all=len(read) <= ENDPOINTS_READ),
        conditions={condition: conditions[condition] for condition in Condition},
        unhealthy=tuple(
            Unhealthy(endpoint=row, condition=condition_of(row), deliveries=counted)
            for row, counted in zip(unhealthy, waiting, strict=True)
        ),
    )


def _pauses(ports: ObserveStackPorts) -> tuple[Pause, ...]:
    """Those in force, the oldest first; the sweeper reports one that cannot be read."""
    active = [pause for pause in ports.pauses.all() if isinstance(pause, Pause) and pause.is_active]
    return tuple(sorted(active, key=lambda pause: pause.since))


def _deliveries(ports: ObserveStackPorts, endpoint: Endpoint) -> Counted:
    due = ports.deliveries.due(endpoint.endpoint_id, DELIVERIES_COUNTED)
    return Counted(number=len(due), is_all=len(due) < DELIVERIES_COUNTED)
