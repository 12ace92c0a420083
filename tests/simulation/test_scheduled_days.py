"""A day's images rescheduled by an operator whose command dies at every call, and is run again: each moved once, and
none without a message for its new time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.errors import Retryable
from darkroom.http.kernel.timetables import read_timetable
from darkroom_cli.operator.domain.periods import Period
from darkroom_cli.operator.operations.schedules.list_scheduled import (
    ListScheduledPorts,
    ScheduledSelection,
    ids_in_order,
)
from darkroom_cli.operator.operations.schedules.reschedule_scheduled import (
    LOOK_SECONDS,
    RescheduleScheduledPorts,
    reschedule_scheduled,
)
from tests.support.fakes import World
from tests.support.fakes.audit import audited_action_of
from tests.support.fakes.pictures import jpeg
from tests.support.faults import Faults, Mode, ProcessDied, at

MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")
PHOTO = jpeg(32, 24)
DAY = 24 * 3_600_000
DELAYS = ("PT5M", "PT2H", "PT20H")
"""In its lane, on the first ring, on the same ring next to it."""


class _Day:
    """Three images that wait for one day, and the operator who reschedules them to two days later."""

    def __init__(self) -> None:
        self.world = World()
        self.ids = [self.world.submit(PHOTO, timetable=read_timetable(delay=delay)).image.image_id for delay in DELAYS]
        self.times = [self.world.row(image_id).process_at for image_id in self.ids]
        now = self.world.now
        self.day = ScheduledSelection(period=Period(starts_at=now, ends_at=now + DAY), lanes=("slow",))

    def move(self, faults: Faults, *, index_is_behind: bool = False) -> None:
        world = self.world
        images = faults.around("images", world.images)
        ports = RescheduleScheduledPorts(
            audited=audited_action_of(),
            images=images,
            lanes=faults.around("lanes", world.lanes),
            hold_queue=faults.around("hold queue", world.hold_queue),
            clock=world.clock,
        )
        list_ports = ListScheduledPorts(images=images, clock=world.clock)
        for image_id in self.ids if index_is_behind else ids_in_order(list_ports, self.day):
            reschedule_scheduled(ports, image_id, self.day, lambda at: at + 2 * DAY)

    def rows(self) -> Iterator[Image]:
        return (self.world.row(image_id) for image_id in self.ids)


def calls() -> list[str]:
    faults = Faults()
    _Day().move(faults)
    return faults.calls


@pytest.mark.guards("day-dead-mover-due-soon", "day-move-selection-rechecked")
@pytest.mark.parametrize("mode", MODES)
def test_a_move_that_is_interrupted_anywhere_and_typed_again_reschedules_each_image_once(mode: Mode) -> None:
    assert len(calls()) > 10
    for number in range(len(calls())):
        day = _Day()
        faults = Faults(at(number, mode))
        with suppress(ProcessDied, Retryable):
            day.move(faults)
        assert faults.struck
        day.move(Faults())
        day.move(Faults(), index_is_behind=True)
        for row, time in zip(day.rows(), day.times, strict=True):
            assert (row.schedule, row.process_at) == (1, (time or 0) + 2 * DAY), (mode, number)
        day.world.advance(LOOK_SECONDS)
        day.world.sweep()
        held = {(message.image_id, message.schedule) for message in day.world.hold_queue.held}
        assert {(image_id, 1) for image_id in day.ids} <= held, (mode, number, faults.calls[number])
        assert day.world.sweep().outcomes == {}, "and then it is looked at no sooner than others"
