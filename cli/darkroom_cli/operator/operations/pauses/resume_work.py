"""Ends the pause of a lane or of a tenant's work, and has the sweeper send what was set aside meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.images.transitions import PARKED_SECONDS
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.pauses.pauses import KNOWN_SECONDS, Pause, Paused
from darkroom.ports.images import Due
from darkroom.ports.kernel import Clock
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction, Trail
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses.pause_work import in_force
from darkroom_cli.operator.ports import ImageRegistry, LaneSources, PauseRegistry

MARGIN_SECONDS = 5
"""How much later than KNOWN_SECONDS after the end of a pause no worker goes by it any more: one that has read it a
moment before still has to write what it decided."""


@dataclass(frozen=True, kw_only=True)
class ResumeWorkPorts:
    """What resuming needs."""

    pauses: PauseRegistry
    sources: LaneSources
    images: ImageRegistry
    clock: Clock
    patience: TransientRetry
    pace: RateLimiter
    audit: Trail


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """The pause that was ended, None if none was in force; and how many images were `woken`. What was not, if the
    operator ended it early, wakes within an hour."""

    pause: Pause | None
    woken: int
    complete: bool


def resume_work(
    ports: ResumeWorkPorts, kind: Paused, name: str, *, on_progress: Callable[[int], None] = lambda woken: None
) -> Resumed:
    """Ends the pause. `on_progress` is told how many images were woken so far.

    A lane gets its workers back first: if this dies before the record is ended, the pause is still in force, and known
    as such, and not a lane that nobody serves. Raises Retryable: a repetition does what is left.
    """
    with ports.audit.action("resume", is_certain=False, kind=kind) as audited:
        paused = in_force(ports.pauses, kind, name)
        _switch_on(ports, kind, name, audited)  # guard: resume-source-before-record
        if paused is not None:
            audited.begin(name)  # guard: audit-resume-announced
            ports.pauses.resume(kind, name, ports.clock())
            audited.add(None, "resumed")
            _switch_on(ports, kind, name, audited)  # guard: resume-paused-meanwhile
            ports.patience.pause(KNOWN_SECONDS + MARGIN_SECONDS)  # guard: resume-waits-for-workers
        woken = 0
        for row in ports.images.parked(looked_at_by(ports.clock())):
            if row.due_at is None or (row.lane if kind == "lane" else row.tenant_id) != name:
                continue
            ports.pace.wait()
            if ports.patience.stop():
                audited.interrupt()
                return Resumed(pause=paused, woken=woken, complete=False)
            ports.pace.spend()
            audited.begin(name)
            if ports.images.postpone(Due(row.due_at, row.image_id), ports.clock()):
                woken += 1
                audited.add(None, "woken")
                on_progress(woken)
    return Resumed(pause=paused, woken=woken, complete=True)


def looked_at_by(now: Milliseconds) -> Milliseconds:
    """When the sweeper will have looked at every image that is set aside by now, or by a clock that is ahead."""
    return now + (PARKED_SECONDS + 60) * 1000


def _switch_on(ports: ResumeWorkPorts, kind: Paused, name: str, audited: AuditedAction) -> None:
    if kind == "lane" and not ports.patience(ports.sources.is_on, name):
        audited.begin(name)
        ports.patience(ports.sources.switch, name, True)
        audited.add(None, "switched_on")
