"""Events as their topic publishes them."""

from __future__ import annotations

from darkroom.domain.events.event import EventType, PublishedEvent, body_of
from tests.unit.cli.fake_api import image_id_of


def event(number: int = 1, kind: EventType = EventType.DONE) -> PublishedEvent:
    """What happened to one image."""
    return PublishedEvent(
        type=kind,
        subject=image_id_of(str(number)),
        tenant_id="acme",
        lane="fast",
        preset="thumbs",
        sequence=3,
        time=1_795_424_402_417,
        data={"id": image_id_of(str(number)), "tenant_id": "acme", "preset": "Müllers \N{CAMERA}"},
    )


def text_of(event: PublishedEvent) -> str:
    return body_of(event, source="/darkroom/prod")
