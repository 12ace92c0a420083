"""Keeping count of a worker's time, and handing it in now and then: how fast a lane drains is known by it."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.domain.admission import NO_WORK, Work
from darkroom.domain.errors import Retryable
from darkroom.ports import Clock, Timesheets

HAND_IN_MILLISECONDS = 5_000
"""So long must a worker have been busy before it hands in: one write for five seconds of work, however short each
image's was."""


@dataclass
class Tally:
    """What this process has done for each lane since it last handed in."""

    work: dict[str, Work] = field(default_factory=dict)

    def count(self, lane: str, *, is_settled: bool, busy_milliseconds: int) -> None:
        """Counts one delivery; it is settled when its message may go."""
        done = Work(settled=int(is_settled), busy_milliseconds=max(0, busy_milliseconds))
        self.work[lane] = self.work.get(lane, NO_WORK) + done


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What handing in needs from outside."""

    timesheets: Timesheets
    clock: Clock


def hand_in_timesheets(ports: Ports, tally: Tally) -> dict[str, Work]:
    """Hands in what is worth a write, and returns it by lane. What cannot be handed in now is forgotten: it makes the
    rate a little less exact, and costs no image anything."""
    worth = {lane: work for lane, work in tally.work.items() if work.busy_milliseconds >= HAND_IN_MILLISECONDS}
    handed_in = {}
    for lane, work in worth.items():
        del tally.work[lane]
        try:
            ports.timesheets.add(lane, work, ports.clock())
        except Retryable:
            continue
        handed_in[lane] = work
    return handed_in
