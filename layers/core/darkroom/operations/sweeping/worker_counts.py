"""Counts what workers do: how attempts and images end, and how long a lane's work takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from darkroom.bookkeeping import bookkeeping, report_failure
from darkroom.domain.images.load_shedding import NO_WORK, Work
from darkroom.domain.images.service_level import MINUTE, NO_OUTCOMES, Outcomes
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import OutcomeCounts, Throughput
from darkroom.ports.kernel import Clock

REPORT_SECONDS = 10
"""How long good outcomes may wait for the next write: a busy worker writes once in that time, however many it has."""

KEPT_MINUTES = 60
"""How long outcomes are kept that cannot be written now."""

REPORT_MILLISECONDS = 10_000
"""How long a worker must have been busy before it reports: one write per ten seconds of work, however short each
image's was."""


@dataclass
class OutcomeCounter:
    """What this process has counted and not yet written, by lane and minute, and since when."""

    counts: dict[tuple[str, Milliseconds], Outcomes] = field(default_factory=dict)
    since: Milliseconds | None = None

    def count(self, lane: str, outcomes: Outcomes, now: Milliseconds) -> None:
        """Counts what happened just now."""
        if outcomes == NO_OUTCOMES:
            return
        key = lane, now // MINUTE * MINUTE
        self.counts[key] = self.counts.get(key, NO_OUTCOMES) + outcomes
        self.since = now if self.since is None else self.since

    def is_due(self, now: Milliseconds) -> bool:
        """Whether what was counted should be written: there is something bad, or it has waited long enough."""
        is_bad = any(outcomes.failed_attempts or outcomes.bad for outcomes in self.counts.values())
        # guard: outcomes-bad-written-at-once
        return is_bad or (self.since is not None and now - self.since >= REPORT_SECONDS * 1000)


@dataclass(frozen=True, kw_only=True)
class CountOutcomesPorts:
    """What counting needs."""

    outcome_counts: OutcomeCounts
    clock: Clock


def report_outcomes(ports: CountOutcomesPorts, counter: OutcomeCounter) -> None:
    """Writes what was counted, if it is due. What cannot be written now is kept for the next time, for an hour."""
    now = ports.clock()
    if not counter.is_due(now):
        return
    for (lane, minute), outcomes in list(counter.counts.items()):
        if minute >= now - KEPT_MINUTES * MINUTE:
            try:
                ports.outcome_counts.add(lane, minute, outcomes)
            except Exception as failure:  # guard: outcomes-failure-contained
                report_failure("outcomes not reported", failure)
                # guard: outcomes-unwritten-kept
                return  # another write would only wait as long
        del counter.counts[lane, minute]
    if not counter.counts:
        counter.since = None


TENANTS_MILLISECONDS, MOST_TENANTS = 60_000, 50
"""How long a worker must have been busy before it tells for whom, and of how many tenants it does, those that took the
most. That write costs by the size of its item, to which each tenant of a minute adds 30 bytes: of 1,000 tenants at
1,000 workers it is 500 write units a second, half of what DynamoDB takes for one partition
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)."""


@dataclass
class ThroughputCounter:
    """What this process has done for each lane since its last report, and how long for which tenant."""

    work: dict[str, Work] = field(default_factory=dict)
    busy_for: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, lane: str, *, is_settled: bool, busy_milliseconds: int, tenant_id: str | None = None) -> None:
        """Counts one delivery; it is settled when its message may go."""
        done = Work(settled=int(is_settled), busy_milliseconds=max(0, busy_milliseconds))
        self.work[lane] = self.work.get(lane, NO_WORK) + done
        if tenant_id is not None and done.busy_milliseconds:
            self.busy_for.setdefault(lane, Counter())[tenant_id] += done.busy_milliseconds

    def told_of(self, lane: str) -> dict[str, int]:
        """How long the lane was busy for which tenant since this was told last; nothing while it was not for long."""
        busy_for = self.busy_for.get(lane, Counter[str]())
        if busy_for.total() < TENANTS_MILLISECONDS:  # guard: noisy-told-seldom
            return {}
        del self.busy_for[lane]
        return dict(busy_for.most_common(MOST_TENANTS))  # guard: noisy-named-bound


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
        busy_milliseconds = counter.told_of(lane)
        with bookkeeping("throughput not reported"):
            ports.throughput.add(lane, work, ports.clock())
            reported[lane] = work
            if busy_milliseconds:
                ports.throughput.add_of_tenants(lane, busy_milliseconds, ports.clock())
    return reported
