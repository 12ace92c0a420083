"""An observation as a JSON document: a stable shape; docs/command-line.md says what programs may rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.domain.images.load_shedding import high_water_mark
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import Lane
from darkroom.domain.pauses.pauses import Pause, subject_of
from darkroom.domain.tenants.shares import TenantShare
from darkroom_cli.operator.domain.budgets import WEBHOOKS
from darkroom_cli.operator.domain.observation import ERROR_MINUTES, Alarm, Counted, Working, causes_of, condition_since
from darkroom_cli.operator.operations.images.list_retrying import Defect
from darkroom_cli.operator.operations.observation.observe_stack import DeadLetterCause, Observation, Unhealthy

_RANKED = 10
"""Of how many tenants of each lane it tells, those that took the most."""

VERSION = 1
"""Changes when a field changes its meaning or goes; new fields may come at any time."""


def document(
    observation: Observation, problems: Mapping[str, str], *, stack: str, region: str, options: str
) -> dict[str, Any]:
    """The whole observation. What could not be read is null, and `problems` says why; `options` are those with which
    other commands reach the same stack."""
    unfinished, alarms, measured = observation.unfinished.value, observation.alarms.value, observation.measured.value
    return {
        "version": VERSION,
        "stack": stack,
        "region": region,
        "parts": sorted(observation.parts),
        "observed_at": rfc3339(observation.observed_at),
        "problems": dict(problems),
        "alarms": None if alarms is None else [_alarm(alarm, alarms, options) for alarm in alarms],
        "lanes": [_lane(observation, lane) for lane in observation.service.values()],
        "error_budget": _error_budget(observation),
        "accept_p99_milliseconds": None if measured is None else measured.accept_p99_milliseconds,
        "receives_p99": None if measured is None else measured.receives_p99,
        "working": None if unfinished is None else [_working(worker) for worker in unfinished.working],
        "retrying": None if unfinished is None else [_defect(defect, observation) for defect in unfinished.defects],
        "looked_at": None if unfinished is None else {"images": unfinished.looked_at, "is_all": unfinished.is_all},
        "unreadable_rows": None if unfinished is None else unfinished.unreadable,
        "dead_letters": _dead_letters(observation),
        "function_errors": None
        if observation.function_errors.value is None
        else {"minutes": ERROR_MINUTES, "functions": dict(observation.function_errors.value)},
        "scheduled": _scheduled(observation),
        "sweeper_late_seconds": None if observation.sweeper.value is None else dict(observation.sweeper.value),
        "webhooks": _webhooks(observation),
        "pauses": None if observation.pauses.value is None else list(map(_pause, observation.pauses.value)),
        "queues": None
        if observation.queues.value is None
        else {
            name: {"waiting": count.waiting, "in_flight": count.in_flight, "delayed": count.delayed}
            for name, count in observation.queues.value.items()
        },
    }


def _alarm(alarm: Alarm, on: Sequence[Alarm], options: str) -> dict[str, Any]:
    return {
        "name": alarm.name,
        "severity": "critical" if alarm.is_critical else "warning",
        "since": rfc3339(alarm.since),
        "caused_by": [cause.name for cause in causes_of(alarm, on)],
        "description": alarm.description,
        "effect": alarm.effect,
        "command": None if alarm.command is None else f"{alarm.command}{options}",
        "section": alarm.section,
        "reason": alarm.reason,
    }


def _lane(observation: Observation, lane: Lane) -> dict[str, Any]:
    count = (observation.queues.value or {}).get(lane.name)
    drain = (observation.drains.value or {}).get(lane.name)
    waits = None if observation.unfinished.value is None else observation.unfinished.value.lanes[lane.name]
    flow = None if observation.measured.value is None else observation.measured.value.flows.get(lane.name)
    recent = (observation.outcomes.value or {}).get(lane.name)
    budget = (observation.budgets.value or {}).get(lane.name)
    since = None if waits is None else waits.oldest_since
    paused = next(
        (pause for pause in observation.pauses.value or () if pause.subject == subject_of("lane", lane.name)), None
    )
    return {
        "lane": lane.name,
        "sla_seconds": lane.sla_seconds,
        "workers": lane.concurrency,
        "backlog": None if count is None else count.backlog,
        "high_water_mark": None if drain is None else round(high_water_mark(lane, drain)),
        "drain_per_second": drain,
        "clears_in_seconds": None if count is None or drain is None else round(count.backlog / drain, 1),
        "unfinished": None if waits is None else _counted(waits.images),
        "late": None if waits is None else _counted(waits.late),
        "oldest_since": rfc3339(since),
        "oldest_seconds": None if waits is None else _seconds(since, observation.observed_at) or 0.0,
        "paused_since": None if paused is None else rfc3339(paused.since),
        "minute": None
        if flow is None
        else {"begins_at": rfc3339(flow.minute_at), "in": flow.incoming, "out": flow.outgoing},
        "error_budget": {
            "ended": None if budget is None else budget.ended,
            "bad": None if budget is None else budget.bad,
            "left_percent": None if budget is None else _rounded(budget.left_percent),
            "fast_burn": None if recent is None else _rounded(recent.fast_burn),
            "slow_burn": None if recent is None else _rounded(recent.slow_burn),
        },
        "failing_percent": None if recent is None else _rounded(recent.failing_percent),
        "tenants": None
        if observation.tenants.value is None
        else [_tenant(share) for share in observation.tenants.value[lane.name][:_RANKED]],
    }


def _tenant(share: TenantShare) -> dict[str, Any]:
    return {
        "tenant": share.tenant_id,
        "busy_seconds": round(share.busy_milliseconds / 1000, 1),
        "work_percent": _rounded(100 * share.of_work),
        "capacity_percent": _rounded(100 * share.of_capacity),
        "times_median": _rounded(share.times_median),
        "is_noisy": share.is_noisy,
    }


def _error_budget(observation: Observation) -> dict[str, Any] | None:
    """That of the lane whose budget burns the fastest."""
    recent = observation.outcomes.value
    if recent is None:
        return None
    fast, slow = ([getattr(each, name) for each in recent.values()] for name in ("fast_burn", "slow_burn"))
    return {"fast_burn": _rounded(max(fast) or None), "slow_burn": _rounded(max(slow) or None)}


def _working(worker: Working) -> dict[str, Any]:
    return {
        "id": worker.image_id,
        "tenant": worker.tenant_id,
        "lane": worker.lane,
        "attempt": worker.attempt,
        "request_id": worker.request_id,
        "since": rfc3339(worker.since),
        "lease_until": rfc3339(worker.lease_until),
        "lease_lapsed": worker.is_lost,
        "returns_by": rfc3339(worker.returns_by),
    }


def _defect(defect: Defect, observation: Observation) -> dict[str, Any]:
    next_at = min((image.not_before for image in defect.images if image.not_before is not None), default=None)
    return {
        "fingerprint": defect.fingerprint,
        "error_type": defect.cause.error_type,
        "message": defect.cause.message,
        "frame": None if defect.frame is None else str(defect.frame),
        "attempts": defect.attempts,
        "next_attempt_at": rfc3339(next_at),
        "images": [image.image_id for image in defect.images],
    }


def _dead_letters(observation: Observation) -> dict[str, Any] | None:
    dead = observation.dead_letters.value
    if dead is None:
        return None
    return {
        "queues": dict(dead.depths),
        "sampled": dead.sampled,
        "causes": [_cause(cause) for cause in dead.causes],
        "coming": _counted(dead.coming),
    }


def _cause(cause: DeadLetterCause) -> dict[str, Any]:
    return {
        "queue": cause.queue,
        "cause": cause.cause,
        "fingerprint": cause.fingerprint,
        "frame": None if cause.frame is None else str(cause.frame),
        "message": cause.message,
        "dead_letters": cause.dead_letters,
        "first_image": cause.image_id,
    }


def _scheduled(observation: Observation) -> dict[str, Any] | None:
    scheduled, unfinished = observation.scheduled.value, observation.unfinished.value
    measured = observation.measured.value
    if scheduled is None:
        return None
    return {
        "images": _counted(scheduled.images),
        "within_hour": _counted(scheduled.within_hour),
        "within_day": _counted(scheduled.within_day),
        "next_at": rfc3339(scheduled.next_at),
        "overdue": None if unfinished is None else unfinished.overdue.images,
        "latest_overdue_seconds": None if unfinished is None else round(unfinished.overdue.latest_seconds, 1),
        "release_lateness_seconds": None if measured is None else measured.release_lateness_seconds,
    }


def _webhooks(observation: Observation) -> dict[str, Any] | None:
    webhooks = observation.webhooks.value
    if webhooks is None:
        return None
    return {
        "endpoints": _counted(webhooks.endpoints),
        "conditions": {condition.value: number for condition, number in webhooks.conditions.items()},
        "unhealthy": [_unhealthy(webhook) for webhook in webhooks.unhealthy],
        "first_attempts": _first_attempts(observation),
    }


def _first_attempts(observation: Observation) -> dict[str, Any]:
    budget, measured = (observation.budgets.value or {}).get(WEBHOOKS), observation.measured.value
    return {
        "counted": None if budget is None else budget.ended,
        "bad": None if budget is None else budget.bad,
        "left_percent": None if budget is None else _rounded(budget.left_percent),
        "repeated": None if budget is None else budget.repeated,
        "p50_seconds": None if measured is None else _rounded(measured.first_attempt_p50_seconds),
        "p99_seconds": None if measured is None else _rounded(measured.first_attempt_p99_seconds),
    }


def _pause(pause: Pause) -> dict[str, Any]:
    return {"kind": pause.kind, "name": pause.name, "since": rfc3339(pause.since), "reason": pause.reason or None}


def _unhealthy(webhook: Unhealthy) -> dict[str, Any]:
    endpoint = webhook.endpoint
    return {
        "id": endpoint.endpoint_id,
        "tenant": endpoint.tenant_id,
        "url": endpoint.url,
        "condition": webhook.condition.value,
        "since": rfc3339(condition_since(endpoint)),
        "rests_until": rfc3339(endpoint.rests_until),
        "disabled_by": None if endpoint.disabled_by is None else endpoint.disabled_by.value,
        "deliveries": _counted(webhook.deliveries),
    }


def _counted(counted: Counted) -> dict[str, Any]:
    return {"number": counted.number, "is_all": counted.is_all}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def _seconds(since: Milliseconds | None, now: Milliseconds) -> float | None:
    return None if since is None else round(max(0, now - since) / 1000, 1)
