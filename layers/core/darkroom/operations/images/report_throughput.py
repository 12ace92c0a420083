"""Counts a worker's time and reports it now and then, so that each lane's drain rate is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.load_shedding import NO_WORK, Work
from darkroom.ports.images import Throughput
from darkroom.ports.kernel import Clock

REPORT_MILLISECONDS = 10_000
"""How long a worker must have been busy before it reports: one write per ten seconds of work, however short each
image's was."""


@dataclass
class ThroughputCounter:
    """What this process has done for each lane since its last report."""

    work: dict[str, Work] = field(default_factory=dict)

    def count(self, lane: str, *, is_settled: bool, busy_milliseconds: int) -> None:
        """Counts one delivery; it is settled when its message may go."""
        done = Work(settled=int(is_settled), busy_milliseconds=max(0, busy_milliseconds))
        self.work[lane] = self.work.get(lane, NO_WORK) + done


@dataclass(frozen=True, kw_only=True)
class ReportThroughputPorts:
    """What reporting needs."""

    throughput: Throughput
    clock: Clock


def report_throughput(ports: ReportThroughputPorts, counter: ThroughputCounter) -> dict[str, Work]:
    """Reports every lane's counts that are worth a write, and returns them by lane. Counts that cannot be reported now
    are dropped: the rate becomes a little less exact, and no image is affected."""
    worth = {lane: work for lane, work in counter.work.items() if work.busy_milliseconds >= REPORT_MILLISECONDS}
    reported = {}
    for lane, work in worth.items():
        del counter.work[lane]
        with bookkeeping("throughput not reported"):
            ports.throughput.add(lane, work, ports.clock())
            reported[lane] = work
    return reported
