"""Fakes of what webhooks are made of that check every write, and queues that hide, count and repeat messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from darkroom.domain.events.event import image_id_of_event, without_details
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import MAX_ATTEMPTS, MESSAGE_SECONDS, Answer, Delivery, DeliveryStatus, blank
from darkroom.domain.webhooks.endpoint import (
    MAX_FLIGHTS,
    RUNWAY_PLACES,
    RUNWAYS,
    Endpoint,
    InFlight,
    in_flight,
    runway_of,
)
from darkroom.ports.webhooks import DueDelivery, Place
from tests.simulation.model.processes import Process, Surroundings
from tests.simulation.model.stores import SimulatedQueue, must
from tests.support.fakes.webhooks import FakeDeliveries, FakeEndpoints

ENDED = (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED)

type Clock = Callable[[], Milliseconds]


_REST_BEGINS_WITH, _REST_GROWS_BY = 3_600_000, 30
"""How long an endpoint's first rest lasts at most: so many milliseconds, and so many times what it has failed for. Of
the schedule's waits, with `Retry-After` and the jitter, none is longer."""


@dataclass
class WatchedEndpoints(FakeEndpoints):
    """The endpoints' rows."""

    clock: Clock = lambda: 0

    def change(self, before: Endpoint, after: Endpoint) -> Endpoint:
        old = self.lookup(before.tenant_id, before.endpoint_id)
        new = super().change(before, after)
        if old is not None and new != old:
            self._watch(old, new)
        return new

    def all(self) -> list[Endpoint]:
        """All rows, those of a newer version too."""
        return list(self.rows.values())

    def _watch(self, old: Endpoint, new: Endpoint) -> None:
        now = self.clock()
        flying = Counter(flight.delivery_id for flight in in_flight(new, now=now))
        begun = _claimed(new, now) - _claimed(old, now)
        must(new.version == old.version + 1, "doubled", "a row is written on the version that was decided on")
        must(flying.total() <= MAX_FLIGHTS, "doubled", "at most four deliveries are on their way to an endpoint")
        must(max(flying.values(), default=0) <= 1, "doubled", "a delivery is on its way once")
        if begun:
            must(old.is_enabled and new.is_enabled, "doubled", "nothing is sent to a disabled endpoint")
            must(flying.total() <= old.limit, "doubled", "no more are on their way than may be")
            if old.rests_until is not None:
                of_anybody = old.probe is None and old.rests_until <= now
                called = {flight.delivery_id for flight in in_flight(old, now=now) if flight.claimed_by is None}
                may_try = of_anybody or all(probe_id <= (old.probe or "") for probe_id in begun - called)
                must(may_try, "doubled", "one delivery tries an endpoint that rests: the oldest, and what is called")
        if old.rests_until is None and new.rests_until is not None:
            # Those whose first attempts fail now are tried again soon: five seconds, minutes, half an hour later.
            most = _REST_BEGINS_WITH + _REST_GROWS_BY * (now - (new.failing_since or now))
            must(new.rests_until - now <= most, "stuck", "a rest begins with a short one, whatever failed long before")
        generations = [secret.generation for secret in new.secrets]
        must(generations == sorted(set(generations), reverse=True), "lost", "no secret comes again")


def _claimed(row: Endpoint, now: Milliseconds) -> set[str]:
    """The deliveries on their way, without those that were only called."""
    return {flight.delivery_id for flight in in_flight(row, now=now) if flight.claimed_by is not None}


@dataclass
class WatchedDeliveries(FakeDeliveries):
    """The deliveries' rows, and an index of them that is `lag` milliseconds behind."""

    clock: Clock = lambda: 0
    lag: Milliseconds = 0
    is_recovered: Callable[[str], bool] = lambda endpoint_id: False
    """Whether its owner has ever asked for a recovery of that endpoint."""

    is_resent: Callable[[str], bool] = lambda delivery_id: False
    """Whether its owner has ever asked to send that delivery again."""

    is_deleted: Callable[[str | None], bool] = lambda image_id: False
    """Whether the image was deleted."""

    written: dict[str, dict[str, list[tuple[Milliseconds, Milliseconds | None]]]] = field(default_factory=dict)
    """When each row's `due_at` was written, by endpoint and delivery."""

    def create(self, delivery: Delivery) -> Delivery:
        stored = super().create(delivery)
        if stored is delivery:
            self.index(delivery)
        same = stored.event_id == delivery.event_id and without_details(stored.body) == without_details(delivery.body)
        must(same, "differing", "an event that comes again finds its own delivery")
        return stored

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        old = self.rows.get(before.endpoint_id, {}).get(before.delivery_id)
        new = super().change(before, after)
        if old is not None and new != old:
            self._watch(old, new)
            self.index(new)
        return new

    def take_place(self, endpoint_id: str, flight: InFlight, *, now: Milliseconds, most: int) -> Place:
        place = super().take_place(endpoint_id, flight, now=now, most=most)
        of_endpoint = [runway for (whose, _), runway in self.runways.items() if whose == endpoint_id]
        flying = [
            flight.delivery_id for runway in of_endpoint for flight in runway.values() if flight.until > self.clock()
        ]
        most_there = RUNWAYS * RUNWAY_PLACES + MAX_FLIGHTS
        must(len(flying) <= most_there, "doubled", "no more are on runways than have places, and those that claim")
        must(len(flying) == len(set(flying)), "doubled", "a delivery is on one runway once")
        return place

    def flight_of(self, row: Delivery, claimed_by: str | None = None) -> InFlight | None:
        """The flight of the delivery on its runway, of that worker or of any, unless it was lost."""
        flight = self.runways.get((row.endpoint_id, runway_of(row.delivery_id)), {}).get(row.delivery_id)
        is_there = flight is not None and flight.until > self.clock() and claimed_by in (None, flight.claimed_by)
        return flight if is_there else None

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        seen = self.clock() - self.lag
        shown = {
            delivery_id: next((due_at for at, due_at in reversed(history) if at <= seen), None)
            for delivery_id, history in self.written.get(endpoint_id, {}).items()
        }
        return sorted(DueDelivery(due_at, delivery_id) for delivery_id, due_at in shown.items() if due_at is not None)[
            :limit
        ]

    def postpone(self, endpoint_id: str, due: DueDelivery, until: Milliseconds) -> None:
        super().postpone(endpoint_id, due, until)
        self.index(self.rows[endpoint_id][due.delivery_id])

    def all(self) -> list[Delivery]:
        """All rows, those of removed endpoints too."""
        return [row for rows in self.rows.values() for row in rows.values()]

    def index(self, row: Delivery) -> None:
        """Notes when the row was written, for what the index shows later."""
        of_row = self.written.setdefault(row.endpoint_id, {}).setdefault(row.delivery_id, [])
        of_row.append((self.clock(), row.due_at))

    def _watch(self, old: Delivery, new: Delivery) -> None:
        now, was, now_is = self.clock(), old.status, new.status
        must(new.version == old.version + 1, "doubled", "a row is written on the version that was decided on")
        if new == replace(blank(old), version=new.version):
            is_deleted = self.is_deleted(image_id_of_event(old.event_id))
            must(is_deleted and not old.is_leased(now=now), "lost", "only an image's deletion blanks what nobody holds")
            return
        must((new.body, new.event_id) == (old.body, old.event_id), "differing", "every attempt sends the same")
        is_wanted = self.is_resent(new.delivery_id)
        must(was is not DeliveryStatus.DELIVERED or is_wanted, "doubled", "what is delivered stays so")
        must((now_is in ENDED) == (new.due_at is None), "stuck", "somebody looks again at whatever is unfinished")
        must(new.attempt <= MAX_ATTEMPTS, "doubled", "a round has at most ten attempts")
        is_leased = old.is_leased(now=now)
        if now_is is DeliveryStatus.SENDING:
            must(was is not DeliveryStatus.FAILED and not is_leased, "doubled", "nobody claims what another holds")
            must((old.due_at or 0) <= now, "doubled", "no attempt is made before its time")
            must(new.attempt == old.attempt + 1, "doubled", "attempts are counted one by one")
        elif new.attempt == old.attempt + 1 and was not in ENDED:
            may_end = self.flight_of(old) is not None and not is_leased and (old.due_at or 0) <= now
            must(may_end, "doubled", "only who has its place on a runway ends an attempt that is not in the row")
        elif was is DeliveryStatus.SENDING:
            gives_up = not is_leased and old.attempt == MAX_ATTEMPTS and now_is is DeliveryStatus.FAILED
            must(is_leased or gives_up, "doubled", "only its worker ends an attempt")
            must(new.attempt == old.attempt, "lost", "an attempt that ends stays counted")
        else:
            is_opened = now_is is DeliveryStatus.WAITING and (self.is_recovered(new.endpoint_id) or is_wanted)
            gives_up = now_is is DeliveryStatus.FAILED and old.attempt == MAX_ATTEMPTS
            must(is_opened or gives_up, "doubled", "only its owner opens a delivery again")
            counted = 0 if was in ENDED else old.attempt
            must(gives_up or new.attempt == counted, "lost", "only one that has ended begins another round")
        if now_is is DeliveryStatus.FAILED:
            must(new.attempt == MAX_ATTEMPTS, "lost", "a delivery fails after ten attempts, and not before")


@dataclass
class ModelQueue[Content](SimulatedQueue[Content]):
    """Of DeliveryMessage, it is the `DeliveryQueue` port."""

    def send(self, message: Content, *, delay_seconds: int = 0) -> None:
        must(0 <= delay_seconds <= MESSAGE_SECONDS, "lost", "SQS takes a message with this delay")
        super().send(message, delay_seconds=delay_seconds)


@dataclass
class ModelReceiver:
    """What listens at the URLs: it answers as it is told, and notes who has brought what it has taken."""

    answer: Answer
    surroundings: Surroundings
    taken: dict[tuple[str, str], list[Process]] = field(default_factory=dict)
    """The processes that have sent it successfully, by URL and event id."""

    bodies: dict[tuple[str, str], bytes] = field(default_factory=dict)
    is_resent: Callable[[str], bool] = lambda event_id: False
    """Whether its owner has ever asked to send that event again."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes, sender: Process) -> Answer:
        """A request that arrives, perhaps after its sender has died."""
        key = (url, headers["webhook-id"])
        first = self.bodies.setdefault(key, body)
        is_same = body == first or body == without_details(first.decode()).encode()
        must(is_same, "differing", "every attempt sends the same, or without details once the image is deleted")
        if self.answer.is_success:
            earlier = self.taken.setdefault(key, [])
            # A request that was lost from sight may arrive after the one that was sent because of it.
            excused = (
                self.surroundings.is_landing or all(request.is_struck for request in earlier) or self.is_resent(key[1])
            )
            must(excused, "doubled", "nothing is sent twice unless a fault befell the one that sent it first")
            earlier.append(sender)
        return self.answer


@dataclass
class ModelTenants:
    """Who is suspended."""

    suspended: set[str] = field(default_factory=set)

    def is_suspended(self, tenant_id: str) -> bool:
        """The `IsSuspended` port."""
        return tenant_id in self.suspended
