"""Pauses a lane or a tenant's work: nothing of it is begun until it is resumed. What comes is accepted and waits."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.pauses.pauses import Pause, Paused, subject_of
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.ports import LaneSources, PauseRegistry


@dataclass(frozen=True, kw_only=True)
class PauseWorkPorts:
    """What pausing needs."""

    pauses: PauseRegistry
    sources: LaneSources
    clock: Clock
    patience: TransientRetry
    audit: Trail


def pause_work(ports: PauseWorkPorts, kind: Paused, name: str, *, reason: str) -> tuple[Pause, bool]:
    """The pause, and whether it is new: one in force stays as it is.

    The record is written first, because it is what counts: by it workers leave images alone. A lane is also taken from
    its workers, so that its messages stay in its queue. Raises Retryable: a repetition does what is left.
    """
    with ports.audit.action("pause", is_certain=False, kind=kind) as audited:
        before = in_force(ports.pauses, kind, name)
        pause = before
        if pause is None:
            audited.begin(name)  # guard: audit-pause-announced
            pause = ports.pauses.pause(Pause(kind=kind, name=name, since=ports.clock(), reason=reason))
            audited.add(None, "paused")
        if kind == "lane" and ports.patience(ports.sources.is_on, name):  # guard: pause-lane-source-off
            audited.begin(name)
            ports.patience(ports.sources.switch, name, False)
            audited.add(None, "switched_off")
            # Somebody may have resumed the lane meanwhile, and found it on.
            if in_force(ports.pauses, kind, name) is None:  # guard: pause-ended-meanwhile
                ports.patience(ports.sources.switch, name, True)
    return pause, before is None


def in_force(pauses: PauseRegistry, kind: Paused, name: str) -> Pause | None:
    """The pause of that lane or tenant that is in force, or None. Raises UnreadableRow if a newer version wrote it."""
    for pause in pauses.all():
        if isinstance(pause, UnreadableRow):
            if pause.row_id == subject_of(kind, name):  # guard: pause-unreadable-not-overwritten
                raise pause
        elif (pause.kind, pause.name) == (kind, name) and pause.is_active:
            return pause
    return None
