"""Looks at every endpoint that is due: deliveries whose time has come, or whose messages were lost, are sent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import Delivery, DeliveryMessage, DeliveryStatus, reopen
from darkroom.domain.webhooks.endpoint import (
    DUE_SHARD_NAMES,
    LOOK_SECONDS,
    QUIET_SECONDS,
    RECOVERED_FIRST,
    RECOVERED_MOST,
    SECOND,
    SUSPENDED_SECONDS,
    Endpoint,
    as_seen,
    has_runways,
    hold,
    is_held,
    next_look,
    reserve_slot,
    ripe_before,
)
from darkroom.domain.webhooks.first_attempts import waits_for_worker
from darkroom.for_each import for_each
from darkroom.operations.webhooks.change_endpoint import TRIES
from darkroom.operations.webhooks.read_delivery import read_delivery
from darkroom.operations.webhooks.read_host import read_host
from darkroom.ports.kernel import AtOnce, Clock, Fenced, UnreadableRow
from darkroom.ports.tenants import IsSuspended
from darkroom.ports.webhooks import Deliveries, DeliveryQueue, DueEndpoint, Endpoints

PARTITION_LIMIT = 5000
"""How many of the oldest endpoints of a partition one sweep lists: one page of an answer."""

THREADS = 4
"""How many endpoints are looked at at the same time."""

LISTED = 8
"""How many deliveries of an endpoint one look lists. It sends as many as may be on their way at a time; each of these
calls the next."""

LISTED_AT_REST = 40
"""How many a look lists at an endpoint that rests (as many as half a read unit lists): the first may be unreadable, and
nothing calls the next."""

POSTPONED_SECONDS = 600
"""How long an endpoint is postponed that cannot be looked at because its row is unreadable or hits a bug."""


@dataclass(kw_only=True)
class EndpointsSweep:
    """What one sweep of endpoints did, by outcome: `sent`, `quiet`, `resting`, `suspended`, `paused`, `unsent` or the
    reason why there was nothing to do; `opened` are the failed deliveries that were opened again. `errors` holds
    unexpected errors by endpoint, `unlisted`, by shard, why the due index could not be listed. `complete` is False if
    time ran out; `late_seconds` is how late the oldest look is that could not be done, `paused_seconds` how long the
    oldest pause of an endpoint that was looked at lasts: each is in every hour. At `untaken` endpoints a delivery waits
    for a worker."""

    outcomes: Counter[str] = field(default_factory=Counter)
    opened: list[str] = field(default_factory=list)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    unlisted: dict[str, Exception] = field(default_factory=dict)
    late_seconds: float = 0.0
    paused_seconds: float = 0.0
    untaken: int = 0
    complete: bool = True

    @property
    def recovered(self) -> int:
        """How many deliveries were opened again."""
        return len(self.opened)


@dataclass(frozen=True, kw_only=True)
class SweepDueEndpointsPorts:
    """What a sweep of endpoints needs."""

    endpoints: Endpoints
    deliveries: Deliveries
    delivery_queue: DeliveryQueue
    is_suspended: IsSuspended
    clock: Clock
    at_once: AtOnce


def sweep_due_endpoints(ports: SweepDueEndpointsPorts, *, out_of_time: Callable[[], bool]) -> EndpointsSweep:
    """Looks at what is due until done or `out_of_time`, the oldest of each tenant first, in turns. An endpoint that
    cannot be served now stays due; one that is unreadable or hits a bug is looked at again later and does not stop the
    others."""
    sweep = EndpointsSweep()
    of_tenants = defaultdict[str, list[DueEndpoint]](list)
    for due in sorted(chain(*ports.at_once([partial(_list, ports, sweep, shard) for shard in DUE_SHARD_NAMES]))):
        of_tenants[due.tenant_id].append(due)
    listed = [due for turn in zip_longest(*of_tenants.values()) for due in turn if due is not None]
    outcomes: dict[DueEndpoint, str] = {}

    def look(due: DueEndpoint) -> None:
        if not out_of_time():
            outcomes[due] = _look_safely(ports, sweep, due)

    for_each(ports.at_once, look, listed, threads=THREADS)
    sweep.outcomes.update(outcomes.values())
    sweep.complete = len(outcomes) == len(listed)
    undone = [due.due_at for due in listed if outcomes.get(due, "unreachable") in ("unreachable", "unsent")]
    sweep.late_seconds = (ports.clock() - min(undone)) / 1000 if undone else 0.0
    return sweep


def _list(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, shard: str) -> Sequence[DueEndpoint]:
    try:
        return list(ports.endpoints.due(shard, ports.clock(), PARTITION_LIMIT))
    except Exception as error:
        sweep.unlisted[shard] = error
        return ()


def _look_safely(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, due: DueEndpoint) -> str:
    try:
        outcome = _look_at(ports, sweep, due)
    except UnreadableRow as error:
        outcome = "unreadable"
        sweep.unreadable.append(error)
    except Retryable:
        outcome = "unreachable"
    # guard: webhook-sweep-bug-isolated
    except Exception as error:  # an endpoint that trips a bug must not keep the sweeper from all the others
        outcome = "error"
        sweep.errors[due.endpoint_id] = error
    if outcome in ("unreadable", "error"):
        with bookkeeping("look not postponed", webhook_id=due.endpoint_id):  # the next sweep meets it again
            # guard: webhook-sweep-bug-postponed
            ports.endpoints.postpone(due, ports.clock() + POSTPONED_SECONDS * SECOND)
    return outcome


def _look_at(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, due: DueEndpoint) -> str:
    # The index is eventually consistent, so a sweep acts only on the row that it has read, and only if the row is
    # unchanged when it is written: of two concurrent sweeps one continues. A busy endpoint changes all the time.
    for _ in range(TRIES):
        host = read_host(ports.endpoints, due.tenant_id, due.endpoint_id)
        now = ports.clock()
        if not host or host[0].due_at is None or host[0].due_at > now:
            return "not_due"
        try:
            return _decide(ports, sweep, host, now)
        except Fenced:  # guard: webhook-look-decided-again
            continue
    return "fenced"


def _decide(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, host: Sequence[Endpoint], now: Milliseconds) -> str:
    endpoint = host[0]
    if ports.is_suspended(endpoint.tenant_id):  # guard: webhook-sweep-suspended-unsent
        # guard: webhook-sweep-suspended-later
        ports.endpoints.change(endpoint, replace(endpoint, due_at=now + SUSPENDED_SECONDS * SECOND))
        return "suspended"
    if endpoint.paused_at is not None:  # guard: webhook-sweep-paused-unsent
        ports.endpoints.change(endpoint, replace(endpoint, due_at=now + QUIET_SECONDS * SECOND))
        sweep.paused_seconds = max(sweep.paused_seconds, (now - endpoint.paused_at) / SECOND)
        return "paused"
    if endpoint.recovery is not None:
        endpoint = _recover(ports, sweep, endpoint, now)
    if is_held((endpoint, *host[1:])):  # guard: webhook-sweep-skips-held-endpoint
        until = as_seen((endpoint, *host[1:])).rests_until or now
        waits = any(delivery.due_at <= now for delivery in ports.deliveries.due(endpoint.endpoint_id, 1))
        ports.endpoints.change(endpoint, hold(endpoint, until, has_waiting=waits, now=now))
        return "resting"
    if endpoint.rests_until is not None:  # guard: webhook-sweep-respects-rest
        return _let_one_try(ports, sweep, endpoint, now)
    listed = ports.deliveries.due(endpoint.endpoint_id, LISTED)
    before = ripe_before((endpoint, *host[1:]), now=now)
    ready = [delivery.delivery_id for delivery in listed if delivery.due_at <= before]
    looked_at = replace(
        endpoint,
        due_at=next_look(endpoint, [delivery.due_at for delivery in listed], now=now),
        crowded_at=now if len(ready) > endpoint.limit else endpoint.crowded_at,
    )
    sweep.untaken += waits_for_worker(endpoint, [delivery.due_at for delivery in listed], now=now)
    if has_runways((endpoint, *host[1:])):  # guard: webhook-runway-look-calls
        for delivery_id in ready[: endpoint.limit]:  # so each calls the next: one on a runway would not
            looked_at = reserve_slot(looked_at, delivery_id, now=now)
    if endpoint.recovery is not None:
        looked_at = replace(looked_at, due_at=now + LOOK_SECONDS * SECOND)
    # Written before anything is sent: what is not sent then is sent by the next look.
    ports.endpoints.change(endpoint, looked_at)  # guard: webhook-look-written-before-send
    if not ready:
        return "quiet"
    return _send(ports, endpoint, ready[: endpoint.limit])


def _let_one_try(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, endpoint: Endpoint, now: Milliseconds) -> str:
    """An endpoint rests: the delivery that is to try it is sent once its time has come, and one that is older and due;
    nothing else."""
    if endpoint.rests_until is not None and endpoint.rests_until > now:
        ports.endpoints.change(endpoint, replace(endpoint, due_at=endpoint.rests_until))
        return "resting"
    listed = ports.deliveries.due(endpoint.endpoint_id, LISTED_AT_REST)
    ready = sorted(delivery.delivery_id for delivery in listed if delivery.due_at <= now)
    probe = endpoint.probe
    if probe is None or not _still_waits(ports, sweep, endpoint, probe, now):  # another takes its place
        others = (delivery_id for delivery_id in ready if delivery_id != probe)
        waiting = (delivery_id for delivery_id in others if _still_waits(ports, sweep, endpoint, delivery_id, now))
        probe, ready = next(waiting, None), []
    if probe is None:
        due_at = next_look(endpoint, [delivery.due_at for delivery in listed], now=now)
        ports.endpoints.change(endpoint, replace(endpoint, probe=None, due_at=due_at))
        return "quiet"
    ports.endpoints.change(endpoint, replace(endpoint, probe=probe, due_at=now + LOOK_SECONDS * SECOND))
    # guard: webhook-sweep-sends-oldest
    return _send(ports, endpoint, [probe, *(delivery_id for delivery_id in ready[:1] if delivery_id < probe)])


def _still_waits(
    ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, endpoint: Endpoint, delivery_id: str, now: Milliseconds
) -> bool:
    delivery = read_delivery(ports.deliveries, endpoint.endpoint_id, delivery_id, now=now)
    if isinstance(delivery, UnreadableRow):
        sweep.unreadable.append(delivery)  # guard: unreadable-delivery-no-probe
        return False
    return delivery is not None and delivery.due_at is not None


def _recover(ports: SweepDueEndpointsPorts, sweep: EndpointsSweep, endpoint: Endpoint, now: Milliseconds) -> Endpoint:
    """Opens some of its failed deliveries again, and ends the waits of others, more each time; returns the endpoint's
    row as written."""
    recovery = endpoint.recovery
    if recovery is None:
        return endpoint
    page = ports.deliveries.page(
        endpoint.endpoint_id,
        limit=min(RECOVERED_FIRST * 2 ** min(recovery.pages, 10), RECOVERED_MOST),
        after=recovery.after,
        since=recovery.since,
        statuses=(DeliveryStatus.FAILED, DeliveryStatus.WAITING),
        newest_first=False,
    )
    for delivery in page.deliveries:
        if isinstance(delivery, UnreadableRow):
            sweep.unreadable.append(delivery)
            continue
        if _reopen(ports, delivery, now):
            sweep.opened.append(delivery.delivery_id)
    after = None if page.next is None else replace(recovery, after=page.next, pages=recovery.pages + 1)
    # The index does not show yet what was opened.
    # guard: webhook-recovery-looks-again
    return ports.endpoints.change(endpoint, replace(endpoint, recovery=after, woken_at=now))


def _reopen(ports: SweepDueEndpointsPorts, delivery: Delivery, now: Milliseconds) -> bool:
    """Whether this has opened it: if another write came first, it may have ended, be open, or be blanked."""
    for _ in range(TRIES):
        opened = reopen(delivery, now=now)
        # guard: webhook-recovery-skips-due
        if opened == delivery:  # it is due anyway
            return False
        try:
            ports.deliveries.change(delivery, opened)
            return True
        except Fenced as fenced:  # guard: webhook-recovery-survives-fence
            if fenced.current is None:
                return False
            delivery = fenced.current  # guard: webhook-recovery-retries-blanked
    return False


def _send(ports: SweepDueEndpointsPorts, endpoint: Endpoint, delivery_ids: list[str]) -> str:
    try:
        for delivery_id in delivery_ids:
            ports.delivery_queue.send(
                DeliveryMessage(tenant_id=endpoint.tenant_id, endpoint_id=endpoint.endpoint_id, delivery_id=delivery_id)
            )
    except Retryable:
        return "unsent"
    return "sent"
