"""The event of a schedule whose job is to announce its times: each run is told once, as it ends."""

from __future__ import annotations

from darkroom.domain.bulk.schedules import RunOutcome, Schedule
from darkroom.domain.events.event import EventType, PublishedEvent
from darkroom.domain.kernel.instants import rfc3339


def event_of_schedule(before: Schedule | None, after: Schedule) -> PublishedEvent | None:
    """What one write of a schedule's row has to tell: one event per run. `before` is None for a new row."""
    if before is None or before.running_for is None or after.running_for is not None:  # guard: bulk-schedules-told-once
        return None
    return due_event_of(after)


def due_event_of(schedule: Schedule) -> PublishedEvent | None:
    """The event of its latest run. Its id has the run's time and no version: a schedule that is added again after it
    was removed begins with the first one."""
    plan, planned_for, at = schedule.plan, schedule.completed_for, schedule.completed_at
    if plan.job != "announce" or plan.target is None or planned_for is None or at is None:
        return None
    if schedule.outcome is not RunOutcome.DONE:
        return None
    return PublishedEvent(
        type=EventType.SCHEDULE_DUE,
        subject=schedule.schedule_id,
        tenant_id=plan.target,
        sequence=planned_for // 1000,
        time=at,
        data={
            "id": schedule.schedule_id,
            "tenant_id": plan.target,
            "name": plan.name,
            "planned_for": rfc3339(planned_for),
        },
    )
