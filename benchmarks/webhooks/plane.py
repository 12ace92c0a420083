"""Webhooks by their own operations: the functions, their queues and the receivers, in virtual time."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchmarks.webhooks.queue import Done, Message, Queue
from benchmarks.webhooks.receivers import Behaviour
from benchmarks.webhooks.stores import UNIT_BYTES, Rows, reads, writes, written
from darkroom.domain.events.event import PublishedEvent, body_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.webhooks.delivery import (
    Answer,
    DeliveryMessage,
    DeliveryStatus,
    event_id_of,
    read_delivery_message,
)
from darkroom.domain.webhooks.endpoint import (
    MAX_FLIGHTS,
    RAMP_SUCCESSES,
    RUNWAY_PLACES,
    RUNWAYS,
    Endpoint,
    InFlight,
    matches,
    runway_of,
)
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.domain.webhooks.webhook_signature import ID_HEADER
from darkroom.operations.webhooks.create_deliveries import CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.deliver_event import DeliverEventPorts, deliver_event
from darkroom.operations.webhooks.manage_webhooks import Change, ManageWebhooksPorts, change_webhook
from darkroom.operations.webhooks.sweep_due_endpoints import SweepDueEndpointsPorts, sweep_due_endpoints
from tests.support.fakes.at_once import one_after_another
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.stores import FakeImages
from tests.support.fakes.webhooks import FakeEndpoints
from tests.support.virtual.cloud import Call, Cloud, Plan, Remote, always
from tests.support.virtual.latencies import OF_WEBHOOKS
from tests.support.virtual.virtual_time import START, VirtualTime

SOURCE = "/darkroom/benchmark"

CREATE_CONCURRENCY, DELIVER_CONCURRENCY = 10, 40
"""The most batches at a time, as in the template: `OtherConcurrency` and `WebhookConcurrency`."""

CREATE_VISIBILITY_SECONDS, DELIVER_VISIBILITY_SECONDS = 200, 270
"""The queues' visibility timeouts, as in the template."""

SWEEP_SECONDS = 60

FLIGHT_BYTES = 130
"""A flight on a runway: the delivery's id, the receipt, a time and their names."""

type Delivered = tuple[str, str]
"""A delivery by its endpoint's id and its event's."""


@dataclass
class Seen:
    """When a receiver took a delivery for the first time, in milliseconds, and how many times it did."""

    delivered_at: float | None = None
    times: int = 0


class Plane:
    """Endpoints with their receivers, by endpoint id in `behaves`, and what becomes of the events that come.

    `broken` counts what must never be, `outcomes` what messages and looks of the sweeper came to.
    """

    def __init__(self, endpoints: Sequence[Endpoint], behaves: Mapping[str, Behaviour], *, seed: int) -> None:
        self.time = VirtualTime()
        self.behaves = dict(behaves)
        self.outcomes: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.wanted: dict[Delivered, float] = {}
        self.seen: defaultdict[Delivered, Seen] = defaultdict(Seen)
        self.endpoints = FakeEndpoints(
            {(endpoint.tenant_id, place_of(endpoint.endpoint_id)): endpoint for endpoint in endpoints}
        )
        self.deliveries = Rows(time=self.time)
        self._seed = seed
        self._endpoint_ids = {endpoint.url: endpoint.endpoint_id for endpoint in endpoints}
        self._in_flight: Counter[str] = Counter()
        self.most_in_flight: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._filled_since: dict[str, int] = {}
        self._receipts = count()
        chance = random.Random(f"{seed} {len(endpoints)}")
        self.aws = Cloud(self.time, OF_WEBHOOKS, chance)
        self.create_queue = Queue(
            self.time,
            concurrency=CREATE_CONCURRENCY,
            visibility_seconds=CREATE_VISIBILITY_SECONDS,
            handle=self._create,
        )
        self.deliver_queue = Queue(
            self.time,
            concurrency=DELIVER_CONCURRENCY,
            visibility_seconds=DELIVER_VISIBILITY_SECONDS,
            handle=self._deliver,
        )
        # Ten rows are one read unit, and two if many deliveries are on their way.
        units: dict[str, Plan] = {"get": reads(1), "of_tenant": reads(1), "change": writes, "due": reads(0.5)}
        endpoints_by_aws = Remote(self.aws, "endpoints", self.endpoints, units)
        units = {"get": reads(1), "create": writes, "change": writes, "due": reads(0.5)}
        places: dict[str, Plan] = {"take_place": self._units_of_place, "free_place": self._units_of_place}
        deliveries_by_aws = Remote(self.aws, "deliveries", self.deliveries, units | places)
        units = {"send": always(Call(service="SQS", billed={"SQS requests": 1}))}
        queue_by_aws = Remote(self.aws, "queue", self, units)
        self._create_ports = CreateDeliveriesPorts(
            images=Remote(self.aws, "images", FakeImages(), {"get": reads(1)}),
            endpoints=endpoints_by_aws,
            deliveries=deliveries_by_aws,
            delivery_queue=queue_by_aws,
            clock=self.time.now,
        )
        self._deliver_ports = DeliverEventPorts(
            endpoints=endpoints_by_aws,
            deliveries=deliveries_by_aws,
            delivery_queue=queue_by_aws,
            receiver=self,
            master_secret=FakeSecret(),
            is_suspended=lambda _: False,
            clock=self.time.now,
            jitter=chance.random,
        )
        self._sweep_ports = SweepDueEndpointsPorts(
            endpoints=endpoints_by_aws,
            deliveries=deliveries_by_aws,
            delivery_queue=queue_by_aws,
            is_suspended=lambda _: False,
            clock=self.time.now,
            at_once=one_after_another,
        )
        # What an owner does here takes no time.
        self._manage_ports = ManageWebhooksPorts(
            endpoints=self.endpoints,
            deliveries=self.deliveries,
            delivery_queue=self,
            master_secret=FakeSecret(),
            check_url=lambda _: None,
            source=SOURCE,
            clock=self.time.now,
            randomness=chance.randbytes,
        )
        self.time.after(chance.uniform(0, SWEEP_SECONDS * 1000), self._sweep)

    # ── What happens, and what came of it ────────────────────────────────────────────────────────────────────────────

    def come(self, events: Sequence[PublishedEvent]) -> None:
        """Each event comes to the consumer's queue at its time. What is before that, the stream and the topic, takes as
        long for all."""
        of_tenant: defaultdict[str, list[Endpoint]] = defaultdict(list)
        for endpoint in self.endpoints.rows.values():
            of_tenant[endpoint.tenant_id].append(endpoint)
        for event in events:
            at = float(event.time - START)
            for endpoint in of_tenant[event.tenant_id]:
                if matches(endpoint.events, event.type):
                    self.wanted[endpoint.endpoint_id, event.event_id] = at
            body = body_of(event, source=SOURCE)
            self.time.at(at, lambda body=body, group=event.tenant_id: self.create_queue.send(body, group=group))  # type: ignore[misc]

    def run(self, until_seconds: float) -> None:
        """Lets time pass until then."""
        self.time.pause(until_seconds * 1000 - self.time.elapsed())

    def run_until_delivered(self, endpoint_ids: Container[str], *, most_seconds: float) -> float:
        """Lets time pass until all deliveries to these endpoints have arrived, at most so long; returns how many
        seconds that took."""
        began = self.time.elapsed()
        left = [key for key in self.wanted if key[0] in endpoint_ids]
        while left := [key for key in left if self.seen[key].delivered_at is None]:
            if self.time.elapsed() - began > most_seconds * 1000:
                self.broken["never delivered"] += len(left)
                break
            self.time.pause(1000)
        return (self.time.elapsed() - began) / 1000

    def change(self, endpoint: Endpoint, *, is_enabled: bool) -> None:
        """What its owner does."""
        change_webhook(self._manage_ports, endpoint.tenant_id, endpoint.endpoint_id, Change(is_enabled=is_enabled))
        if is_enabled:
            self._filled_since[endpoint.endpoint_id] = 0

    def latencies(self, endpoint_ids: Container[str]) -> list[float]:
        """From the event's time to the receiver's answer, in milliseconds, of all that were delivered to these."""
        return sorted(
            seen.delivered_at - self.wanted[key]
            for key, seen in self.seen.items()
            if key[0] in endpoint_ids and seen.delivered_at is not None
        )

    def close(self) -> None:
        """Counts what was lost: neither delivered, nor to be tried again, nor noted as failed in its last attempt.
        Nothing can happen after that."""
        rows = {
            (endpoint_id, row.event_id): row
            for endpoint_id, rows in self.deliveries.rows.items()
            for row in rows.values()
        }
        for key in self.wanted:
            is_kept = key in rows and (rows[key].due_at is not None or rows[key].status is DeliveryStatus.FAILED)
            self.broken["lost"] += not is_kept and self.seen[key].delivered_at is None
        self.time.close()

    # ── The functions ────────────────────────────────────────────────────────────────────────────────────────────────

    def _create(self, batch: Sequence[Message], done: Done) -> None:
        def work() -> None:
            created = create_deliveries(self._create_ports, [message.body for message in batch])
            for failure in created.failures.values():
                self.outcomes[f"noting: {failure}"] += 1
            done([batch[place] for place in created.failures])

        self.time.start(work)

    def _deliver(self, batch: Sequence[Message], done: Done) -> None:
        """All of a batch at the same time; the batch takes as long as its slowest."""
        left = len(batch)

        def work(message: Message) -> None:
            nonlocal left
            try:
                delivered = deliver_event(
                    self._deliver_ports,
                    read_delivery_message(message.body),
                    claimed_by=f"receipt-{next(self._receipts):056}",
                )
                self.outcomes[delivered.outcome] += 1
            except Retryable as error:  # the row is due: the function lets the message go
                self.outcomes[f"delivering: {error}"] += 1
            left -= 1
            if not left:
                done([])

        for message in batch:
            self.time.start(lambda message=message: work(message))  # type: ignore[misc]

    def _sweep(self) -> None:
        def work() -> None:
            sweep = sweep_due_endpoints(self._sweep_ports, out_of_time=lambda: False)
            self.outcomes.update({f"look: {outcome}": times for outcome, times in sweep.outcomes.items()})
            for error in (*sweep.errors.values(), *sweep.unlisted.values()):
                raise error

        self.time.start(work)
        self.time.after(SWEEP_SECONDS * 1000, self._sweep)

    # ── The ports that are the plane itself ──────────────────────────────────────────────────────────────────────────

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        """As `DeliveryQueue`."""
        self.deliver_queue.send(message.model_dump_json(), group=message.endpoint_id, delay_seconds=delay_seconds)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `Receiver`."""
        key = self._endpoint_ids[url], headers[ID_HEADER]
        endpoint_id, event_id = key
        is_counted = self._take_off(endpoint_id, event_id)
        chance = random.Random(f"{self._seed} {endpoint_id} {event_id}")
        milliseconds, answer = self.behaves[endpoint_id](chance)
        self.time.pause(milliseconds)
        self._in_flight[endpoint_id] -= 1
        self._counted[endpoint_id] -= is_counted
        seen = self.seen[key]
        if answer.is_success:
            if endpoint_id in self._filled_since:
                self._filled_since[endpoint_id] += 1
            seen.times += 1
            seen.delivered_at = self.time.elapsed() if seen.delivered_at is None else seen.delivered_at
        return answer

    def _units_of_place(self, endpoint_id: str, flight: InFlight, **_: Any) -> Sequence[Call]:
        runway = self.deliveries.runways.get((endpoint_id, runway_of(flight.delivery_id)), {})
        return written(-(-FLIGHT_BYTES * (1 + len(runway)) // UNIT_BYTES))

    def _take_off(self, endpoint_id: str, event_id: str) -> bool:
        """Whether the endpoint's row counts it: otherwise it is on a runway, and the endpoint is wide, or was when the
        delivery took its place there."""
        is_counted = not any(
            event_id_of(delivery_id) == event_id and flight.claimed_by is not None
            for number in range(RUNWAYS)
            for delivery_id, flight in self.deliveries.runways.get((endpoint_id, number), {}).items()
        )
        self._in_flight[endpoint_id] += 1
        self._counted[endpoint_id] += is_counted
        self.most_in_flight[endpoint_id] = max(self.most_in_flight[endpoint_id], self._in_flight[endpoint_id])
        most = MAX_FLIGHTS + RUNWAYS * RUNWAY_PLACES
        if self._counted[endpoint_id] > MAX_FLIGHTS or self._in_flight[endpoint_id] > most:
            self.broken["more on their way to an endpoint than may be"] += 1
        successes = self._filled_since.get(endpoint_id)  # since its owner has enabled it
        may_be = 1 + (successes or 0) // RAMP_SUCCESSES
        if successes is not None and may_be < MAX_FLIGHTS and self._in_flight[endpoint_id] > may_be:
            self.broken["more on their way to an endpoint than may be after a recovery"] += 1
        return is_counted
