"""The jobs that operators may schedule. `Job` says what each promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from darkroom.domain.bulk.backfills import BackfillState, decided
from darkroom.domain.bulk.schedules import Schedule
from darkroom.domain.kernel.errors import Rejected
from darkroom.operations.bulk.run_schedule import Job
from darkroom.operations.bulk.settle_batch import Settled
from darkroom.ports.bulk import Backfills
from darkroom.ports.kernel import Clock, Fenced


def jobs_of(backfills: Backfills, clock: Clock) -> Mapping[str, Job]:
    """The jobs by their names."""
    return {
        "announce": _announce,
        "pause_backfill": partial(_decide, backfills, clock, BackfillState.PAUSED),
        "resume_backfill": partial(_decide, backfills, clock, BackfillState.RUNNING),
    }


def _announce(_: Schedule, _out_of_time: Callable[[], bool]) -> Settled:
    """Does nothing: the end of the run is what its webhooks are told."""
    return "ended"


def _decide(
    backfills: Backfills, clock: Clock, state: BackfillState, schedule: Schedule, _: Callable[[], bool]
) -> Settled:
    before = backfills.get(schedule.plan.target or "")
    if before is None:
        raise Rejected("unknown_backfill", f"There is no backfill {schedule.plan.target}.")
    after = decided(before, state, now=clock())
    if after == before:  # it is so, or final
        return "ended"
    try:
        backfills.change(before, after)
    except Fenced:
        return "goes_on"
    return "ended"
