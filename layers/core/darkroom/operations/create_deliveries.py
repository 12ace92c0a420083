"""Notes a delivery for each endpoint that wants an event, and has it tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from darkroom.domain.delivery import DeliveryStatus, message_for, new_delivery
from darkroom.domain.endpoint import LOOK_SECONDS, SECOND, Endpoint, matches
from darkroom.domain.errors import Retryable
from darkroom.domain.event import Heard, read_event, without_stored
from darkroom.operations.change_endpoint import watch
from darkroom.ports import Clock, Deliveries, DeliveryQueue, Endpoints


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What noting deliveries needs."""

    endpoints: Endpoints
    deliveries: Deliveries
    delivery_queue: DeliveryQueue
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Created:
    """How many deliveries of each event were noted, some perhaps before, and what must come back, by index: each with
    what went wrong."""

    noted: Mapping[int, int] = field(default_factory=dict)
    failures: Mapping[int, Exception] = field(default_factory=dict)

    @property
    def deliveries(self) -> int:
        """How many deliveries were noted."""
        return sum(self.noted.values())


def create_deliveries(ports: Ports, bodies: Sequence[str]) -> Created:
    """Notes the deliveries of the events in these messages; one that cannot be read, or cannot be noted now, fails
    alone. An event that comes again finds its deliveries, and makes no others."""
    failures: dict[int, Exception] = {}
    noted: dict[int, int] = {}
    for place, body in enumerate(bodies):
        try:
            noted[place] = _create(ports, read_event(body), body)
        except Exception as error:  # whatever it is, it is this event's, and no reason to fail any other
            failures[place] = error
    return Created(noted=noted, failures=failures)


def _create(ports: Ports, event: Heard, body: str) -> int:
    wanted = [endpoint for endpoint in ports.endpoints.of_tenant(event.tenant_id) if _wants(endpoint, event)]
    for endpoint in wanted:
        delivery = ports.deliveries.create(
            new_delivery(
                endpoint_id=endpoint.endpoint_id,
                tenant_id=event.tenant_id,
                event_id=event.event_id,
                event_type=event.type,
                time=event.time,
                body=without_stored(body),
                now=ports.clock(),
            )
        )
        # Whatever becomes of its message, the sweeper finds it.
        watch(ports.endpoints, endpoint, ports.clock() + LOOK_SECONDS * SECOND, ports.clock)
        may_go = endpoint.is_enabled and endpoint.rests_until is None
        if may_go and delivery.status is DeliveryStatus.WAITING:
            with suppress(Retryable):  # then the sweeper sends it
                ports.delivery_queue.send(message_for(delivery))
    return len(wanted)


def _wants(endpoint: Endpoint, event: Heard) -> bool:
    return event.notify in (None, endpoint.endpoint_id) and matches(endpoint.events, event.type)
