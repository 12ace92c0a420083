"""Images that wait for their time."""

from __future__ import annotations

from darkroom.domain.kernel.message import Message
from darkroom.domain.schedules.hold import HeldMessage
from darkroom.http.kernel.timetables import read_timetable
from darkroom_cli.operator.domain.periods import Period
from darkroom_cli.operator.operations.schedules.list_scheduled import ScheduledSelection
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg

NOW = 1_795_251_600_123
DAY = 24 * 3600


def entry(
    number: int, seconds: float, *, schedule: int = 0, tenant_id: str = "default", lane: str = "slow"
) -> HeldMessage:
    message = Message(image_id=f"{number:026d}", tenant_id=tenant_id, lane=lane, run=1, schedule=schedule)
    return HeldMessage(message=message, process_at=NOW + round(seconds * 1000))


def scheduled(world: World, **times: str) -> str:
    return world.submit(jpeg(32, 24), timetable=read_timetable(**(times or {"delay": "P2D"}))).image.image_id


def soon(world: World) -> ScheduledSelection:
    """Images that wait for the next three days."""
    return ScheduledSelection(
        period=Period(starts_at=world.now, ends_at=world.now + 3 * DAY * 1000), lanes=("fast", "slow")
    )
