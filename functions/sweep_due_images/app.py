"""Every minute: checks each image that is due, repairs what was lost on the way, and measures what waits."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.domain.images.service_level import FAST_BURN, SLOW_BURN
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.sweeping.due import behind
from darkroom.operations.sweeping.measure_lanes import Measures, measure_lanes
from darkroom.operations.sweeping.sweep_due_images import Sweep, sweep_due_images
from darkroom.operations.sweeping.worker_counts import OutcomeCounter, report_outcomes
from darkroom.telemetry import emit_unless_zero, entry_point, report_sweep, report_unmeasured
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.sweeping.sweep_due_images import wire

ports, measuring, outcome_ports = wire()
outcomes = OutcomeCounter()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""One image takes at most a few seconds, retries included: a sweep ends cleanly, and the next one continues."""

MEASURING_SECONDS = 15.0
"""The most that measuring may take of the 50 seconds: if it is slow, there is all the more to sweep."""

KEPT_FOR_THE_REPORT_SECONDS = 4.0
"""How long before its deadline a sweep makes no further call: what it did and what it did not is always told."""


def emit_metrics(measures: Measures) -> None:
    """Emits what the alarms watch, of the lane or queue that is worst, and only if it is not zero: an idle stack pays
    for none of it. That the sweeper itself is silent shows in Lambda's count of its errors."""
    for lane, seconds in measures.oldest_seconds.items():
        emit_unless_zero("OldestUnfinishedSeconds", MetricUnit.Seconds, seconds, lane=lane)
    service = ports.service
    shares_of_service_level = [seconds / service[lane].sla_seconds for lane, seconds in measures.oldest_seconds.items()]
    shares_of_patience = [seconds / service[lane].stuck_seconds for lane, seconds in measures.oldest_seconds.items()]
    # guard: alarms-slow-burn-warns
    shares_of_service_level += [burn / SLOW_BURN for burn in measures.slow_burn.values()]
    shares_of_patience += [burn / FAST_BURN for burn in measures.fast_burn.values()]  # guard: alarms-fast-burn-pages
    # Who takes much more of a lane than others is about to make them late. It warns by the same alarm.
    noisy = [1.0 for tenants in measures.noisy.values() if tenants]
    shares_of_service_level += noisy  # guard: alarms-noisy-tenant-warns
    emit_unless_zero("LateRatio", MetricUnit.NoUnit, max(shares_of_service_level, default=0))
    emit_unless_zero("StuckRatio", MetricUnit.NoUnit, max(shares_of_patience, default=0))
    emit_unless_zero("AttemptsFailing", MetricUnit.Percent, max(measures.failing_percent.values(), default=0))
    emit_unless_zero("DeadLetters", MetricUnit.Count, sum(measures.dead.values()))
    emit_unless_zero("FetchesUntaken", MetricUnit.Count, measures.untaken_fetches)
    emit_unless_zero("PausedSeconds", MetricUnit.Seconds, measures.paused_seconds)
    report_unmeasured(measures.problems)


def count(sweep: Sweep) -> None:
    """Counts the images that the sweep gave up or let expire, for their lanes' service levels."""
    for lane, ended in sweep.ended.items():
        outcomes.count(lane, ended, ports.clock())
        emit_unless_zero("ImagesGivenUp", MetricUnit.Count, ended.given_up)
        emit_unless_zero("ImagesEnded", MetricUnit.Count, ended.ended, lane=lane)
        emit_unless_zero("ImagesBad", MetricUnit.Count, ended.bad, lane=lane)
    report_outcomes(outcome_ports, outcomes)


@entry_point(has_metrics=False)
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    with within(MEASURING_SECONDS):
        measures = measure_lanes(measuring)
    emit_metrics(measures)  # first: a sweep that has much to do must not keep the alarms waiting

    def out_of_time() -> bool:
        return context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS

    with within(context.get_remaining_time_in_millis() / 1000 - KEPT_FOR_THE_REPORT_SECONDS):
        sweep = sweep_due_images(ports, out_of_time=out_of_time)
        count(sweep)
    summary = report_sweep(sweep, of="image", late_seconds=sweep.late_seconds, behind=behind(sweep.late_seconds))
    missed = [*(f"images {shard}" for shard in sweep.unlisted), *measures.problems]
    if missed:  # guard: sweep-missed-fails
        # Fails only after all other images were checked. An alarm fires if every sweep fails: nothing is repaired then,
        # or the other alarms may be blind. A sweep that ran out of time has worked all the while, and is none of them.
        raise Retryable(f"not all that is due could be looked at or measured: {', '.join(missed)}")
    return summary
