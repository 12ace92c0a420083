"""Webhooks whose workers, sweeps and owners may die, pause or be refused at any call, and what must hold all the same.

The operations are the real ones, over the fakes of their ports. What a function does around them is repeated here: a
worker's message is gone if the delivery was postponed, because its row is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from darkroom.domain.events.event import EventType, PublishedEvent, body_of, image_id_of_event, without_details
from darkroom.domain.images.image import Status
from darkroom.domain.kernel.errors import Rejected, Retryable
from darkroom.domain.webhooks.delivery import Answer, Delivery, DeliveryMessage, DeliveryStatus, blank, event_id_of
from darkroom.domain.webhooks.endpoint import (
    LOOK_SECONDS,
    MAX_FLIGHTS,
    MOST_QUICK,
    QUIET_SECONDS,
    Endpoint,
    as_seen,
    at_one_host,
    in_flight,
    matches,
    signing_secrets,
)
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.domain.webhooks.errors import UnknownWebhook
from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, secret_of, sign
from darkroom.operations.webhooks.create_deliveries import CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.deliver_event import DeliverEventPorts, deliver_event
from darkroom.operations.webhooks.manage_webhooks import (
    Change,
    ManageWebhooksPorts,
    change_webhook,
    ping_webhook,
    recover_webhook,
    remove_webhook,
    resend_delivery,
    rotate_secret,
)
from tests.simulation.model.processes import Call, Surroundings
from tests.simulation.model.simulated import Simulated
from tests.simulation.model.stores import Broken, QueuedMessage, must
from tests.simulation.webhooks.stores import (
    ModelQueue,
    ModelReceiver,
    ModelTenants,
    WatchedDeliveries,
    WatchedEndpoints,
)
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.stores import FakeImages
from tests.support.fakes.webhooks import OK
from tests.support.fakes.world import TENANT, WebhooksWorld, World, event

STORES = ("images", "endpoints", "deliveries", "index", "queue", "receiver", "secret", "tenants", "events")
"""What processes call; the index of due deliveries may fail while its table does not."""

READS = {
    "images": frozenset({"get"}),
    "endpoints": frozenset({"get", "of_tenant", "due"}),
    "deliveries": frozenset({"get", "due", "of_image", "page"}),
    "secret": frozenset({"current"}),
    "tenants": frozenset({"is_suspended"}),
}

DOWN = Answer(milliseconds=5, status=500, body="no")
GONE = Answer(milliseconds=5, status=410)
SLOW = Answer(milliseconds=15_000, error="timeout", was_too_slow=True)
LATE = Answer(milliseconds=5000, status=200, body="ok")
BUSY = Answer(milliseconds=5, status=429, retry_after_seconds=90)
UNREACHED = Answer(milliseconds=5, error="connect: nobody listens", was_unreached=True)
UNHEARD = Answer(milliseconds=15_000, error="the answer never came")

TIMEOUT_SECONDS = 45
"""How long a worker lasts at most."""

VISIBILITY_SECONDS, MAX_RECEIVES = 270, 3

URLS = ("https://hooks.example.com/all/", "https://Hooks.example.com:443/images/", "https://failed.example.com/")
"""The first two are at one host."""

PATTERNS: tuple[tuple[str, ...], ...] = (("*",), ("image.*",), ("image.failed", "webhook.*"))

LATE_SECONDS = QUIET_SECONDS + 3 * LOOK_SECONDS
"""How long a delivery that could be made lies at most, whatever has happened to those who should have announced it: an
hour, and then the sweep that looks, its successor if it died, and the message."""

_MINUTE = 60_000
_ROUNDS, _DRAIN_MILLISECONDS = 600, 6 * 24 * 60 * _MINUTE
"""How long everything may take once nothing fails any more: the retries of one delivery take up to four days."""

_MOST_MESSAGES = 1000
"""The messages that may be visible one after another at one instant."""

_REPEATS = 4
"""How often an owner asks for something; two faults strike two of these at most."""

type What = Literal["disable", "enable", "rotate", "recover", "ping", "resend", "remove"]


@dataclass(eq=False)
class Model(Simulated):
    """The stores, the queues of events and of messages, the paused processes, and what was promised."""

    timeout_seconds = TIMEOUT_SECONDS
    first_read = Call(store="endpoints", number=0)

    now: int = WebhooksWorld().now
    began: int = WebhooksWorld().now
    counts: Counter[str] = field(default_factory=Counter)
    wanted_by: dict[str, list[str]] = field(default_factory=dict)
    """The ids of the endpoints that must get each event, by the event's id."""

    heard: set[str] = field(default_factory=set)
    """The ids of events whose message is gone from the queue of events, because every delivery was noted."""

    recovered: set[str] = field(default_factory=set)
    """The ids of endpoints whose owner has asked for a recovery."""

    resent: set[str] = field(default_factory=set)
    """The ids of deliveries whose owner has asked to send them again."""

    newer: dict[str, Endpoint | Delivery] = field(default_factory=dict)
    """The rows that a newer version has written since, by their ids."""

    def __post_init__(self) -> None:
        self.surroundings = Surroundings(
            reads=READS,
            indexes={"deliveries.due": "index"},
            on_strike=lambda mode: self.counts.update([f"fault: {mode}"]),
        )
        struck = self.surroundings.around
        self.endpoints = WatchedEndpoints(clock=self.clock)
        self.deliveries = WatchedDeliveries(
            clock=self.clock,
            is_recovered=self.recovered.__contains__,
            is_resent=self.resent.__contains__,
            is_deleted=self._is_deleted,
        )
        self.queue = ModelQueue[DeliveryMessage](self.clock, VISIBILITY_SECONDS, MAX_RECEIVES)
        # Whatever is given up there is brought back by an operator.
        self.events = ModelQueue[PublishedEvent](self.clock, VISIBILITY_SECONDS, 1_000_000)
        self.receiver = ModelReceiver(OK, self.surroundings, is_resent=self._is_resent)
        self.tenants, self.secret = ModelTenants(), FakeSecret()
        self._struck_receiver = struck("receiver", self.receiver)
        self._struck_queue, self._struck_events = struck("queue", self.queue), struck("events", self.events)
        self.images = FakeImages()
        self.world = WebhooksWorld(
            images=struck("images", self.images),
            endpoints=struck("endpoints", self.endpoints),
            deliveries=struck("deliveries", self.deliveries),
            delivery_queue=self._struck_queue,
            receiver=self,
            master_secret=struck("secret", self.secret),
            now=self.now,
        )
        vars(self.world)["is_suspended"] = struck("tenants", self.tenants).is_suspended  # so that it may be struck, too
        self.pictures = World(images=self.images, deliveries=self.world.deliveries)
        self._plain = WebhooksWorld(endpoints=self.endpoints, deliveries=self.deliveries, delivery_queue=self.queue)
        self._receipts = 0

    def _is_deleted(self, image_id: str | None) -> bool:
        image = self.images.rows.get(image_id or "")
        return image is not None and image.is_deleted

    def _is_resent(self, event_id: str) -> bool:
        return event_id in map(event_id_of, self.resent)

    # ── What happens ─────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, which: int = 0, *, is_wide: bool = False) -> Endpoint:
        """A new endpoint, at the URL and with the patterns of that number, perhaps one that has done well for long.
        Nothing strikes its making."""
        self._plain.now = self.now
        self.counts["endpoints"] += 1
        made = self._plain.add(f"{URLS[which]}{self._plain.receipts}", events=PATTERNS[which])
        if is_wide:
            made = replace(made, quick=MOST_QUICK, widened_at=self.now, last_success_at=self.now, crowded_at=self.now)
            self.endpoints.rows[TENANT, place_of(made.endpoint_id)] = made
        return made

    def tell(self, number: int, kind: EventType = EventType.DONE, *, copies: int = 1, **stated: Any) -> None:
        """An event is put into its queue so often; whoever wants it now must get it."""
        published = event(number, kind, **stated)
        if published.subject not in self.images.rows:
            row = accepted_image(now=self.now, image_id=published.subject, tenant_id=TENANT)
            self.images.rows[published.subject] = replace(row, status=Status.DONE, waiting_since=None, due_at=None)
        wanting = [row.endpoint_id for row in self.endpoints.all() if matches(row.events, published.type)]
        self.wanted_by.setdefault(published.event_id, wanting)
        for _ in range(copies):
            self.events.send(published)

    def delete(self, number: int) -> None:
        """The image of that number is deleted, and an event tells it."""
        self.pictures.now = self.now
        self.pictures.delete(f"{number:026d}", TENANT)
        self.tell(number, EventType.DELETED, sequence=4)

    def hear(self, *messages: QueuedMessage[PublishedEvent], **how: Any) -> None:
        """The consumer gets some of the events' messages in a batch."""
        batch = [message for message in messages if self.events.receive(message)]

        def body() -> None:
            bodies = [body_of(message.message, source=self.world.source) for message in batch]
            failures = create_deliveries(self.world.ports(CreateDeliveriesPorts), bodies).failures
            for failure in failures.values():
                _raise_a_bug(failure)
            with suppress(Retryable):
                for number, message in enumerate(batch):
                    if number not in failures:
                        self._struck_events.acknowledge(message)
                        self.heard.add(message.message.event_id)

        self.start("hear", body, **how)

    def deliver(self, message: QueuedMessage[DeliveryMessage], **how: Any) -> None:
        """A worker gets a message."""
        if not self.queue.receive(message):
            self.counts["redriven by SQS"] += 1
            return
        self._receipts += 1
        receipt = f"receipt {self._receipts}"

        def body() -> None:
            with suppress(Retryable):  # the message is gone, and the delivery's row is due
                delivered = deliver_event(self.world.ports(DeliverEventPorts), message.message, claimed_by=receipt)
                self.counts[f"delivery: {delivered.outcome}"] += 1
            with suppress(Retryable):
                self._struck_queue.acknowledge(message)

        self.start(receipt, body, **how)

    def _sweep(self) -> None:
        if any(row.due_at is not None and row.due_at <= self.now for row in self.images.rows.values()):
            self.pictures.now = self.now
            removed = self.pictures.sweep()
            must(not removed.errors, "stuck", f"a sweep trips over no image: {removed.errors}")
            self.counts.update({f"image: {outcome}": count for outcome, count in removed.outcomes.items()})
        swept = self.world.sweep()
        must(not swept.errors, "stuck", f"a sweep trips over no row: {swept.errors}")
        for error in swept.unlisted.values():
            _raise_a_bug(error)
        self.counts.update({f"look: {outcome}": count for outcome, count in swept.outcomes.items()})
        self.counts["opened again"] += swept.recovered

    def ask(self, what: What, endpoint_id: str, **how: Any) -> bool:
        """The endpoint's owner asks for something; returns whether it was answered. An owner may repeat it."""
        answered: list[bool] = []

        def body() -> None:
            with suppress(Retryable):
                try:
                    self._ask(what, endpoint_id)
                except UnknownWebhook:
                    gone = self.endpoints.lookup(TENANT, endpoint_id) is None
                    must(gone, "lost", "an endpoint is unknown only after its owner has removed it")
                except Rejected as refusal:
                    codes = ("too_many_secrets", "webhook_disabled")
                    must(refusal.code in codes, "lost", f"nothing is refused as {refusal.code}")
                answered.append(True)

        if what == "recover":
            self.recovered.add(endpoint_id)
        self.start(what, body, **how)
        return bool(answered)

    def insist(self, what: What, endpoint_id: str) -> None:
        """The endpoint's owner asks until there is an answer."""
        must(any(self.ask(what, endpoint_id) for _ in range(_REPEATS)), "stuck", "an owner is answered in the end")

    def _ask(self, what: What, endpoint_id: str) -> None:
        ports = self.world.ports(ManageWebhooksPorts)
        match what:
            case "disable" | "enable":
                change_webhook(ports, TENANT, endpoint_id, Change(is_enabled=what == "enable"))
            case "rotate":
                rotate_secret(ports, TENANT, endpoint_id)
            case "recover":
                recover_webhook(ports, TENANT, endpoint_id, since=0)
            case "ping":
                self.wanted_by[ping_webhook(ports, TENANT, endpoint_id).event_id] = [endpoint_id]
            case "resend":
                for delivery_id in sorted(self.deliveries.rows.get(endpoint_id, {}))[:1]:
                    self.resent.add(delivery_id)
                    resend_delivery(ports, TENANT, endpoint_id, delivery_id)
            case "remove":
                remove_webhook(ports, TENANT, endpoint_id)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """The `Receiver` port: what a worker may send is judged before the request can get lost."""
        sender = self.surroundings.running
        if sender is None:
            raise RuntimeError("only processes send")
        claimed = [row for row in self.deliveries.all() if row.claimed_by == sender.name]
        on_runway = (
            [] if claimed else [row for row in self.deliveries.all() if self.deliveries.flight_of(row, sender.name)]
        )
        rows = claimed or on_runway
        must(len(rows) == 1, "doubled", "only what a worker has claimed is sent")
        row = rows[0]
        endpoint = self.endpoints.lookup(row.tenant_id, row.endpoint_id)
        held = bool(on_runway) != row.is_leased(now=self.now)
        must(held, "doubled", "nothing is sent but by who holds its lease, or its place on a runway")
        # On a runway, the row may lose its details after it was read.
        bodies = (body, without_details(body.decode()).encode()) if on_runway else (body,)
        is_rows = headers[ID_HEADER] == row.event_id and row.body.encode() in bodies
        must(is_rows, "differing", "what is sent is the row's")
        self.counts["sent: from a runway"] += bool(on_runway)
        if endpoint is not None and on_runway:
            self._check_signature(endpoint, headers, body)
        elif endpoint is not None:
            flying = [flight.delivery_id for flight in in_flight(endpoint, now=self.now)]
            must(row.delivery_id in flying, "doubled", "nothing is sent that does not count as on its way")
            self._check_host(endpoint)
            self._check_signature(endpoint, headers, body)
        try:
            answer: Answer = self._struck_receiver.post(url, headers=headers, body=body, sender=sender)
        except Retryable:
            return UNHEARD
        return answer

    def _check_host(self, endpoint: Endpoint) -> None:
        """Counts by what is really sent: a worker may have a flight in a row that it is about to take back."""
        readable = [row for row in self.endpoints.all() if row.endpoint_id not in self.newer]
        flying = {
            (row.endpoint_id, flight.delivery_id): flight.claimed_by
            for row in at_one_host(endpoint, readable)
            for flight in in_flight(row, now=self.now)
        }
        sent = [
            row
            for row in self.deliveries.all()
            # A place that is kept for a delivery which waits has no worker, and neither has the delivery.
            if row.claimed_by is not None and row.claimed_by == flying.get((row.endpoint_id, row.delivery_id))
        ]
        must(len(sent) <= MAX_FLIGHTS, "doubled", "at most four deliveries of a tenant are on their way to a host")
        self.counts["sent: at a host of several"] += len({row.endpoint_id for row in sent}) > 1

    def _check_signature(self, endpoint: Endpoint, headers: Mapping[str, str], body: bytes) -> None:
        known = [
            sign(
                [
                    secret_of(
                        self.secret.current().text.encode(),
                        tenant_id=endpoint.tenant_id,
                        endpoint_id=endpoint.endpoint_id,
                        generation=secret.generation,
                    )
                ],
                message_id=headers[ID_HEADER],
                timestamp=int(headers[TIMESTAMP_HEADER]),
                body=body,
            )
            for secret in signing_secrets(endpoint, now=self.now)
        ]
        signed = headers[SIGNATURE_HEADER].split(" ")
        must(bool(set(known) & set(signed)), "differing", "one of its secrets signs whatever is sent to an endpoint")

    def _tell_time(self) -> None:
        self.world.now = self.now

    def drain(self) -> None:
        for message in self.events.visible():
            self.hear(message)
        for _ in range(_MOST_MESSAGES):
            if not (visible := self.queue.visible()):
                return
            self.deliver(visible[0])
        raise Broken("stuck", "messages call one another again and again, and no time passes")

    def plant(self, **stated: Any) -> None:
        """All deliveries that wait become what they are after days that no history needs to play."""
        for rows in self.deliveries.rows.values():
            for delivery_id, row in rows.items():
                if row.status is DeliveryStatus.WAITING and f"{row.endpoint_id}/{delivery_id}" not in self.newer:
                    rows[delivery_id] = planted = replace(row, version=row.version + 1, **stated)
                    self.deliveries.index(planted)

    def write_as_newer(self, which: int, *, an_endpoint: bool, is_probe: bool = False) -> bool:
        """A newer version, which was there for a moment, has written one of the rows; returns whether there was one. It
        leaves alone what a worker of this version has on its way."""
        probes = {row.probe for row in self.endpoints.all()}
        waiting = [row for row in self.deliveries.all() if row.status is DeliveryStatus.WAITING]
        rows: list[Any] = self.endpoints.all() if an_endpoint else waiting
        rows = [row for row in rows if not is_probe or row.delivery_id in probes]
        if not rows:
            return False
        old = rows[which % len(rows)]
        new = replace(old, version=old.version + 1)
        if isinstance(new, Delivery):
            self.deliveries.rows[new.endpoint_id][new.delivery_id] = new
            self.deliveries.unreadable.add((new.endpoint_id, new.delivery_id))
            self.newer[f"{new.endpoint_id}/{new.delivery_id}"] = new
        else:
            self.endpoints.rows[new.tenant_id, place_of(new.endpoint_id)] = new
            self.endpoints.unreadable.add(new.endpoint_id)
            self.newer[new.endpoint_id] = new
        return True

    def deploy_newer(self) -> None:
        """The newer version is back, and can read what it has written."""
        self.deliveries.unreadable.clear()
        self.endpoints.unreadable.clear()
        self.newer.clear()

    # ── What must hold ───────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        for kept in self.newer.values():
            now_is: Any = (
                self.deliveries.rows.get(kept.endpoint_id, {}).get(kept.delivery_id)
                if isinstance(kept, Delivery)
                else self.endpoints.lookup(kept.tenant_id, kept.endpoint_id)
            )
            is_kept = now_is is None or replace(now_is, due_at=kept.due_at) == kept
            must(is_kept, "lost", "what a newer version has written stays as it is")
        for row in self.deliveries.all():
            endpoint = self.endpoints.lookup(row.tenant_id, row.endpoint_id)
            is_promised = row.event_id in self.heard or (
                row.event_id in self.wanted_by and row.event_id.startswith("ping")
            )
            if endpoint is not None and endpoint.is_enabled and row.due_at is not None and is_promised:
                must(endpoint.due_at is not None, "stuck", "somebody looks at an endpoint that something waits for")
        for event_id in self.heard:
            for endpoint_id in self.wanted_by[event_id]:
                if self.endpoints.lookup(TENANT, endpoint_id) is not None:
                    noted = {row.event_id for row in self.deliveries.rows.get(endpoint_id, {}).values()}
                    must(event_id in noted, "lost", "every event that was heard has its delivery")

    def settle(self) -> None:
        """With every fault over, lets everything be delivered that this version can read, and then the rest by a newer
        one, and checks what must hold then."""
        self.close()
        self._end_processes()
        self.surroundings.land()
        self.surroundings.down.clear()
        self.tenants.suspended.clear()
        self.receiver.answer, self.deliveries.lag = OK, 0
        if self.newer:
            self._enable_all()
            self._come_to_rest()
            self.deploy_newer()
        self._enable_all()
        self._come_to_rest()
        for endpoint_id in {row.endpoint_id for row in self._reachable() if row.status is DeliveryStatus.FAILED}:
            self.counts["recovered at the end"] += 1
            self.insist("recover", endpoint_id)
        self._come_to_rest()
        self._check_at_rest()

    def _enable_all(self) -> None:
        for row in self.endpoints.all():
            if not row.is_enabled and row.endpoint_id not in self.newer:
                self.insist("enable", row.endpoint_id)

    def _reachable(self) -> list[Any]:
        """The deliveries that this version can read, and their endpoints' rows too."""
        return [
            row
            for row in self.deliveries.all()
            if self.endpoints.lookup(row.tenant_id, row.endpoint_id) is not None
            and not {row.endpoint_id, f"{row.endpoint_id}/{row.delivery_id}"} & self.newer.keys()
        ]

    def _come_to_rest(self) -> None:
        began = self.now
        for _ in range(_ROUNDS):
            while self.events.visible() or self.queue.visible():
                self.drain()
            self.sweep()
            self.check()
            self._check_lateness(began)
            if (seconds := self._seconds_to_next_event()) is None:
                break
            self.pass_time(seconds)
        else:
            left = [row for row in self._reachable() if row.due_at is not None]
            raise Broken("stuck", f"no rest after {_ROUNDS} sweeps: {left}, {self.endpoints.rows}")
        must(self.now - began <= _DRAIN_MILLISECONDS, "stuck", "everything is delivered within some days")

    def _seconds_to_next_event(self) -> int | None:
        """The time until a message is visible, or the next sweep that finds anything; None if nothing is left."""
        instants = [message.visible_at for message in self.queue.messages]
        instants += [message.visible_at for message in self.events.messages]
        # A deleted image whose delivery only a newer version can blank is looked at until that version is back.
        waiting = {image_id_of_event(row.event_id) for row in self.newer.values() if isinstance(row, Delivery)}
        rows = [row for row in self.images.rows.values() if row.image_id not in waiting]
        instants += [row.due_at for row in rows if row.due_at is not None]
        recovering = any(row.recovery for row in self.endpoints.all() if row.endpoint_id not in self.newer)
        if recovering or any(row.due_at is not None for row in self._promised()):
            instants += [row.due_at for row in self.endpoints.all() if row.due_at is not None]
            must(bool(instants), "stuck", "somebody looks at what is left")
        if not instants:
            return None
        return 60 * max(1, -(-(min(instants) - self.now) // _MINUTE))

    def _promised(self) -> list[Any]:
        """The deliveries that must be made: not those of a ping whose sender has heard of an error."""
        return [row for row in self._reachable() if row.event_id in self.wanted_by]

    def _seen(self, endpoint: Endpoint) -> Endpoint:
        return as_seen(at_one_host(endpoint, self.endpoints.of_tenant(endpoint.tenant_id)))

    def _check_lateness(self, began: int) -> None:
        for row in self._promised():
            endpoint = self.endpoints.get(row.tenant_id, row.endpoint_id)
            if row.due_at is not None and endpoint is not None and self._seen(endpoint).rests_until is None:
                late = (self.now - max(row.due_at, began)) / 1000
                must(late <= LATE_SECONDS, "stuck", f"a delivery waits for {late} s, and nobody keeps it from going")

    def _check_at_rest(self) -> None:
        for row in self._promised():
            must(row.status is DeliveryStatus.DELIVERED, "stuck", f"whatever can be delivered is delivered: {row}")
        for event_id, endpoint_ids in self.wanted_by.items():
            for endpoint_id in endpoint_ids:
                endpoint = self.endpoints.get(TENANT, endpoint_id)
                if endpoint is not None:
                    taken = self.receiver.taken.get((endpoint.url, event_id))
                    must(bool(taken), "lost", f"every event reaches whoever has asked for it: {event_id}")
                    noted = [
                        delivery
                        for delivery in self.deliveries.rows[endpoint_id].values()
                        if delivery.event_id == event_id
                    ]
                    must(len(noted) == 1, "doubled", "an event has one delivery at an endpoint")
                    self.counts["ended: delivered"] += 1
                    self.counts["sent again"] += len(taken or ()) - 1
                else:
                    self.counts["ended: removed"] += 1
        for row in self.deliveries.all():
            if self._is_deleted(image_id_of_event(row.event_id)):
                must(row == blank(row), "differing", f"no delivery says anything of a deleted image: {row}")
                self.counts["ended: blank"] += 1
        self.pass_time(61)
        for endpoint in self.endpoints.all():
            must(not in_flight(endpoint, now=self.now), "stuck", "nothing counts as on its way for ever")
            must(endpoint.recovery is None, "stuck", "a recovery ends")


def _raise_a_bug(error: Exception) -> None:
    if not isinstance(error, Retryable):
        raise error
