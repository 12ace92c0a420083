"""Notes a delivery for each endpoint that wants an event, and has it tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.events.event import (
    PATTERNS,
    ReceivedEvent,
    image_id_of_event,
    read_event,
    without_details,
    without_stored,
)
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import DeliveryStatus, message_for, new_delivery
from darkroom.domain.webhooks.endpoint import LOOK_SECONDS, SECOND, Endpoint, as_seen, at_one_host, matches
from darkroom.operations.webhooks.change_endpoint import watch
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom.ports.webhooks import Deliveries, DeliveryQueue, Endpoints


@dataclass(frozen=True, kw_only=True)
class CreateDeliveriesPorts:
    """What noting deliveries needs."""

    images: Images
    endpoints: Endpoints
    deliveries: Deliveries
    delivery_queue: DeliveryQueue
    clock: Clock


type Known = dict[str, tuple[Milliseconds, list[Endpoint | UnreadableRow]]]
"""The endpoints of tenants, and when they were read: once for the events that a batch has within a second."""


@dataclass(frozen=True, kw_only=True)
class Created:
    """How many deliveries of each event were noted, some perhaps before, and what must come back, by index: each with
    what went wrong. `unreadable` are the rows that were met and left as they are."""

    noted: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, Exception] = field(default_factory=dict)
    unreadable: Collection[UnreadableRow] = ()

    @property
    def deliveries(self) -> int:
        """How many deliveries were noted."""
        return sum(self.noted.values())


def create_deliveries(ports: CreateDeliveriesPorts, bodies: Sequence[str]) -> Created:
    """Notes the deliveries of the events in these messages; one that cannot be read, or cannot be noted now, fails
    alone. An event that comes again finds its deliveries, and makes no others.

    The row of an endpoint may be unreadable: its deliveries are noted all the same, for a version that can read it.
    """
    failures: dict[int, Exception] = {}
    noted: dict[int, int] = {}
    unreadable: dict[str, UnreadableRow] = {}
    known: Known = {}
    for place, body in enumerate(bodies):
        try:
            noted[place] = _create(ports, read_event(body), body, known, unreadable)
        except Exception as error:  # whatever it is, it is this event's, and no reason to fail any other
            failures[place] = error
    return Created(noted=noted, failures=failures, unreadable=unreadable.values())


def _create(
    ports: CreateDeliveriesPorts,
    event: ReceivedEvent,
    body: str,
    known: Known,
    unreadable: dict[str, UnreadableRow],
) -> int:
    read_at, rows = known.get(event.tenant_id, (0, []))
    if ports.clock() - read_at >= SECOND:  # guard: webhook-endpoints-read-once, webhook-endpoints-reread
        read_at, rows = ports.clock(), list(ports.endpoints.of_tenant(event.tenant_id))
        known[event.tenant_id] = read_at, rows
    wanted = [endpoint for endpoint in rows if _wants(endpoint, event)]
    # What is noted before its image is deleted is blanked by the sweeper, which looks until half an hour after that.
    if wanted and _is_of_a_deleted_image(ports, event):  # guard: erasure-late-event-no-details
        body = without_details(body)
    body = without_stored(body)  # guard: quotas-hidden-from-webhooks
    problems: list[Exception] = []
    for endpoint in wanted:
        try:
            _note(ports, endpoint, event, body, rows)
        # guard: unreadable-delivery-already-noted
        except UnreadableRow as row:  # what was noted before, a newer version has written since
            unreadable[row.row_id] = row
        except Exception as error:  # of this endpoint alone: no other misses its event
            problems.append(error)  # guard: isolated-endpoint-delivery
    if problems:
        raise problems[0]  # guard: isolated-delivery-failure-retried
    return len(wanted)


def _is_of_a_deleted_image(ports: CreateDeliveriesPorts, event: ReceivedEvent) -> bool:
    image_id = image_id_of_event(event.event_id)
    if image_id is None:
        return False
    try:
        image = ports.images.get(image_id)
    # guard: erasure-unreadable-image-event
    except UnreadableRow:  # as long as this version cannot read it, nothing of it is removed either
        return False
    return image is not None and image.is_deleted


def _note(
    ports: CreateDeliveriesPorts,
    endpoint: Endpoint | UnreadableRow,
    event: ReceivedEvent,
    body: str,
    rows: list[Endpoint | UnreadableRow],
) -> None:
    """Notes the delivery, and has it tried. Raises UnreadableRow if it is noted, and a newer version has to try it.
    `rows` are all endpoints of the tenant, and get the row as it is then."""
    delivery = ports.deliveries.create(
        new_delivery(
            endpoint_id=_id_of(endpoint),
            tenant_id=event.tenant_id,
            event_id=event.event_id,
            event_type=event.type,
            time=event.time,
            body=body,
            now=ports.clock(),
        )
    )
    if isinstance(endpoint, UnreadableRow):  # the version that can read it finds the delivery at its next look
        raise endpoint
    # Whatever becomes of its message, the sweeper finds it.
    # guard: webhook-new-delivery-watched
    watched = watch(ports.endpoints, endpoint, ports.clock() + LOOK_SECONDS * SECOND, ports.clock)
    if watched is not None:
        rows[rows.index(endpoint)] = endpoint = watched
    # guard: webhook-no-message-while-held
    may_go = endpoint.is_open and as_seen(at_one_host(endpoint, rows)).rests_until is None
    if may_go and delivery.status is DeliveryStatus.WAITING:  # guard: webhook-message-only-if-waiting
        # guard: webhook-message-failure-tolerated
        with bookkeeping("message not sent", delivery_id=delivery.delivery_id):  # then the sweeper sends it
            ports.delivery_queue.send(message_for(delivery))


def _id_of(endpoint: Endpoint | UnreadableRow) -> str:
    return endpoint.row_id if isinstance(endpoint, UnreadableRow) else endpoint.endpoint_id


def _wants(endpoint: Endpoint | UnreadableRow, event: ReceivedEvent) -> bool:
    if event.notify not in (None, _id_of(endpoint)):  # guard: webhook-event-one-endpoint
        return False
    # Perhaps a newer version has other patterns, too: one event too many is better than one that is lost.
    # guard: unreadable-endpoint-unknown-events
    is_unknown = endpoint.events is None or not set(endpoint.events) <= set(PATTERNS)
    return (isinstance(endpoint, UnreadableRow) and is_unknown) or matches(endpoint.events or (), event.type)
