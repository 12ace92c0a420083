"""The events of any row, an image's, a webhook's, a batch's or a schedule's: what the world is told is derived from two
versions of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from darkroom.domain.bulk.batch_events import ended_event_of, event_of_batch
from darkroom.domain.bulk.batches import Batch
from darkroom.domain.bulk.schedule_events import due_event_of, event_of_schedule
from darkroom.domain.bulk.schedules import Schedule
from darkroom.domain.events.event import EventType, PublishedEvent, event_of_image, events_of_image
from darkroom.domain.images.image import Image
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.paths import deliveries_path, webhook_path
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint

type Row = Image | Endpoint | Batch | Schedule
"""A row whose writes the world may hear of."""


def event_of(before: Row | None, after: Row | None, edge: EdgeUrls = NO_EDGE) -> PublishedEvent | None:
    """What one write of a row has to tell: at most one event, most writes none. `before` is None for a new row, `after`
    for one that is gone; `edge` is where public images are."""
    match before, after:
        case Image() | None, Image():
            return event_of_image(before, after, edge)
        case Endpoint(), Endpoint():
            return _event_of_endpoint(before, after)
        case Batch() | None, Batch():
            return event_of_batch(before, after)
        case Schedule() | None, Schedule():
            return event_of_schedule(before, after)
        case _:
            return None


def events_of(row: Row, edge: EdgeUrls = NO_EDGE) -> Iterator[PublishedEvent]:
    """All events that the row still tells, oldest first, with the ids that they were first published with: an
    endpoint's of the time since it was enabled or recovered, an image's as `events_of_image` says, a schedule's of its
    latest run."""
    match row:
        case Image():
            yield from events_of_image(row, edge)
        case Endpoint():
            yield from (event for event in (_failing(row), _disabled(row)) if event is not None)
        case Batch():
            yield from (event for event in (ended_event_of(row),) if event is not None)
        case Schedule():
            yield from (event for event in (due_event_of(row),) if event is not None)


def is_notice(event: PublishedEvent) -> bool:
    """Whether an operator is told: an endpoint is sent nothing any more, and its owner has not asked for that."""
    by = event.data.get("disabled_by")
    return event.type is EventType.WEBHOOK_DISABLED and by != DisabledBy.CLIENT  # guard: webhook-notice-not-for-owner


def _event_of_endpoint(before: Endpoint, after: Endpoint) -> PublishedEvent | None:
    if before.is_enabled and not after.is_enabled:  # guard: events-endpoint-disabling-once
        return _disabled(after)
    if before.warned_at is None and after.warned_at is not None:  # guard: events-endpoint-warning-once
        return _failing(after)
    return None


def _failing(endpoint: Endpoint) -> PublishedEvent | None:
    return _of_endpoint(endpoint, EventType.WEBHOOK_FAILING, version=endpoint.warned_version, time=endpoint.warned_at)


def _disabled(endpoint: Endpoint) -> PublishedEvent | None:
    return _of_endpoint(
        endpoint,
        EventType.WEBHOOK_DISABLED,
        version=endpoint.disabled_version,
        time=endpoint.disabled_at,
        details={"disabled_by": endpoint.disabled_by},
    )


def _of_endpoint(
    endpoint: Endpoint,
    kind: EventType,
    *,
    version: int | None,
    time: Milliseconds | None,
    details: Mapping[str, Any] | None = None,
) -> PublishedEvent | None:
    if version is None or time is None:
        return None
    return PublishedEvent(
        type=kind,
        subject=endpoint.endpoint_id,
        tenant_id=endpoint.tenant_id,
        sequence=version,
        time=time,
        # Its URL may hold a secret of its owner, and every webhook of the tenant may get this.
        data={
            "id": endpoint.endpoint_id,
            "tenant_id": endpoint.tenant_id,
            "failing_since": None if endpoint.failing_since is None else rfc3339(endpoint.failing_since),
            **(details or {}),
            "links": {
                "self": webhook_path(endpoint.endpoint_id),
                "deliveries": deliveries_path(endpoint.endpoint_id),
            },
        },
    )
