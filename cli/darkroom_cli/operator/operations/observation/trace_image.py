"""Finds everything that is known of one image: its row, the log lines about it, its deliveries to webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import UnknownImage
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.webhooks.delivery import Delivery, delivery_id_of
from darkroom.domain.webhooks.row_events import events_of
from darkroom.ports.images import Images
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom.ports.webhooks import Deliveries, Endpoints
from darkroom_cli.operator.domain.trace import API, ROUTES, LogLine, Trace, requests_in, trace_of
from darkroom_cli.operator.ports import LogLines

READERS = frozenset({"read_image", "manage_webhooks", "archive_dead_letters", "serve_page"})
"""The functions that tell nothing of an image's life: a client that waits for an image asks for it again and again."""

ANSWERERS = frozenset({API, "authorize_request", *ROUTES})
"""The sources of lines that have a request's id but no image's."""

MARGIN_MILLISECONDS = 120_000
"""How far around what the row dates lines are looked for: clocks differ, and lines are written afterwards."""

AFTERWARDS_MILLISECONDS = 600_000
"""How long after an image's end lines about it are looked for: its events and the first attempts of its deliveries."""


@dataclass(frozen=True, kw_only=True)
class TraceImagePorts:
    """What tracing needs."""

    images: Images
    endpoints: Endpoints
    deliveries: Deliveries
    log_lines: LogLines
    clock: Clock


def trace_image(
    ports: TraceImagePorts, image_id: str, *, on_read: Callable[[str, int], None] = lambda *_: None
) -> Trace:
    """Finds the image's life, in logs between its creation and some minutes after its end, and in its deliveries as
    long as they last; `on_read` hears from which source how many lines were found so far.

    Raises UnknownImage, UnreadableRow, and Retryable if AWS cannot be asked.
    """
    image = ports.images.get(image_id)
    if image is None:
        raise UnknownImage(image_id)
    deliveries = list(_deliveries_of(ports, image))
    lines: list[LogLine] = []

    def read(source: str, text: str, since: Milliseconds, until: Milliseconds) -> None:
        for line in ports.log_lines.containing(source, text, since=since, until=until):
            is_about_it = line.fields.get("image_id") == image_id or line.fields.get("correlation_id") == text
            if is_about_it and line not in lines:  # guard: trace-line-matched-by-fields
                lines.append(line)
                on_read(source, len(lines))

    since, until = image.created_at - MARGIN_MILLISECONDS, _end_of(image, deliveries, ports.clock())
    for source in ports.log_lines.sources:
        if source not in READERS and source != API:  # guard: trace-reader-logs-excluded
            on_read(source, len(lines))
            read(source, image_id, since, until)
    for request in requests_in(image, lines):
        near = [line.at for line in lines if line.fields.get("correlation_id") == request and line.source in ROUTES]
        at = min(near, default=image.created_at)
        for source in ANSWERERS.intersection(ports.log_lines.sources):
            on_read(source, len(lines))
            read(source, request, at - MARGIN_MILLISECONDS, at + MARGIN_MILLISECONDS)
    lines.sort(key=lambda line: line.at)
    return trace_of(image, lines, deliveries, now=ports.clock())


def _deliveries_of(ports: TraceImagePorts, image: Image) -> Iterator[Delivery]:
    """The rows of its events' deliveries to the endpoints that there are now; unreadable ones are left out."""
    ids = [delivery_id_of(event.event_id, event.time) for event in events_of(image)]
    for endpoint in ports.endpoints.of_tenant(image.tenant_id):
        endpoint_id = endpoint.row_id if isinstance(endpoint, UnreadableRow) else endpoint.endpoint_id
        for delivery_id in ids:
            try:
                delivery = ports.deliveries.get(endpoint_id, delivery_id)
            except UnreadableRow:
                continue
            if delivery is not None:
                yield delivery


def _end_of(image: Image, deliveries: list[Delivery], now: Milliseconds) -> Milliseconds:
    """Until when lines about it may have been written."""
    # guard: trace-open-delivery-until-now
    if image.work is not None or any(delivery.due_at is not None for delivery in deliveries):
        return now + MARGIN_MILLISECONDS
    ends = [image.ended_at, image.deleted_at, *(delivery.ended_at for delivery in deliveries)]
    return min(max(filter(None, ends), default=now) + AFTERWARDS_MILLISECONDS, now + MARGIN_MILLISECONDS)
