"""The endpoints of a run and the events that come for them: a steady stream, and bursts for some endpoints."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from darkroom.domain.events.event import PublishedEvent
from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.ids import digits_of
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import RANDOM_BYTES, endpoint_id_from
from darkroom.domain.webhooks.row_events import event_of
from repository.openapi.examples import done
from tests.support.virtual.virtual_time import START

ENDPOINTS_OF_TENANTS = (10, 10, *[2] * 10, *[1] * 10)
"""Fifty endpoints of 22 tenants; each event goes to all endpoints of its tenant."""

BURSTING = 10
"""The last so many endpoints, each its tenant's only one, get bursts besides."""

BURST_SHARE = 0.2
"""The part of all deliveries that come in bursts."""

BURST_EVENTS, BURST_SECONDS = (5, 400), 2.0
"""How many events a burst has, small ones as often as large ones, and within how long they come."""

_DONE = done()


def endpoints(chance: random.Random) -> list[Endpoint]:
    """The endpoints, each with a URL of its own, in the order of their tenants."""
    made = []
    for number, count in enumerate(ENDPOINTS_OF_TENANTS):
        for place in range(count):
            endpoint_id = endpoint_id_from(place, chance.randbytes(RANDOM_BYTES))
            made.append(
                Endpoint(
                    tenant_id=f"tenant-{number:02}",
                    endpoint_id=endpoint_id,
                    url=f"https://{endpoint_id.removeprefix('we_')}.example.com/hooks/darkroom",
                    events=("image.*",),
                    created_at=START,
                )
            )
    return made


def events(
    chance: random.Random, known: Sequence[Endpoint], *, deliveries: int, seconds: float, in_bursts: float = BURST_SHARE
) -> list[PublishedEvent]:
    """The events of so many seconds, by their times, that make about so many deliveries to these endpoints."""
    tenants = sorted({endpoint.tenant_id for endpoint in known})
    steady = round(deliveries * (1 - in_bursts) * len(tenants) / len(known))
    made = [event(chance, chance.uniform(0, seconds), chance.choice(tenants)) for _ in range(steady)]
    left = round(deliveries * in_bursts)
    least, most = BURST_EVENTS
    while left > 0:
        count = min(left, round(least * (most / least) ** chance.random()))
        left -= count
        endpoint, begins = chance.choice(known[-BURSTING:]), chance.uniform(0, seconds)
        made += [event(chance, begins + chance.uniform(0, BURST_SECONDS), endpoint.tenant_id) for _ in range(count)]
    return sorted(made, key=lambda event: event.time)


def event(chance: random.Random, seconds: float, tenant_id: str) -> PublishedEvent:
    """An `image.done` with four variants, so many seconds after the beginning."""
    row = event_image(chance, seconds, tenant_id)
    made = event_of(before_its_end(row), row)
    if made is None:
        raise RuntimeError("an image that is done tells nothing")
    return made


def event_image(chance: random.Random, seconds: float, tenant_id: str) -> Image:
    """The row of an image that was done then."""
    return replace(
        _DONE,
        image_id=digits_of(chance.getrandbits(128), 26),
        tenant_id=tenant_id,
        completed_at=START + round(seconds * 1000),
    )


def before_its_end(image: Image) -> Image:
    """The row of such an image as it was until its end was written."""
    return replace(image, status=Status.PROCESSING, variants=())
