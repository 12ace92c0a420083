"""Every minute: checks each image and each endpoint that is due, repairs what was lost on the way, measures what waits,
and removes what followers of events left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.images.service_level import FAST_BURN, SLOW_BURN
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.sweeping.due import ENDPOINTS, behind
from darkroom.operations.images.count_outcomes import OutcomeCounter, report_outcomes
from darkroom.operations.images.measure_lanes import Measures, measure_lanes
from darkroom.operations.sweeping.sweep_due_images import Sweep, sweep_due_images
from darkroom.operations.webhooks.sweep_due_endpoints import EndpointsSweep, sweep_due_endpoints
from darkroom.telemetry import entry_point, logger, metrics, report_unreadable
from darkroom.wiring.kernel.runtime import at_once, within
from darkroom.wiring.sweeping.sweep_due_images import wire, wire_followers
from darkroom.wiring.webhooks.sweep_due_endpoints import wire as wire_endpoints

(ports, measuring, outcome_ports), endpoints_ports, followers = wire(), wire_endpoints(), wire_followers()
outcomes = OutcomeCounter()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""One image takes at most a few seconds, retries included: a sweep ends cleanly, and the next one continues."""

MEASURING_SECONDS = 15.0
"""The most that measuring may take of the 50 seconds: if it is slow, there is all the more to sweep."""

KEPT_FOR_THE_REPORT_SECONDS = 4.0
"""How long before its deadline a sweep makes no further call: what it did and what it did not is always told."""


def emit_metrics(measures: Measures) -> None:
    """Emits what the alarms watch, of the lane or queue that is worst, and only if it is not zero: an idle stack pays
    for none of it. That the sweeper itself is silent shows in the count of sweeps."""
    for lane, seconds in measures.oldest_seconds.items():
        _emit("OldestUnfinishedSeconds", MetricUnit.Seconds, seconds, lane=lane)
    service = ports.service
    shares_of_service_level = [seconds / service[lane].sla_seconds for lane, seconds in measures.oldest_seconds.items()]
    shares_of_patience = [seconds / service[lane].stuck_seconds for lane, seconds in measures.oldest_seconds.items()]
    # guard: alarms-slow-burn-warns
    shares_of_service_level += [burn / SLOW_BURN for burn in measures.slow_burn.values()]
    shares_of_patience += [burn / FAST_BURN for burn in measures.fast_burn.values()]  # guard: alarms-fast-burn-pages
    _emit("LateRatio", MetricUnit.NoUnit, max(shares_of_service_level, default=0))
    _emit("StuckRatio", MetricUnit.NoUnit, max(shares_of_patience, default=0))
    _emit("AttemptsFailing", MetricUnit.Percent, max(measures.failing_percent.values(), default=0))
    _emit("DeadLetters", MetricUnit.Count, sum(measures.dead.values()))
    _emit("EventDeadLetters", MetricUnit.Count, sum(measures.dead_of_events.values()))
    _emit("FetchesUntaken", MetricUnit.Count, measures.untaken_fetches)
    for what, error in measures.problems.items():
        if isinstance(error, Retryable):
            logger.warning("it cannot be measured now", extra={"what": what, "cause": str(error)})
        else:
            logger.error("it cannot be measured", exc_info=error, extra={"what": what})


def tell_behind(late_seconds: Mapping[str, float]) -> None:
    """Emits how late each kind is of what this sweep could not do, and what the alarm watches: the kind that is worst
    by what is allowed."""
    for kind, seconds in late_seconds.items():
        _emit("SweepLateSeconds", MetricUnit.Seconds, seconds, kind=kind)
    _emit("SweepBehind", MetricUnit.NoUnit, behind(late_seconds))


def _emit(name: str, unit: MetricUnit, value: float, **dimension: str) -> None:
    if value == 0:  # guard: metrics-zero-not-emitted
        return
    with single_metric(name, unit, value, default_dimensions={"service": logger.service, **dimension}):
        pass


def count(sweep: Sweep) -> None:
    """Counts the images that the sweep gave up or let expire, for their lanes' service levels."""
    for lane, ended in sweep.ended.items():
        outcomes.count(lane, ended, ports.clock())
        _emit("ImagesGivenUp", MetricUnit.Count, ended.given_up)
        _emit("ImagesEnded", MetricUnit.Count, ended.ended, lane=lane)
        _emit("ImagesBad", MetricUnit.Count, ended.bad, lane=lane)
    report_outcomes(outcome_ports, outcomes)


@entry_point()
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    with within(MEASURING_SECONDS):
        measures = measure_lanes(measuring)
    emit_metrics(measures)  # first: a sweep that has much to do must not keep the alarms waiting

    def out_of_time() -> bool:
        return context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS

    with within(context.get_remaining_time_in_millis() / 1000 - KEPT_FOR_THE_REPORT_SECONDS):
        swept: Sequence[Any] = at_once(
            [
                partial(sweep_due_images, ports, out_of_time=out_of_time),
                partial(sweep_due_endpoints, endpoints_ports, out_of_time=out_of_time),
            ]
        )
        sweep, looked_at = cast("tuple[Sweep, EndpointsSweep]", swept)
        count(sweep)
        # guard: events-follower-list-outage
        with bookkeeping("queues of followers not removed"):  # the next sweep comes within a minute
            followers.remove_left_behind(ports.clock())
    tell_behind(sweep.late_seconds | {ENDPOINTS: looked_at.late_seconds})
    report_unreadable([*sweep.unreadable, *looked_at.unreadable])
    for image_id, error in sweep.errors.items():
        logger.error("an image could not be looked at", exc_info=error, extra={"image_id": image_id})
    for endpoint_id, error in looked_at.errors.items():
        logger.error("an endpoint could not be looked at", exc_info=error, extra={"endpoint_id": endpoint_id})
    summary = {
        "outcomes": dict(sweep.outcomes),
        "endpoints": dict(looked_at.outcomes),
        "complete": sweep.complete and looked_at.complete,
        "late_seconds": sweep.late_seconds,
    }
    logger.info("swept", extra=summary)
    unlisted = sweep.unlisted | {f"endpoints {shard}": error for shard, error in looked_at.unlisted.items()}
    for shard, error in unlisted.items():
        logger.error("what is due could not be listed", exc_info=error, extra={"shard": shard})
    # An alarm fires where this is missing or zero: nothing is repaired then, or the other alarms may be blind. A sweep
    # that ran out of time has worked all the while.
    # guard: sweeps-completed-measured
    metrics.add_metric("SweepsCompleted", MetricUnit.Count, int(not unlisted and not measures.problems))
    if unlisted:  # guard: sweep-unlisted-shard-fails
        # Fails only after all other images were checked.
        raise Retryable(f"what is due could not be listed in the shards {', '.join(unlisted)}")
    return summary
