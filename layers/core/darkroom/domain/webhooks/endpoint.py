"""Endpoints: the URLs to which a tenant has its events delivered, and what may be sent to each at a time.

An endpoint's row decides for all its deliveries: while it is disabled, rests, or is busy, none of them has to be
touched, however many wait. Every function here is pure: it takes a row and gives the next one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from darkroom.domain.events.event import ONLY_BY_NAME
from darkroom.domain.kernel.instants import Milliseconds

MAX_DESCRIPTION_CHARACTERS = 200

_HOST = re.compile(r"([^:/?#]+)://(\[[^\]]*\]|[^:/?#]*)(?::([0-9]+))?")

DUE_SHARDS = 4
"""Partitions of the endpoints' due index."""

SECOND, HOUR = 1000, 3_600_000

MAX_FLIGHTS = 4
"""The most deliveries that are on their way to one endpoint at a time, and to all endpoints of a tenant at one host."""

RUNWAYS, RUNWAY_PLACES = 4, 12
"""How many more may be on their way to an endpoint that is wide: so many on each of so many runways. A runway is an
item of its own, because one item could not take the writes of them all."""

QUICK_MILLISECONDS, QUICK_TO_WIDEN, MOST_QUICK = 1000, 20, 60
"""An endpoint is wide while it has so many points, once something had to wait for its turn, and wholly with twice as
many. Each delivery that was taken within so long is a point, up to the last number; a slower one takes half of that,
and one that fails takes all. So of many quick ones a single one may be slow, but not two in a minute."""

RIPE_SECONDS = 2
"""What is due at a wide endpoint for less may be on a runway: the index does not tell. It is called later."""

RAMP_SUCCESSES = 10
"""After a recovery, one delivery is on its way at a time, and one more after each so many successes."""

FLIGHT_SECONDS = 60
"""How long a delivery on its way counts if nothing is heard of it: longer than the function that sends it can last."""

FAILURES_TO_REST = 3
"""After so many deliveries in a row whose first attempts failed, an endpoint rests: the oldest that fails tries it, at
the times of its own retries, and each time one other. The retries of one delivery make no endpoint rest: perhaps its
receiver cannot take that event alone."""

MAX_RESTING_FLIGHTS = 2
"""The most deliveries that are on their way to an endpoint that rests: the one that tries it, and one other."""

WARN_SECONDS = 24 * 3600
"""After how long in which everything failed an endpoint's owner is warned."""

DISABLE_SECONDS = 5 * 24 * 3600
"""After how long in which everything failed an endpoint is disabled, as Svix does
(https://docs.svix.com/retries)."""

ROTATION_SECONDS = 24 * 3600
"""How long a replaced secret goes on signing."""

MAX_SECRETS = 5
"""How many secrets sign at a time: a signature for each is in one header."""

LOOK_SECONDS = 60
"""How often the sweeper looks at an endpoint with deliveries that are due."""

SUSPENDED_SECONDS = 600
"""How often it looks at one whose tenant is suspended."""

QUIET_SECONDS = 3600
"""How often it looks at one with nothing to deliver: the bound on how long a delivery can lie that nobody announced."""

LAG_SECONDS = 10
"""A look that comes sooner after a write may not see it: the index that lists deliveries is seconds behind."""

RECOVERED_FIRST, RECOVERED_MOST = 100, 1600
"""How many failed deliveries the first look after a recovery opens again; each further one opens twice as many, up to
the second number."""


class EndpointState(StrEnum):
    """Whether deliveries are sent. Those of a disabled endpoint are kept for 30 days."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class DisabledBy(StrEnum):
    """Why an endpoint is disabled."""

    CLIENT = "client"
    """Its owner did it."""

    GONE = "gone"
    """It answered 410 (Gone)."""

    FAILING = "failing"
    """For five days, everything failed."""


@dataclass(frozen=True, kw_only=True)
class SigningSecret:
    """One of an endpoint's secrets: it is derived from its `generation` and stored nowhere. A replaced one signs until
    `until`."""

    generation: int
    until: Milliseconds | None = None


@dataclass(frozen=True, kw_only=True)
class CustomHeader:
    """A header that its owner adds to what is sent: its `value`, or `sealed` for one that nobody is shown."""

    name: str
    value: str | None = None
    sealed: str | None = None


@dataclass(frozen=True, kw_only=True)
class InFlight:
    """A delivery on its way by the receipt `claimed_by`, or one that was called and has its place kept if that is None;
    after `until` nothing was heard of it."""

    delivery_id: str
    until: Milliseconds
    claimed_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecoveryProgress:
    """Failed deliveries of events since `since` are opened again, page by page: those after `after` are left, and
    `pages` are done."""

    since: Milliseconds
    after: str | None = None
    pages: int = 0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An endpoint's row. `version` counts its writes; a write is allowed on the version that it was decided on.

    `events` are the patterns of the types that it gets. `failures` counts the deliveries in a row whose first attempts
    failed, `unreached` those of them that found no connection since its host last answered; everything has failed since
    `failing_since`. `probe` is the oldest delivery whose first attempt has failed since then (or a ping), and is tried
    again at `probe_at`. With `rests_until` the endpoint rests: then only the probe may try it (any, if None), what is
    older, and what is called. `successes` are those since it was made, enabled or recovered, as far as they matter for
    how much may be sent to it. At `crowded_at` a delivery had to wait for its turn: since then each that ends calls the
    next. `quick` are its points for being quick; since `widened_at` its deliveries use runways. At `due_at` the sweeper
    looks at it; at `woken_at` something was written that a look at that time may not have seen. `warned_version` and
    `disabled_version` are the versions that brought `warned_at` and `disabled_at`: events are named by them. Since
    `paused_at` an operator has paused it: its deliveries wait, and it does not fail meanwhile.
    """

    tenant_id: str
    endpoint_id: str
    url: str
    events: tuple[str, ...]
    created_at: Milliseconds
    version: int = 1
    description: str | None = None
    headers: tuple[CustomHeader, ...] = ()
    state: EndpointState = EndpointState.ENABLED
    disabled_by: DisabledBy | None = None
    disabled_at: Milliseconds | None = None
    disabled_version: int | None = None
    paused_at: Milliseconds | None = None
    secrets: tuple[SigningSecret, ...] = (SigningSecret(generation=1),)
    failures: int = 0
    unreached: int = 0
    failing_since: Milliseconds | None = None
    warned_at: Milliseconds | None = None
    warned_version: int | None = None
    last_success_at: Milliseconds | None = None
    last_failure_at: Milliseconds | None = None
    rests_until: Milliseconds | None = None
    probe: str | None = None
    probe_at: Milliseconds | None = None
    successes: int = RAMP_SUCCESSES * MAX_FLIGHTS
    flights: tuple[InFlight, ...] = ()
    crowded_at: Milliseconds | None = None
    quick: int = 0
    widened_at: Milliseconds | None = None
    recovery: RecoveryProgress | None = None
    due_at: Milliseconds | None = None
    woken_at: Milliseconds | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether its owner has it, and it works well enough, to be sent anything."""
        return self.state is EndpointState.ENABLED

    @property
    def is_open(self) -> bool:
        """Whether anything may be sent to it now."""
        return self.is_enabled and self.paused_at is None

    @property
    def host(self) -> str:
        """The scheme, host and port of its URL, in one spelling: what is reached or not, whatever the path."""
        written = _HOST.match(self.url.lower())  # guard: webhook-host-normalized
        if written is None:  # no request ever leaves for it
            return self.url
        scheme, name, port = written.groups()
        return f"{scheme}://{name.rstrip('.')}:{port or ('443' if scheme == 'https' else '80')}"

    @property
    def limit(self) -> int:
        """How many deliveries may be on their way to it at a time."""
        if self.rests_until is not None:
            return MAX_RESTING_FLIGHTS  # guard: webhook-resting-flight-limit
        return min(MAX_FLIGHTS, 1 + self.successes // RAMP_SUCCESSES)

    @property
    def is_wide(self) -> bool:
        """Whether it does so well that runways are open besides. An older version may have made it rest or fail without
        knowing of them, so its other fields decide as well."""
        is_well = self.is_open and self.failing_since is None and self.limit == MAX_FLIGHTS
        # guard: webhook-runway-healthy-row-only
        return self.widened_at is not None and self.quick >= QUICK_TO_WIDEN and is_well

    @property
    def runway_places(self) -> int:
        """How many may be on each of its runways: few at first, and more with each that is taken quickly."""
        return min(RUNWAY_PLACES, -(-RUNWAY_PLACES * (self.quick - QUICK_TO_WIDEN + 1) // QUICK_TO_WIDEN))

    @property
    def due_shard(self) -> str:
        """Its partition of the due index."""
        return due_shard_of(self.endpoint_id)


def due_shard_of(endpoint_id: str) -> str:
    """An endpoint's partition of the due index."""
    return DUE_SHARD_NAMES[zlib.crc32(endpoint_id.encode()) % DUE_SHARDS]


DUE_SHARD_NAMES = tuple(f"{number:02}" for number in range(DUE_SHARDS))


def matches(patterns: tuple[str, ...], event_type: str) -> bool:
    """Whether one of the patterns is this type: `*`, a type, or the beginning of types as in `image.*`."""
    if event_type in ONLY_BY_NAME:  # guard: webhook-backfill-by-name-only
        return event_type in patterns
    return any(
        pattern in ("*", event_type) or (pattern.endswith(".*") and event_type.startswith(pattern[:-1]))
        for pattern in patterns
    )


# ── What its owner may do ────────────────────────────────────────────────────────────────────────────────────────────


def enable(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row, enabled: what waited is sent, slowly at first. An enabled one that rests is tried at once."""
    if endpoint.is_enabled and endpoint.rests_until is None:
        return endpoint
    return replace(
        endpoint,
        state=EndpointState.ENABLED,
        disabled_by=None,
        disabled_at=None,
        disabled_version=None,
        failures=0,
        unreached=0,
        failing_since=None,
        warned_at=None,
        warned_version=None,
        rests_until=None,
        probe=None,
        probe_at=None,
        successes=0,
        quick=0,
        crowded_at=now,
        due_at=now,
        # guard: webhook-enable-looks-again
        woken_at=now,  # nobody was told of what came while it was disabled, and the index may not show the latest
    )


def disable(endpoint: Endpoint, by: DisabledBy, *, now: Milliseconds) -> Endpoint:
    """The row, disabled; one that is disabled already is left as it is."""
    if not endpoint.is_enabled:
        return endpoint
    return replace(
        endpoint,
        state=EndpointState.DISABLED,
        disabled_by=by,
        disabled_at=now,
        disabled_version=endpoint.version + 1,
        recovery=None,
        due_at=None,
    )


def pause(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row, paused by an operator; one that is paused already is left as it is."""
    if endpoint.paused_at is not None:
        return endpoint
    return replace(endpoint, paused_at=now, due_at=endpoint.due_at and now + QUIET_SECONDS * SECOND)


def resume(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row, no longer paused: what waited is sent, slowly at first, unless it is disabled. The time of the pause
    does not count for what it takes to be disabled."""
    if endpoint.paused_at is None:
        return endpoint
    paused, failing_since = now - endpoint.paused_at, endpoint.failing_since
    if failing_since is not None:  # guard: webhook-pause-not-failing
        failing_since = min(now, failing_since + paused)
    resumed = replace(endpoint, paused_at=None, failing_since=failing_since, successes=0, quick=0)
    # guard: webhook-resume-looks-again
    return replace(resumed, due_at=now, woken_at=now, crowded_at=now) if resumed.is_enabled else resumed


def recover(endpoint: Endpoint, *, since: Milliseconds, now: Milliseconds) -> Endpoint:
    """The row, enabled, whose failed deliveries of events since then are opened again by the sweeper."""
    return replace(enable(endpoint, now=now), successes=0, recovery=RecoveryProgress(since=since), due_at=now)


def rotate(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint | None:
    """The row with a new secret; those before it go on signing for a day. None if too many sign already."""
    signing = signing_secrets(endpoint, now=now)
    if len(signing) >= MAX_SECRETS:
        return None
    until = now + ROTATION_SECONDS * SECOND
    replaced = tuple(secret if secret.until is not None else replace(secret, until=until) for secret in signing)
    return replace(endpoint, secrets=(SigningSecret(generation=signing[0].generation + 1), *replaced))


def signing_secrets(endpoint: Endpoint, *, now: Milliseconds) -> tuple[SigningSecret, ...]:
    """The secrets that sign now, the newest first."""
    # guard: webhook-replaced-secret-signs
    return tuple(secret for secret in endpoint.secrets if secret.until is None or secret.until > now)


# ── What may be sent to it now ───────────────────────────────────────────────────────────────────────────────────────


class Deferral(StrEnum):
    """Why a delivery cannot be sent now; it waits in its row."""

    DISABLED = "disabled"
    PAUSED = "paused"
    RESTING = "resting"
    BUSY = "busy"


def acquire_slot(
    endpoint: Endpoint, delivery_id: str, *, claimed_by: str, now: Milliseconds, others: Sequence[Endpoint] = ()
) -> Endpoint | Deferral:
    """The row with the delivery on its way, or why it has to wait. `others` are the tenant's others at its host."""
    if not endpoint.is_enabled:
        return Deferral.DISABLED  # guard: webhook-disabled-endpoint-refused
    if not endpoint.is_open:
        return Deferral.PAUSED  # guard: webhook-paused-endpoint-refused
    places = in_flight(endpoint, now=now)
    # guard: webhook-call-expires
    is_called = any(flight.delivery_id == delivery_id and flight.claimed_by is None for flight in places)
    if endpoint.rests_until is not None and not is_called:  # guard: webhook-called-may-pass-rest
        # The delivery's own row says when it may try again: here only whether it is the one that tries, or the other
        # that was called. One that is older may try as well: it failed before, and was on the way to its next
        # attempt when the rest began.
        # guard: webhook-older-than-probe-tries
        is_probe = endpoint.rests_until <= now if endpoint.probe is None else delivery_id <= endpoint.probe
        if not is_probe:  # guard: webhook-resting-endpoint-one-probe
            return Deferral.RESTING
    if is_held((endpoint, *others)) and not is_called:  # guard: webhook-host-single-scout
        return Deferral.RESTING
    flights = in_flight(release_reservation(endpoint, delivery_id), now=now)  # guard: webhook-called-takes-kept-place
    # guard: webhook-endpoint-flight-limit
    if len(flights) >= endpoint.limit or any(flight.delivery_id == delivery_id for flight in flights):
        return Deferral.BUSY
    # guard: webhook-host-flight-limit
    if not is_called and len(flights) + sum(len(in_flight(other, now=now)) for other in others) >= MAX_FLIGHTS:
        return Deferral.BUSY
    # With the receipt, two messages of a delivery never write the same row. Otherwise the second would take the first
    # one's write for its own whose answer was lost, and then end that one's flight.
    # guard: webhook-flight-names-receipt
    flight = InFlight(delivery_id=delivery_id, claimed_by=claimed_by, until=now + FLIGHT_SECONDS * SECOND)
    return replace(endpoint, flights=(*flights, flight))


def reserve_slot(endpoint: Endpoint, delivery_id: str, *, now: Milliseconds) -> Endpoint:
    """The row with a place kept for that delivery, which waits for its turn; unchanged if there is none. So what is
    called is never more than there is room for, however many call."""
    flights = in_flight(endpoint, now=now)
    if len(flights) >= endpoint.limit or any(flight.delivery_id == delivery_id for flight in flights):
        return endpoint  # guard: webhook-called-room-bound
    kept = InFlight(delivery_id=delivery_id, until=now + FLIGHT_SECONDS * SECOND)
    return replace(endpoint, flights=(*flights, kept))


def release_reservation(endpoint: Endpoint, delivery_id: str) -> Endpoint:
    """The row without the place that was kept for that delivery."""
    flights = tuple(
        flight for flight in endpoint.flights if flight.delivery_id != delivery_id or flight.claimed_by is not None
    )
    return replace(endpoint, flights=flights)


def pass_over(endpoint: Endpoint, delivery_id: str) -> Endpoint:
    """The row after that delivery turned out to be unreadable: no place is kept for it, and if it was to try the
    endpoint, another does."""
    released = release_reservation(endpoint, delivery_id)
    return replace(released, probe=None, probe_at=None) if released.probe == delivery_id else released


def in_flight(endpoint: Endpoint, *, now: Milliseconds) -> tuple[InFlight, ...]:
    """The deliveries on their way and those that were called, without those that were lost there."""
    return tuple(flight for flight in endpoint.flights if flight.until > now)


def mark_saturated(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row after a delivery had to wait for its turn: each that ends calls the next. It changes once a second."""
    has_changed = endpoint.crowded_at is not None and 0 <= now - endpoint.crowded_at < SECOND
    return endpoint if has_changed else replace(endpoint, crowded_at=now)


def clear_saturated(endpoint: Endpoint) -> Endpoint:
    """The row when no delivery waits for its turn."""
    return replace(endpoint, crowded_at=None)


def release_slot(endpoint: Endpoint, delivery_id: str) -> Endpoint:
    """The row without that delivery on its way, of which nothing was learnt."""
    flights = tuple(flight for flight in endpoint.flights if flight.delivery_id != delivery_id)
    return replace(endpoint, flights=flights)


def succeed(endpoint: Endpoint, delivery_id: str, *, milliseconds: int, now: Milliseconds) -> Endpoint:
    """The row after that delivery has arrived in so many milliseconds: it fails no longer. One that has rested is
    filled slowly. One that has taken many quickly while others waited for their turn is widened."""
    has_rested = endpoint.rests_until is not None
    quick = min(endpoint.quick + 1, MOST_QUICK) if milliseconds <= QUICK_MILLISECONDS else _slower(endpoint)
    # guard: webhook-runway-opens-if-crowded
    is_widened = endpoint.widened_at is None and quick >= QUICK_TO_WIDEN and endpoint.crowded_at is not None
    return replace(
        release_slot(endpoint, delivery_id),
        failures=0,
        unreached=0,
        failing_since=None,
        warned_at=None,
        warned_version=None,
        rests_until=None,
        probe=None,
        probe_at=None,
        last_success_at=now,
        successes=1 if has_rested else min(endpoint.successes + 1, RAMP_SUCCESSES * MAX_FLIGHTS),
        crowded_at=now if has_rested else endpoint.crowded_at,
        quick=quick,
        widened_at=now if is_widened else endpoint.widened_at,
        due_at=now if has_rested and endpoint.is_open else endpoint.due_at,
    )


def fail(
    endpoint: Endpoint,
    delivery_id: str,
    *,
    is_first: bool,
    retry_at: Milliseconds | None,
    is_gone: bool,
    now: Milliseconds,
    was_unreached: bool = False,
) -> Endpoint:
    """The row after that delivery has failed, in its first attempt or a later one, and will be tried again at
    `retry_at` (None: never). It `was_unreached` if no connection to its host came about."""
    failed = replace(
        release_slot(endpoint, delivery_id),
        failures=endpoint.failures + is_first,  # guard: webhook-retries-cause-no-rest
        unreached=endpoint.unreached + is_first if was_unreached else 0,  # guard: webhook-host-rest-unreached-only
        last_failure_at=now,
        quick=0,  # guard: webhook-runway-failure-closes
    )
    if is_gone:
        return disable(replace(failed, failing_since=failed.failing_since or now), DisabledBy.GONE, now=now)
    failed = _go_on_failing(failed, now=now)
    if not failed.is_enabled:
        return failed
    if _is_probe(failed, delivery_id, is_first=is_first):  # guard: webhook-oldest-failed-is-probe
        # After its last attempt another takes its place.
        failed = replace(failed, probe=None if retry_at is None else delivery_id, probe_at=retry_at)
    if failed.failures >= FAILURES_TO_REST or (was_unreached and failed.rests_until is not None):
        failed = replace(failed, rests_until=now if failed.probe_at is None else failed.probe_at)
    elif failed.rests_until is not None:  # it rested for its host, which answers now
        failed = replace(failed, rests_until=None, successes=0, crowded_at=now)
    return wake(failed, now if retry_at is None else retry_at, now=now)


# ── Runways ──────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# A flight on a runway is the claim of its delivery: neither the endpoint's row nor the delivery's is written before it
# lands. Since an endpoint was widened, its other flights hold a place on the same runway while they claim.


def runway_of(delivery_id: str) -> int:
    """The runway of a delivery, the same whoever tries it."""
    return zlib.crc32(delivery_id.encode()) % RUNWAYS


def has_runways(rows: Sequence[Endpoint]) -> bool:
    """Whether the first of these is wide, and alone at its host: of what is on runways no other endpoint knows."""
    return len(rows) == 1 and rows[0].is_wide  # guard: webhook-runway-alone-at-host


def may_use_runway(rows: Sequence[Endpoint], delivery_id: str, *, now: Milliseconds) -> bool:
    """Whether a delivery to the first of these takes off from a runway. One that was called has a place in the row."""
    is_kept = any(flight.delivery_id == delivery_id for flight in in_flight(rows[0], now=now))
    return has_runways(rows) and not is_kept  # guard: webhook-runway-not-if-called


def ripe_before(rows: Sequence[Endpoint], *, now: Milliseconds) -> Milliseconds:
    """Deliveries that are due since then at least wait for their turn, or their message was lost."""
    return max(now - RIPE_SECONDS * SECOND, rows[0].widened_at or 0) if has_runways(rows) else now


def go_on_well(endpoint: Endpoint, *, milliseconds: int, now: Milliseconds) -> Endpoint:
    """The row after a delivery on a runway has arrived in so many milliseconds. While all is well, it is written once a
    minute; if it is narrow by now, the flights that its row counts decide."""
    is_quick = milliseconds <= QUICK_MILLISECONDS
    is_told = 0 <= now - (endpoint.last_success_at or 0) < LOOK_SECONDS * SECOND
    if not endpoint.is_wide or (is_quick and is_told):  # guard: webhook-runway-row-rarely-written
        return endpoint
    return replace(endpoint, last_success_at=now, quick=MOST_QUICK if is_quick else _slower(endpoint))


def _slower(endpoint: Endpoint) -> int:
    return max(0, endpoint.quick - MOST_QUICK // 2)  # guard: webhook-runway-slowness-closes


def _go_on_failing(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row while everything fails: after a day its owner is warned, and after five it is disabled."""
    since = now if endpoint.failing_since is None else endpoint.failing_since
    failing = replace(endpoint, failing_since=since)
    if now - since >= DISABLE_SECONDS * SECOND:
        return disable(failing, DisabledBy.FAILING, now=now)
    if now - since >= WARN_SECONDS * SECOND and failing.warned_at is None:
        return replace(failing, warned_at=now, warned_version=endpoint.version + 1)
    return failing


def _is_probe(endpoint: Endpoint, delivery_id: str, *, is_first: bool) -> bool:
    """Whether the delivery that has just failed is the one that tries the endpoint from now on: the oldest whose first
    attempt has failed since all fail. One that had failed before may be hours away from its next attempt, and so
    everything else would be."""
    if endpoint.probe is None:
        return is_first or endpoint.rests_until is not None  # guard: webhook-probe-first-attempt-only
    # guard: webhook-probe-times-kept
    return delivery_id == endpoint.probe or (is_first and delivery_id < endpoint.probe)  # ids begin with a time


# ── All endpoints of a tenant at one host ────────────────────────────────────────────────────────────────────────────
#
# No row is a host's. Each is read with the others of its host: `rows` has the endpoint that it is about first.


def at_one_host(endpoint: Endpoint, rows: Iterable[object]) -> tuple[Endpoint, ...]:
    """The endpoint, and of these rows of its tenant the others at its host, as far as they can be read."""
    others = (row for row in rows if isinstance(row, Endpoint) and row.endpoint_id != endpoint.endpoint_id)
    return (endpoint, *(row for row in others if row.host == endpoint.host))


def scout_of(rows: Sequence[Endpoint]) -> Endpoint | None:
    """The endpoint whose probe alone tries the host that all rest for; None while they do not rest for it.

    They do after three deliveries, to whichever of them, whose first attempts found no connection. Of several that
    began to rest at the same time, one is the scout. One without a probe tries nothing, and holds up no other.
    """
    failing = [row for row in rows if row.is_open and row.unreached]  # guard: webhook-scout-is-enabled
    # guard: webhook-scout-has-probe
    scouts = [row for row in failing if row.rests_until is not None and row.probe is not None]
    if sum(row.unreached for row in failing) < FAILURES_TO_REST:
        return None
    return min(scouts, key=lambda row: (row.failing_since or 0, row.endpoint_id), default=None)


def is_held(rows: Sequence[Endpoint]) -> bool:
    """Whether the first of these waits for another to try their host."""
    scout = scout_of(rows)
    return scout is not None and scout.endpoint_id != rows[0].endpoint_id


def as_seen(rows: Sequence[Endpoint]) -> Endpoint:
    """The first of these as its owner sees it: one that is held rests as long as the one that tries the host."""
    scout = scout_of(rows)
    return rows[0] if scout is None or not rows[0].is_enabled else replace(rows[0], rests_until=scout.rests_until)


def room_at_host(rows: Sequence[Endpoint], *, now: Milliseconds) -> int:
    """How many more deliveries may be called there."""
    return MAX_FLIGHTS - sum(len(in_flight(row, now=now)) for row in rows)


def has_too_many(rows: Sequence[Endpoint], *, now: Milliseconds) -> bool:
    """Whether more deliveries have taken off there than may be on their way. Each asks after its own has been written,
    so of those that took off at the same time the last sees all."""
    return sum(flight.claimed_by is not None for row in rows for flight in in_flight(row, now=now)) > MAX_FLIGHTS


def rest_for_host(rows: Sequence[Endpoint], *, now: Milliseconds) -> Endpoint:
    """The first of these after a delivery to it found no connection: at rest, and the scout, if so many did that all
    rest for their host and none has begun."""
    endpoint = rows[0]
    if not endpoint.is_open or endpoint.rests_until is not None or endpoint.probe is None:
        return endpoint
    resting = replace(endpoint, rests_until=endpoint.probe_at or now)
    if scout_of(rows) is not None or scout_of((resting, *rows[1:])) is None:
        return endpoint
    return wake(resting, resting.rests_until or now, now=now)


def hold(endpoint: Endpoint, until: Milliseconds, *, has_waiting: bool, now: Milliseconds) -> Endpoint:
    """The row when the sweeper finds it held until then at least: if something waits for it, everything fails."""
    held = _go_on_failing(endpoint, now=now) if has_waiting else endpoint  # guard: webhook-held-endpoint-fails-too
    return replace(held, due_at=max(until, now + LOOK_SECONDS * SECOND)) if held.is_enabled else held


def reach(endpoint: Endpoint, *, now: Milliseconds) -> Endpoint:
    """The row after its host has answered: if it rested for that or was held, what waits is sent, slowly at first."""
    if not endpoint.is_enabled or (endpoint.rests_until is not None and not endpoint.unreached):
        return replace(endpoint, unreached=0)
    rested = (
        replace(endpoint, rests_until=None, probe=None, probe_at=None, failures=0) if endpoint.unreached else endpoint
    )
    return replace(rested, unreached=0, successes=0, crowded_at=now, due_at=now, woken_at=now)


# ── When the sweeper looks at it ─────────────────────────────────────────────────────────────────────────────────────


def wake(endpoint: Endpoint, at: Milliseconds, *, now: Milliseconds) -> Endpoint:
    """The row, at which the sweeper looks at `at` or earlier, and after now; a disabled one is not looked at, and a
    paused one no sooner than it is.

    A look that is due may be going on, and may not have seen what this one is for. It is not moved, or it would never
    come while there is always something new; but the row changes, so that the look is decided again. It changes once a
    second: many events at a time would only keep each other from writing.
    """
    if not endpoint.is_open:
        return endpoint
    if endpoint.due_at is not None and endpoint.due_at <= at:
        is_far = now + LAG_SECONDS * SECOND < endpoint.due_at
        has_changed = endpoint.woken_at is not None and 0 <= now - endpoint.woken_at < SECOND
        if is_far or has_changed:  # guard: webhook-wake-once-a-second
            return endpoint
        at = endpoint.due_at  # guard: webhook-due-look-not-postponed
    return replace(endpoint, due_at=at, woken_at=now)


def next_look(endpoint: Endpoint, due: Sequence[Milliseconds], *, now: Milliseconds) -> Milliseconds:
    """When the sweeper looks at it again, after a look that has listed deliveries due at these times."""
    if any(at <= now for at in due) or (endpoint.woken_at or 0) > now - LAG_SECONDS * SECOND:
        return now + LOOK_SECONDS * SECOND
    return min([now + QUIET_SECONDS * SECOND, *due])
