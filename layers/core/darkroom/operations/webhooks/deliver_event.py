"""Sends one delivery to its endpoint, and has the next one tried if others wait for their turn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.custom_headers import SealBroken, opened, repeats_secret
from darkroom.domain.webhooks.delivery import (
    MESSAGE_SECONDS,
    Answer,
    Delivery,
    DeliveryMessage,
    DeliveryStatus,
    claim,
    message_for,
    record,
    was_unheard,
)
from darkroom.domain.webhooks.endpoint import (
    FAILURES_TO_REST,
    FLIGHT_SECONDS,
    LAG_SECONDS,
    MAX_FLIGHTS,
    RUNWAY_PLACES,
    SECOND,
    Deferral,
    Endpoint,
    InFlight,
    acquire_slot,
    clear_saturated,
    fail,
    go_on_well,
    has_runways,
    has_too_many,
    in_flight,
    mark_saturated,
    may_use_runway,
    pass_over,
    reach,
    release_reservation,
    release_slot,
    reserve_slot,
    rest_for_host,
    ripe_before,
    room_at_host,
    scout_of,
    signing_secrets,
    succeed,
    wake,
)
from darkroom.domain.webhooks.first_attempts import FirstAttempt, first_attempt
from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, secret_of, sign
from darkroom.operations.images.enqueue import seconds_until
from darkroom.operations.webhooks.change_endpoint import TRIES, change_endpoint, watch
from darkroom.operations.webhooks.read_delivery import read_delivery
from darkroom.operations.webhooks.read_host import read_host
from darkroom.ports.kernel import Clock, Fenced, Jitter, Secret, UnreadableRow
from darkroom.ports.tenants import IsSuspended
from darkroom.ports.webhooks import Deliveries, DeliveryQueue, Endpoints, Place, Receiver

NEXT_LISTED, NEXT_READ = 40, 8
"""From how many of the deliveries that wait for their turn the next are chosen (as many as half a read unit lists),
and how many of these are read to find some that still wait."""

HOST_TRIES = 3
"""How often a delivery takes off while others to its host do, and each takes its flight back."""


@dataclass(frozen=True, kw_only=True)
class DeliverEventPorts:
    """What delivering needs."""

    endpoints: Endpoints
    deliveries: Deliveries
    delivery_queue: DeliveryQueue
    receiver: Receiver
    master_secret: Secret
    is_suspended: IsSuspended
    clock: Clock
    jitter: Jitter


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """What a message came to: `delivered` or `failed` (an attempt that was made, with its `answer`), `gave_up` (no
    attempt is left), or the reason why there was nothing to do now. `first` is how the attempt counts for the service
    level, and it `may_repeat` another, whose worker died. `unreadable` are the rows of deliveries that were met and
    postponed."""

    outcome: str
    answer: Answer | None = None
    first: FirstAttempt | None = None
    may_repeat: bool = False
    endpoint: Endpoint | None = None
    unreadable: Sequence[UnreadableRow] = ()


def deliver_event(ports: DeliverEventPorts, message: DeliveryMessage, *, claimed_by: str) -> Delivered:
    """Tries the delivery that the message names, if its row and its endpoint's allow it now; otherwise it waits in its
    row, and nothing of it is lost. `claimed_by` names this one receipt of the message. Raises Retryable."""
    host = read_host(ports.endpoints, message.tenant_id, message.endpoint_id)
    if not host:
        return Delivered(outcome="endpoint_gone")
    endpoint = host[0]
    if ports.is_suspended(message.tenant_id):  # guard: webhook-suspended-tenant-waits
        return Delivered(outcome="suspended")
    if may_use_runway(host, message.delivery_id, now=ports.clock()):
        delivered = _deliver_from_runway(ports, endpoint, message, claimed_by)
        if delivered is not None:
            return delivered
    delivery = read_delivery(ports.deliveries, message.endpoint_id, message.delivery_id, now=ports.clock())
    if delivery is None:
        return Delivered(outcome="gone")
    if isinstance(delivery, UnreadableRow):
        return _pass_over(ports, host, message, delivery)
    claimed = claim(delivery, claimed_by=claimed_by, now=ports.clock())
    if isinstance(claimed, str):
        return _leave(ports, host, message, delivery, why=claimed)
    if claimed.status is DeliveryStatus.FAILED:
        return _give_up(ports, endpoint, delivery, claimed)
    return _send(ports, host, message, delivery, claimed, claimed_by=claimed_by)


def _pass_over(
    ports: DeliverEventPorts, host: Sequence[Endpoint], message: DeliveryMessage, unreadable: UnreadableRow
) -> Delivered:
    """Frees the place of a delivery whose row cannot be read."""
    endpoint, *others = host
    # guard: unreadable-delivery-place-freed
    current = change_endpoint(ports.endpoints, endpoint, lambda row: pass_over(row, message.delivery_id))
    met = () if current is None else _call_next(ports, (current, *others), message)
    return Delivered(outcome="unreadable", unreadable=(unreadable, *met))


def _leave(
    ports: DeliverEventPorts, host: Sequence[Endpoint], message: DeliveryMessage, delivery: Delivery, *, why: str
) -> Delivered:
    """Leaves a delivery that may not be claimed now in its row."""
    endpoint, *others = host
    if delivery.due_at is not None:  # perhaps a worker died before it could say when the sweeper should look
        watch(ports.endpoints, endpoint, delivery.due_at, ports.clock)  # guard: webhook-not-due-watched
    # It may have gone from a runway while a place was kept for it.
    # guard: webhook-runway-kept-place-freed
    current = change_endpoint(ports.endpoints, endpoint, lambda row: release_reservation(row, delivery.delivery_id))
    met = () if current is None else _call_next(ports, (current, *others), message)
    return Delivered(outcome=why, unreadable=met)


def _give_up(ports: DeliverEventPorts, endpoint: Endpoint, delivery: Delivery, failed: Delivery) -> Delivered:
    """Ends a delivery that has no attempt left, as the worker of the last one could not."""
    now = ports.clock()
    with suppress(Fenced, UnreadableRow):  # guard: webhook-give-up-fenced
        ports.deliveries.change(delivery, failed)
    change_endpoint(
        ports.endpoints,
        endpoint,
        lambda row: fail(
            row,
            delivery.delivery_id,
            is_first=False,
            retry_at=None,
            is_gone=False,
            now=now,
            # guard: webhook-lost-worker-host-unknown
            was_unreached=row.unreached > 0,  # nothing new is known of its host
        ),
    )
    return Delivered(outcome="gave_up")


def _send(
    ports: DeliverEventPorts,
    host: Sequence[Endpoint],
    message: DeliveryMessage,
    delivery: Delivery,
    claimed: Delivery,
    *,
    claimed_by: str,
) -> Delivered:
    """Makes the attempt, once the endpoint has a place for it and the delivery's row is claimed."""
    others = host[1:]
    # guard: webhook-secret-before-claim
    master = ports.master_secret.current().text.encode()  # before anything is claimed: without it nothing can be sent
    flying = _take_off(ports, host, message, claimed_by)
    if isinstance(flying, Deferral):
        return Delivered(outcome=flying.value)
    if flying is None:
        return Delivered(outcome="endpoint_gone")
    ours = _claim(ports, flying, delivery, claimed)
    if ours is None:
        # guard: webhook-second-worker-place-freed
        landed = change_endpoint(ports.endpoints, flying, lambda row: release_slot(row, delivery.delivery_id))
        # One on a runway calls nobody when it ends, but if it has made the endpoint narrow.
        is_wide = landed is not None and landed.is_wide
        met = _call_next(ports, (landed, *others), message, held=delivery.delivery_id) if landed and is_wide else ()
        return Delivered(outcome="leased", unreadable=met)
    sending, was_lost = ours
    answer = _post(ports, flying, sending, master)
    return _hear(ports, (flying, *others), sending, answer, was_lost=was_lost)


def _claim(
    ports: DeliverEventPorts, flying: Endpoint, delivery: Delivery, claimed: Delivery
) -> tuple[Delivery, bool] | None:
    """The delivery's row as claimed, and whether it was lost on a runway before; None if another worker has it, perhaps
    a newer one. Who has it on a runway has not written the row: so this keeps others from there until it is written."""
    # guard: webhook-runway-row-claim-excludes
    flight = None if flying.widened_at is None else _flight(ports, delivery.delivery_id, claimed.claimed_by)
    place: Place = "taken"
    if flight is not None:
        most = RUNWAY_PLACES + MAX_FLIGHTS  # the row has counted this one
        place = ports.deliveries.take_place(flying.endpoint_id, flight, now=ports.clock(), most=most)
    if place in ("held", "full"):
        return None
    sending: Delivery | None = None
    with suppress(Fenced, UnreadableRow):  # guard: unreadable-claim-keeps-no-place
        sending = ports.deliveries.change(delivery, claimed)
    if flight is not None:  # not after an outage: the write may come late, and nobody may take the delivery before it
        _free(ports, flying, flight)
    return None if sending is None else (sending, place == "retaken")


def _flight(ports: DeliverEventPorts, delivery_id: str, claimed_by: str | None) -> InFlight:
    return InFlight(delivery_id=delivery_id, claimed_by=claimed_by, until=ports.clock() + FLIGHT_SECONDS * SECOND)


def _free(ports: DeliverEventPorts, endpoint: Endpoint, flight: InFlight) -> None:
    with bookkeeping("place not freed", delivery_id=flight.delivery_id):  # then it is free after its time
        ports.deliveries.free_place(endpoint.endpoint_id, flight)


# ── From a runway ────────────────────────────────────────────────────────────────────────────────────────────────────


def _deliver_from_runway(
    ports: DeliverEventPorts, endpoint: Endpoint, message: DeliveryMessage, claimed_by: str
) -> Delivered | None:
    """What the message came to; None if its runway has no place, or if there is nothing to send."""
    master = ports.master_secret.current().text.encode()
    # guard: webhook-runway-slow-start
    flight, most = _flight(ports, message.delivery_id, claimed_by), endpoint.runway_places
    place = ports.deliveries.take_place(endpoint.endpoint_id, flight, now=ports.clock(), most=most)
    if place == "held":
        return Delivered(outcome="leased")
    if place == "full":
        return None
    # Read after the place was taken: whoever had the delivery before has written its row by now.
    delivery = read_delivery(ports.deliveries, message.endpoint_id, message.delivery_id, now=ports.clock())
    claimed = claim(delivery, claimed_by=claimed_by, now=ports.clock()) if isinstance(delivery, Delivery) else None
    if not isinstance(delivery, Delivery) or not isinstance(claimed, Delivery) or claimed.claimed_by is None:
        _free(ports, endpoint, flight)
        return None
    answer = _post(ports, endpoint, claimed, master)
    after = _record(ports, delivery, claimed, answer)
    _free(ports, endpoint, flight)
    return _hear_from_runway(ports, endpoint, claimed, after, answer, was_lost=place == "retaken")


def _record(ports: DeliverEventPorts, delivery: Delivery, claimed: Delivery, answer: Answer) -> Delivery | None:
    """The delivery's row with what came of the attempt. While it was on its runway, it may have lost its details with
    its image, or a worker of an older version may have taken it: then None."""
    unit_random, now = ports.jitter(), ports.clock()
    for _ in range(TRIES):
        try:
            return ports.deliveries.change(delivery, record(claimed, answer, unit_random=unit_random, now=now))
        except UnreadableRow:
            return None
        except Fenced as fenced:
            # guard: webhook-runway-outcome-recorded
            if fenced.current is None or fenced.current.attempt >= claimed.attempt:
                return None
            delivery = fenced.current
            again = claim(delivery, claimed_by=str(claimed.claimed_by), now=claimed.attempts[-1].started_at)
            if isinstance(again, str):
                return None
            claimed = again
    return None


def _hear_from_runway(
    ports: DeliverEventPorts,
    endpoint: Endpoint,
    claimed: Delivery,
    after: Delivery | None,
    answer: Answer,
    *,
    was_lost: bool,
) -> Delivered:
    """Tells the endpoint's row what it has to know. Of those that fail or are slow at the same time, the first makes
    the endpoint narrow, and the others say no more: the row does not know of those that did well."""
    now, due_at = ports.clock(), None if after is None else after.due_at
    was_wide = False

    def decide(row: Endpoint) -> Endpoint:
        nonlocal was_wide
        was_wide = row.is_wide
        if answer.is_success:
            return go_on_well(row, milliseconds=answer.milliseconds, now=now)
        if was_wide or answer.is_gone:  # guard: webhook-runway-failures-count-once
            return fail(
                row,
                claimed.delivery_id,
                is_first=claimed.attempt == 1,
                retry_at=due_at,
                is_gone=answer.is_gone,
                now=now,
                was_unreached=answer.was_unreached,
            )
        return wake(row, now if due_at is None else due_at, now=now)

    met: Sequence[UnreadableRow] = ()
    current = change_endpoint(ports.endpoints, endpoint, decide)
    if current is not None and current.is_open:
        if after is not None and due_at is not None:
            _send_if_soon(ports, after)
        if not current.is_wide and (was_wide or not in_flight(current, now=now)):  # or no other calls the next
            met = _call_next(ports, (current,), message_for(claimed))
    gave_up = after is not None and due_at is None
    first = first_attempt(endpoint, claimed, answer, now=now)
    return _answered(claimed, answer, first, current, gave_up=gave_up, was_lost=was_lost, met=met)


def _answered(
    delivery: Delivery,
    answer: Answer,
    first: FirstAttempt | None,
    endpoint: Endpoint | None,
    *,
    gave_up: bool,
    was_lost: bool,
    met: Sequence[UnreadableRow],
) -> Delivered:
    """What an attempt came to. It may repeat one that `was_lost` on its runway, or of which nothing was heard."""
    return Delivered(
        outcome="delivered" if answer.is_success else "gave_up" if gave_up else "failed",
        answer=answer,
        first=first,
        may_repeat=was_lost or was_unheard(delivery),
        endpoint=endpoint,
        unreadable=met,
    )


# ── Otherwise ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _bytes(delivery: Delivery) -> bytes:
    return delivery.body.encode()


def _post(ports: DeliverEventPorts, endpoint: Endpoint, delivery: Delivery, master: bytes) -> Answer:
    """Makes the attempt, with the headers of the endpoint's owner; returns what is kept of the answer."""
    try:
        added = opened(endpoint, master)
    except SealBroken as broken:  # guard: webhook-header-seal-broken-told
        return Answer(milliseconds=0, error=str(broken))
    signed = _headers(endpoint, delivery, master, ports.clock())
    answer = ports.receiver.post(endpoint.url, headers={**added, **signed}, body=_bytes(delivery))
    if repeats_secret(answer.body, endpoint, added):  # guard: webhook-header-echo-not-kept
        return replace(answer, body="(not kept: the answer repeats a secret header)")
    return answer


def _headers(endpoint: Endpoint, delivery: Delivery, master: bytes, now: int) -> dict[str, str]:
    secrets = [
        secret_of(master, tenant_id=endpoint.tenant_id, endpoint_id=endpoint.endpoint_id, generation=secret.generation)
        for secret in signing_secrets(endpoint, now=now)
    ]
    timestamp = now // 1000
    signature = sign(secrets, message_id=delivery.event_id, timestamp=timestamp, body=_bytes(delivery))
    return {
        "Content-Type": "application/json",
        ID_HEADER: delivery.event_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: signature,
    }


def _take_off(
    ports: DeliverEventPorts, host: Sequence[Endpoint], message: DeliveryMessage, claimed_by: str
) -> Endpoint | Deferral | None:
    """The endpoint's row with the delivery on its way, why that cannot be now, or None if the endpoint is gone.

    Each endpoint's row has its own flights, so what is on its way to their host is read after the write: one flight too
    many is taken back. Whoever finds no room marks that, and looks again: it may have been made just before.
    """
    for _ in range(HOST_TRIES):
        flying = _take_off_there(ports, host, message.delivery_id, claimed_by)
        if flying is None or len(host) == 1:
            return flying
        host = read_host(ports.endpoints, message.tenant_id, message.endpoint_id)
        if not host:
            return None
        if isinstance(flying, Endpoint):
            if not has_too_many(host, now=ports.clock()):  # guard: webhook-host-flight-taken-back
                return flying
            change_endpoint(
                ports.endpoints,
                flying,
                lambda row: mark_saturated(release_slot(row, message.delivery_id), now=ports.clock()),
            )
            flying, host = Deferral.BUSY, read_host(ports.endpoints, message.tenant_id, message.endpoint_id)
        if (
            not host  # guard: webhook-host-looks-after-mark
            or isinstance(
                acquire_slot(host[0], message.delivery_id, claimed_by=claimed_by, now=ports.clock(), others=host[1:]),
                Deferral,
            )
        ):
            return flying
    with bookkeeping("message not sent", delivery_id=message.delivery_id):  # then the sweeper sends it
        # guard: webhook-host-collision-retried
        ports.delivery_queue.send(message, delay_seconds=1 + int(ports.jitter() * HOST_TRIES))
    return Deferral.BUSY


def _take_off_there(
    ports: DeliverEventPorts, host: Sequence[Endpoint], delivery_id: str, claimed_by: str
) -> Endpoint | Deferral | None:
    endpoint, *others = host
    refusal: Deferral | None = None

    def decide(row: Endpoint) -> Endpoint:
        nonlocal refusal
        flying = acquire_slot(row, delivery_id, claimed_by=claimed_by, now=ports.clock(), others=others)
        refusal = flying if isinstance(flying, Deferral) else None
        if isinstance(flying, Endpoint):
            return flying
        unkept = release_reservation(row, delivery_id)  # guard: webhook-refused-place-returned
        # Written on the row that has no room: one of those on their way ends after this, and calls the next.
        return mark_saturated(unkept, now=ports.clock()) if flying is Deferral.BUSY else unkept

    changed = change_endpoint(ports.endpoints, endpoint, decide)
    return changed if refusal is None or changed is None else refusal


def _hear(
    ports: DeliverEventPorts, host: Sequence[Endpoint], sending: Delivery, answer: Answer, *, was_lost: bool
) -> Delivered:
    """Records what came of the attempt: in the delivery's row first, because that one decides whether it is sent
    again. `host` are the endpoints at the host, as they were before."""
    endpoint = host[0]
    now = ports.clock()
    after = record(sending, answer, unit_random=ports.jitter(), now=now)
    try:
        recorded = ports.deliveries.change(sending, after)
    # guard: unreadable-attempt-still-counts, webhook-late-worker-fenced
    except (Fenced, UnreadableRow):  # it took so long that another worker has it
        recorded = None
    delivery_id = sending.delivery_id
    if answer.is_success:
        current = change_endpoint(
            ports.endpoints,
            endpoint,
            lambda row: succeed(row, delivery_id, milliseconds=answer.milliseconds, now=now),
        )
    else:
        current = change_endpoint(
            ports.endpoints,
            endpoint,
            lambda row: fail(
                row,
                delivery_id,
                is_first=sending.attempt == 1,
                retry_at=after.due_at,
                is_gone=answer.is_gone,
                now=now,
                was_unreached=answer.was_unreached,
            ),
        )
    if recorded is not None and recorded.due_at is not None and current is not None and current.is_open:
        _send_if_soon(ports, recorded)
    met: list[UnreadableRow] = []
    if current is not None and current.rests_until is not None and not answer.was_unreached:
        begins = sending.attempt == 1 and current.failures == FAILURES_TO_REST
        # guard: webhook-probe-failure-calls-other, webhook-rest-begin-calls-other
        if begins or current.probe == delivery_id:
            met += _call_another(ports, current)
    if current is not None:
        met += _call_next(ports, _at_host(ports, (current, *host[1:]), endpoint, answer), message_for(sending))
    first = first_attempt(endpoint, sending, answer, now=now)
    return _answered(sending, answer, first, current, gave_up=after.due_at is None, was_lost=was_lost, met=met)


def _at_host(
    ports: DeliverEventPorts, host: Sequence[Endpoint], before: Endpoint, answer: Answer
) -> Sequence[Endpoint]:
    """The endpoints at the host after one of them was answered or found no connection, which then goes for all."""
    if len(host) == 1:
        return host
    with bookkeeping("host not read", webhook_id=before.endpoint_id):  # its endpoints' own probes and looks go on
        had_scout = scout_of((before, *host[1:])) is not None
        host = read_host(ports.endpoints, before.tenant_id, before.endpoint_id) or host[:1]
        now = ports.clock()
        if answer.was_unreached:
            rested = change_endpoint(ports.endpoints, host[0], lambda row: rest_for_host((row, *host[1:]), now=now))
            return host if rested is None else (rested, *host[1:])
        reached = [
            # guard: webhook-answer-ends-host-rest
            change_endpoint(ports.endpoints, row, lambda it: reach(it, now=now)) if had_scout or row.unreached else row
            for row in host[1:]
        ]
        return (host[0], *(row for row in reached if row is not None))
    return host


def _send_if_soon(ports: DeliverEventPorts, delivery: Delivery) -> None:
    delay_seconds = seconds_until(delivery.due_at, ports.clock())
    if delay_seconds <= MESSAGE_SECONDS:
        with bookkeeping("message not sent", delivery_id=delivery.delivery_id):  # then the sweeper sends it
            ports.delivery_queue.send(message_for(delivery), delay_seconds=delay_seconds)


def _call_next(
    ports: DeliverEventPorts, host: Sequence[Endpoint], message: DeliveryMessage, *, held: str | None = None
) -> Sequence[UnreadableRow]:
    """Sends messages for deliveries that wait for their turn at any of the host's endpoints, as far as there is room,
    to those first that have the fewest on their way; returns what it could not read. It saves time, and the sweeper
    would do it too: so a failure is none of the delivery that has ended, which `message` names.

    `held` is a delivery that another worker has on a runway, perhaps one that died. Its row does not show that, and
    others may be held as well: if they were called at once, they would call one another again and again until their
    places are free. So it is not called, and the others are called a second later.
    """
    met: list[UnreadableRow] = []
    now = ports.clock()
    if scout_of(host) is not None:
        return met
    room, looks_again_after = room_at_host(host, now=now), list[int]()
    # guard: webhook-host-fewest-flights-first
    for endpoint in sorted(host, key=lambda row: len(in_flight(row, now=now))):
        if endpoint.crowded_at is None or not endpoint.is_open or endpoint.rests_until is not None:
            continue
        flying = {flight.delivery_id for flight in in_flight(endpoint, now=now)}
        here = min(endpoint.limit - len(flying), room)
        if here <= 0:
            continue
        with bookkeeping("next delivery not called"), suppress(Fenced):  # guard: bookkeeping-next-delivery-isolated
            is_wide = has_runways(host)
            due = _due(ports, endpoint, but=flying, before=ripe_before(host, now=ports.clock()))
            # Not the first of them: several that end at the same time would all call the same ones.
            mixed = [due.pop(int(ports.jitter() * len(due))) for _ in range(min(NEXT_READ, len(due)))]
            # guard: webhook-runway-held-not-called
            free = [delivery_id for delivery_id in mixed if delivery_id != held]
            waiting = _those_that_wait(ports, endpoint, free, NEXT_READ if is_wide else here, met)
            room -= min(here, len(waiting))
            if waiting:
                # guard: webhook-runway-held-others-later
                _call(ports, endpoint, waiting, is_wide=is_wide, delay_seconds=0 if held is None else 1)
            elif not flying:
                # The index may not show yet who had to wait, or still show who has ended.
                seconds = (now - endpoint.crowded_at) // SECOND
                if mixed or seconds < LAG_SECONDS:  # guard: webhook-index-lag-looks-again
                    looks_again_after.append(min(max(1, seconds), LAG_SECONDS))
                else:
                    ports.endpoints.change(endpoint, clear_saturated(endpoint))
    if looks_again_after and room == MAX_FLIGHTS:  # no other looks again
        with bookkeeping("next delivery not called"):
            ports.delivery_queue.send(message, delay_seconds=min(looks_again_after))
    return met


def _call_another(ports: DeliverEventPorts, endpoint: Endpoint) -> Sequence[UnreadableRow]:
    """Sends a message for another delivery when an endpoint begins to rest, and after the one that tries it has failed:
    perhaps its receiver cannot take those events alone. It is one with few attempts, of the newest that wait: the
    older ones are likely to have failed as well. Returns what it could not read."""
    met: list[UnreadableRow] = []
    if in_flight(endpoint, now=ports.clock()):  # guard: webhook-resting-one-other-called
        return met  # the one that was called before
    with bookkeeping("another delivery not called"):
        # guard: webhook-resting-newest-called
        due = sorted(_due(ports, endpoint, but={endpoint.probe}, before=ports.clock()), reverse=True)
        waiting = _those_that_wait(ports, endpoint, due[:NEXT_READ], NEXT_READ, met)
        # guard: webhook-resting-few-attempts-first
        _call(ports, endpoint, sorted(waiting, key=lambda delivery: delivery.attempt)[:1])
    return met


def _due(ports: DeliverEventPorts, endpoint: Endpoint, but: Collection[str | None], before: Milliseconds) -> list[str]:
    """The deliveries that have waited since `before`, by the index, those first that have waited longest."""
    listed = ports.deliveries.due(endpoint.endpoint_id, NEXT_LISTED)
    return [
        delivery.delivery_id for delivery in listed if delivery.due_at <= before and delivery.delivery_id not in but
    ]


def _those_that_wait(
    ports: DeliverEventPorts, endpoint: Endpoint, due: Sequence[str], most: int, met: list[UnreadableRow]
) -> list[Delivery]:
    """Up to `most` of these deliveries: the index is late, and many of those that it lists first have just ended. Those
    that cannot be read join `met`."""
    waiting: list[Delivery] = []
    for delivery_id in due:
        if len(waiting) >= most:
            break
        delivery = read_delivery(ports.deliveries, endpoint.endpoint_id, delivery_id, now=ports.clock())
        if isinstance(delivery, UnreadableRow):
            met.append(delivery)
        # guard: webhook-ended-not-called
        elif delivery is not None and delivery.due_at is not None and delivery.due_at <= ports.clock():
            waiting.append(delivery)
    return waiting


def _call(
    ports: DeliverEventPorts,
    endpoint: Endpoint,
    waiting: Sequence[Delivery],
    *,
    is_wide: bool = False,
    delay_seconds: int = 0,
) -> None:
    """Keeps places for these deliveries, as far as there is room, and sends messages for those that have one. To a wide
    endpoint the others are sent as well: these take runways, and when they end they call nobody."""
    called: list[Delivery] = []

    def decide(row: Endpoint) -> Endpoint:
        called.clear()
        if not row.is_open or row.rests_until != endpoint.rests_until:
            return row
        for delivery in waiting:
            after = reserve_slot(row, delivery.delivery_id, now=ports.clock())
            if after != row or (is_wide and row.is_wide):
                called.append(delivery)
            row = after
        return row

    change_endpoint(ports.endpoints, endpoint, decide)
    for delivery in called:
        ports.delivery_queue.send(message_for(delivery), delay_seconds=delay_seconds)
