"""Counts how attempts and images end, and adds that to the lane's counts: at once if something is bad."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.bookkeeping import report_failure
from darkroom.domain.images.service_level import MINUTE, NO_OUTCOMES, Outcomes
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import OutcomeCounts
from darkroom.ports.kernel import Clock

REPORT_SECONDS = 10
"""How long good outcomes may wait for the next write: a busy worker writes once in that time, however many it has."""

KEPT_MINUTES = 60
"""How long outcomes are kept that cannot be written now."""


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
