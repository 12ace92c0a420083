"""Every minute: checks each endpoint that is due, counts dead letters of events, and removes what followers of events
left behind."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.sweeping.due import ENDPOINTS, behind
from darkroom.domain.webhooks.first_attempts import burn_of
from darkroom.operations.events.count_dead_letters import count_dead_letters
from darkroom.operations.webhooks.sweep_due_endpoints import sweep_due_endpoints
from darkroom.telemetry import emit_unless_zero, entry_point, report_sweep, report_unmeasured
from darkroom.wiring.kernel.runtime import within
from darkroom.wiring.webhooks.sweep_due_endpoints import wire

ports, dead_letters, followers = wire()

STOP_BEFORE_DEADLINE_MILLISECONDS = 10_000
"""One endpoint takes at most a few seconds, retries included: a sweep ends cleanly, and the next one continues."""

COUNTING_SECONDS = 10.0
"""The most that counting may take of the 50 seconds."""

KEPT_FOR_THE_REPORT_SECONDS = 4.0
"""How long before its deadline a sweep makes no further call: what it did and what it did not is always told."""


@entry_point(has_metrics=False)
def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    with within(COUNTING_SECONDS):
        counted, uncounted = count_dead_letters(dead_letters, ports.at_once)
    emit_unless_zero("EventDeadLetters", MetricUnit.Count, sum(counted.values()))
    report_unmeasured(uncounted)
    with within(context.get_remaining_time_in_millis() / 1000 - KEPT_FOR_THE_REPORT_SECONDS):
        sweep = sweep_due_endpoints(
            ports, out_of_time=lambda: context.get_remaining_time_in_millis() < STOP_BEFORE_DEADLINE_MILLISECONDS
        )
        # guard: events-follower-list-outage
        with bookkeeping("queues of followers not removed"):  # the next sweep comes within a minute
            followers.remove_left_behind(ports.clock())
    emit_unless_zero("PausedSeconds", MetricUnit.Seconds, sweep.paused_seconds)
    emit_unless_zero("FirstAttemptBurn", MetricUnit.NoUnit, sweep.untaken * burn_of(is_bad=True))
    late_seconds = {ENDPOINTS: sweep.late_seconds}
    summary = report_sweep(sweep, of="endpoint", late_seconds=late_seconds, behind=behind(late_seconds))
    missed = [*(f"endpoints {shard}" for shard in sweep.unlisted), *uncounted]
    if missed:  # guard: endpoint-sweep-missed-fails
        # Fails only after all other endpoints were checked: an alarm counts the invocations that fail.
        raise Retryable(f"not all that is due could be looked at: {', '.join(missed)}")
    return summary
