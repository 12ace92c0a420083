"""Webhooks in memory: the real operations over the fakes, with a clock that only tests move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, cast

from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from darkroom.domain.webhooks.delivery import Delivery, DeliveryMessage
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.operations.webhooks import manage_webhooks
from darkroom.operations.webhooks.create_deliveries import Created, CreateDeliveriesPorts, create_deliveries
from darkroom.operations.webhooks.deliver_event import Delivered, DeliverEventPorts, deliver_event
from darkroom.operations.webhooks.sweep_due_endpoints import EndpointsSweep, SweepDueEndpointsPorts, sweep_due_endpoints
from tests.support.fakes.at_once import one_after_another
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.stores import FakeImages
from tests.support.fakes.webhooks import FakeDeliveries, FakeDeliveryQueue, FakeEndpoints, FakeReceiver

TENANT = "acme"


def event(number: int = 1, kind: EventType = EventType.DONE, **stated: Any) -> PublishedEvent:
    """An event of the tenant, of its image of that number."""
    image_id = f"{number:026d}"
    usual: dict[str, Any] = {
        "type": kind,
        "subject": image_id,
        "tenant_id": TENANT,
        "lane": "fast",
        "preset": "standard",
        "sequence": 3,
        "time": 1_795_251_600_000 + number,
        "data": {"id": image_id, "tenant_id": stated.get("tenant_id", TENANT)}
        | ({} if kind is EventType.DELETED else {"variants": [{"name": "hero"}]}),
    }
    return PublishedEvent(**usual | stated)


@dataclass
class WebhooksWorld:
    """The stores, a clock in milliseconds, and the operations wired to them. A test may replace any store."""

    images: Any = field(default_factory=FakeImages)
    endpoints: Any = field(default_factory=FakeEndpoints)
    deliveries: Any = field(default_factory=FakeDeliveries)
    delivery_queue: Any = field(default_factory=FakeDeliveryQueue)
    receiver: Any = field(default_factory=FakeReceiver)
    master_secret: Any = field(default_factory=FakeSecret)
    suspended: set[str] = field(default_factory=set)
    check_url: Callable[[str], None] = lambda _: None
    source: str = "/darkroom/test"
    random: Callable[[], float] = lambda: 0.5
    now: int = 1_795_251_700_000
    receipts: int = 0

    def clock(self) -> int:
        return self.now

    at_once = staticmethod(one_after_another)

    def jitter(self) -> float:
        return self.random()

    def is_suspended(self, tenant_id: str) -> bool:
        return tenant_id in self.suspended

    def randomness(self, size: int) -> bytes:
        self.receipts += 1
        return self.receipts.to_bytes(size)

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def ports[P](self, kind: type[P]) -> P:
        """The ports of an operation: each is the attribute of the same name."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(cast(Any, kind))})

    def manage(self) -> manage_webhooks.ManageWebhooksPorts:
        """The ports of what a tenant may do with its endpoints."""
        return self.ports(manage_webhooks.ManageWebhooksPorts)

    def add(self, url: str = "https://hooks.example.com/", *, events: tuple[str, ...] = ("*",)) -> Endpoint:
        """A new endpoint of the tenant."""
        return manage_webhooks.create_webhook(self.manage(), TENANT, url=url, events=events, description=None)[0]

    def tell(self, *events: PublishedEvent) -> Created:
        """What the consumer does when it hears of these events."""
        bodies = [body_of(event, source=self.source) for event in events]
        return create_deliveries(self.ports(CreateDeliveriesPorts), bodies)

    def deliver(self, message: DeliveryMessage) -> Delivered:
        self.receipts += 1
        return deliver_event(self.ports(DeliverEventPorts), message, claimed_by=f"receipt {self.receipts}")

    def sweep(self) -> EndpointsSweep:
        return sweep_due_endpoints(self.ports(SweepDueEndpointsPorts), out_of_time=lambda: False)

    def take(self) -> list[DeliveryMessage]:
        """The messages that were sent without a delay since, which are then gone from the queue."""
        sent, self.delivery_queue.sent = self.delivery_queue.sent, []
        self.delivery_queue.sent = [(message, delay) for message, delay in sent if delay > 0]
        return [message for message, delay in sent if delay == 0]

    def run(self) -> list[str]:
        """Delivers until the queue has nothing that shows now; returns the outcomes."""
        outcomes: list[str] = []
        while messages := self.take():
            outcomes += [self.deliver(message).outcome for message in messages]
        return outcomes

    def send(self, *events: PublishedEvent) -> list[str]:
        """Hears of these events and delivers them; returns the outcomes."""
        self.tell(*events)
        return self.run()

    def message_of(self, event: PublishedEvent) -> DeliveryMessage:
        """Hears of an event for one endpoint; returns its message, which is then gone from the queue."""
        self.tell(event)
        (message,) = self.take()
        return message

    def run_for(self, seconds: float) -> list[str]:
        """Lets time pass: delayed messages show at their time, and the sweeper looks every minute."""
        outcomes: list[str] = []
        delayed: list[tuple[int, DeliveryMessage]] = []
        ends_at = self.now + round(seconds * 1000)
        next_sweep = self.now + 60_000
        while True:
            for message, delay in self.delivery_queue.sent:
                delayed.append((self.now + delay * 1000, message))
            self.delivery_queue.sent = []
            delayed.sort(key=lambda message: message[0])
            at = min([next_sweep, *(message[0] for message in delayed[:1])])
            if at > ends_at:
                self.now = ends_at
                self.delivery_queue.sent = [
                    (message, max(1, (shows_at - ends_at) // 1000)) for shows_at, message in delayed
                ]
                return outcomes
            self.now = max(self.now, at)
            if at == next_sweep:
                next_sweep += 60_000
                self.sweep()
            while delayed and delayed[0][0] <= self.now:
                outcomes.append(self.deliver(delayed.pop(0)[1]).outcome)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Its current row."""
        row: Endpoint = self.endpoints.get(endpoint.tenant_id, endpoint.endpoint_id)
        assert row is not None
        return row

    def rows(self, endpoint: Endpoint) -> list[Delivery]:
        """Its deliveries, the oldest event first."""
        page = self.deliveries.page(endpoint.endpoint_id, limit=100_000, newest_first=False)
        return list(page.deliveries)
