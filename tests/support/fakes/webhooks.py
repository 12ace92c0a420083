"""Endpoints, deliveries, their queue and their receivers in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from darkroom.domain.events.event import image_id_of_event
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import MOST_ERASED_AT_ONCE
from darkroom.domain.webhooks.delivery import MESSAGE_SECONDS, Answer, Delivery, DeliveryMessage, DeliveryStatus
from darkroom.domain.webhooks.endpoint import RUNWAYS, Endpoint, InFlight, due_shard_of, runway_of
from darkroom.domain.webhooks.endpoint_ids import place_of
from darkroom.ports.kernel import Fenced, UnreadableRow
from darkroom.ports.webhooks import DeliveryKey, DeliveryPage, DueDelivery, DueEndpoint, Place


def _read[Row](row: Row | UnreadableRow) -> Row:
    if isinstance(row, UnreadableRow):
        raise row
    return row


@dataclass
class FakeEndpoints:
    """The `Endpoints` port: rows by tenant and place; those with an id in `unreadable` are a newer version's."""

    rows: dict[tuple[str, int], Endpoint] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)

    def lookup(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
        """The row, whether this version can read it or not."""
        row = self.rows.get((tenant_id, place_of(endpoint_id)))
        return row if row is not None and row.endpoint_id == endpoint_id else None

    def _readable(self, row: Endpoint) -> Endpoint | UnreadableRow:
        if row.endpoint_id not in self.unreadable:
            return row
        return UnreadableRow(
            row.endpoint_id, "invented later", tenant_id=row.tenant_id, due_at=row.due_at, events=row.events
        )

    def get(self, tenant_id: str, endpoint_id: str) -> Endpoint | None:
        row = self.lookup(tenant_id, endpoint_id)
        return None if row is None else _read(self._readable(row))

    def of_tenant(self, tenant_id: str) -> Sequence[Endpoint | UnreadableRow]:
        return [self._readable(row) for (tenant, _), row in sorted(self.rows.items()) if tenant == tenant_id]

    def everything(self) -> Iterator[Endpoint | UnreadableRow]:
        yield from list(map(self._readable, self.rows.values()))

    def create(self, endpoint: Endpoint) -> bool:
        kept = self.rows.setdefault((endpoint.tenant_id, place_of(endpoint.endpoint_id)), endpoint)
        return kept.endpoint_id == endpoint.endpoint_id

    def change(self, before: Endpoint, after: Endpoint) -> Endpoint:
        current = self.get(before.tenant_id, before.endpoint_id)
        written = replace(after, version=before.version + 1)
        if current == written:  # this write's own first attempt, whose answer was lost
            return written
        if current is None or current.version != before.version:
            raise Fenced(current)
        self.rows[before.tenant_id, place_of(before.endpoint_id)] = written
        return written

    def remove(self, tenant_id: str, endpoint_id: str) -> None:
        if self.lookup(tenant_id, endpoint_id) is not None:
            del self.rows[tenant_id, place_of(endpoint_id)]

    def due(self, shard: str, now: Milliseconds, limit: int) -> Iterator[DueEndpoint]:
        listed = [
            DueEndpoint(row.due_at, row.tenant_id, row.endpoint_id)
            for row in self.rows.values()
            if row.due_at is not None and row.due_at <= now and due_shard_of(row.endpoint_id) == shard
        ]
        yield from sorted(listed)[:limit]

    def postpone(self, due: DueEndpoint, until: Milliseconds) -> None:
        row = self.lookup(due.tenant_id, due.endpoint_id)
        if row is not None and row.due_at == due.due_at:
            self.rows[due.tenant_id, place_of(due.endpoint_id)] = replace(row, due_at=until)


@dataclass
class FakeDeliveries:
    """The `Deliveries` port: rows by endpoint and id; those named in `unreadable` are a newer version's. `scans` counts
    how often the whole table was read."""

    rows: dict[str, dict[str, Delivery]] = field(default_factory=dict)
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    runways: dict[tuple[str, int], dict[str, InFlight]] = field(default_factory=dict)
    scans: int = 0

    def _readable(self, row: Delivery) -> Delivery | UnreadableRow:
        if (row.endpoint_id, row.delivery_id) not in self.unreadable:
            return row
        row_id = f"{row.endpoint_id}/{row.delivery_id}"
        return UnreadableRow(row_id, "invented later", tenant_id=row.tenant_id, due_at=row.due_at)

    def get(self, endpoint_id: str, delivery_id: str) -> Delivery | None:
        row = self.rows.get(endpoint_id, {}).get(delivery_id)
        return None if row is None else _read(self._readable(row))

    def create(self, delivery: Delivery) -> Delivery:
        kept = self.rows.setdefault(delivery.endpoint_id, {}).setdefault(delivery.delivery_id, delivery)
        return _read(self._readable(kept))

    def change(self, before: Delivery, after: Delivery) -> Delivery:
        current = self.get(before.endpoint_id, before.delivery_id)
        written = replace(after, version=before.version + 1)
        if current == written:
            return written
        if current is None or current.version != before.version:
            raise Fenced(current)
        self.rows[before.endpoint_id][before.delivery_id] = written
        return written

    def take_place(self, endpoint_id: str, flight: InFlight, *, now: Milliseconds, most: int) -> Place:
        runway = self.runways.setdefault((endpoint_id, runway_of(flight.delivery_id)), {})
        flying = runway.get(flight.delivery_id)
        if flying == flight:  # this write's own first attempt, whose answer was lost
            return "taken"
        lost = [flight.delivery_id for flight in runway.values() if flight.until <= now]
        for delivery_id in lost:
            del runway[delivery_id]
        if flight.delivery_id in runway:
            return "held"
        if len(runway) >= most:
            return "full"
        runway[flight.delivery_id] = flight
        return "retaken" if flight.delivery_id in lost else "taken"

    def free_place(self, endpoint_id: str, flight: InFlight) -> None:
        runway = self.runways.get((endpoint_id, runway_of(flight.delivery_id)), {})
        flying = runway.get(flight.delivery_id)
        if flying is not None and flying.claimed_by == flight.claimed_by:
            del runway[flight.delivery_id]

    def due(self, endpoint_id: str, limit: int) -> Sequence[DueDelivery]:
        rows = self.rows.get(endpoint_id, {}).values()
        listed = [DueDelivery(row.due_at, row.delivery_id) for row in rows if row.due_at is not None]
        return sorted(listed)[:limit]

    def postpone(self, endpoint_id: str, due: DueDelivery, until: Milliseconds) -> None:
        row = self.rows.get(endpoint_id, {}).get(due.delivery_id)
        if row is not None and row.due_at == due.due_at:
            self.rows[endpoint_id][due.delivery_id] = replace(row, due_at=until)

    def page(
        self,
        endpoint_id: str,
        *,
        limit: int,
        after: str | None = None,
        since: Milliseconds = 0,
        statuses: Sequence[DeliveryStatus] = (),
        newest_first: bool = True,
    ) -> DeliveryPage:
        ids = sorted(self.rows.get(endpoint_id, {}), reverse=newest_first)
        if after is not None:
            ids = [delivery_id for delivery_id in ids if (delivery_id < after if newest_first else delivery_id > after)]
        rows = [self.rows[endpoint_id][delivery_id] for delivery_id in ids if delivery_id >= f"{since:014}"]
        wanted = [row for row in rows if not statuses or row.status in statuses]
        more = wanted[limit - 1].delivery_id if len(wanted) >= limit else None
        return DeliveryPage(deliveries=tuple(map(self._readable, wanted[:limit])), next=more)

    def of_image(self, image_id: str) -> Sequence[DeliveryKey]:
        return [
            DeliveryKey(row.endpoint_id, row.delivery_id)
            for rows in self.rows.values()
            for row in rows.values()
            if image_id_of_event(row.event_id) == image_id
        ]

    def remove_all(self, endpoint_id: str) -> int:
        for runway in range(RUNWAYS):
            self.runways.pop((endpoint_id, runway), None)
        return len(self.rows.pop(endpoint_id, {}))

    def endpoints_of(self, tenant_ids: Collection[str]) -> Iterator[tuple[str, str]]:
        assert 1 <= len(tenant_ids) <= MOST_ERASED_AT_ONCE, "DynamoDB takes no other number"
        self.scans += 1
        for endpoint_id, rows in list(self.rows.items()):
            yield from ((tenant, endpoint_id) for tenant in {row.tenant_id for row in rows.values()} & {*tenant_ids})


@dataclass
class FakeDeliveryQueue:
    """The `DeliveryQueue` port: the messages that were sent, each with its delay in seconds, in their order."""

    sent: list[tuple[DeliveryMessage, int]] = field(default_factory=list)

    def send(self, message: DeliveryMessage, *, delay_seconds: int = 0) -> None:
        assert 0 <= delay_seconds <= MESSAGE_SECONDS, "SQS takes no other delay"
        self.sent.append((message, delay_seconds))


@dataclass(frozen=True)
class Request:
    """What a receiver got."""

    url: str
    headers: Mapping[str, str]
    body: bytes


OK = Answer(milliseconds=5, status=200, body="ok")


@dataclass
class FakeReceiver:
    """The `Receiver` port: notes what it gets, and answers as `behaves` says."""

    behaves: Callable[[Request], Answer] = lambda _: OK
    requests: list[Request] = field(default_factory=list)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        request = Request(url, dict(headers), body)
        self.requests.append(request)
        return self.behaves(request)
