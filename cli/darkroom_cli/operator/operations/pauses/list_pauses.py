"""Lists what is paused, and about how much waits for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from darkroom.domain.images.image import Image
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.ports.kernel import Clock, UnreadableRow
from darkroom.ports.webhooks import Deliveries, Endpoints
from darkroom_cli.operator.domain.observation import Counted
from darkroom_cli.operator.operations.pauses.resume_work import looked_at_by
from darkroom_cli.operator.ports import ImageRegistry, LaneSources, PauseRegistry, QueueCounts

COUNTED = 1000
"""How many images that are set aside, and deliveries of each webhook, are counted at most."""


@dataclass(frozen=True, kw_only=True)
class ListPausesPorts:
    """What listing pauses needs; `parts` are the stack's."""

    pauses: PauseRegistry
    sources: LaneSources
    images: ImageRegistry
    queues: QueueCounts
    endpoints: Endpoints
    deliveries: Deliveries
    clock: Clock
    parts: Collection[str]


@dataclass(frozen=True, kw_only=True)
class PausedWork:
    """One thing that is paused, and how much waits for it. A lane that `is_served` all the same has workers that set
    its images aside, which costs more; `tenant_id` is the owner of a webhook."""

    kind: str
    name: str
    since: Milliseconds
    reason: str
    waiting: Counted
    is_served: bool = False
    tenant_id: str | None = None


def list_pauses(ports: ListPausesPorts) -> Iterator[PausedWork | UnreadableRow]:
    """What is paused, each kind by the time since when. Raises Retryable."""
    known = ports.pauses.all()  # also without the part: a lane may have been paused before
    yield from (row for row in known if isinstance(row, UnreadableRow))
    active = [row for row in known if isinstance(row, Pause) and row.is_active]
    parked = list(islice(ports.images.parked(looked_at_by(ports.clock())), COUNTED)) if active else []
    for pause in sorted(active, key=lambda pause: (pause.kind, pause.since)):
        yield _of_images(ports, pause, parked)
    rows = ports.endpoints.everything() if "webhooks" in ports.parts else ()
    paused = [(row.paused_at, row) for row in rows if isinstance(row, Endpoint) and row.paused_at is not None]
    for since, row in sorted(paused, key=lambda found: found[0]):
        due = ports.deliveries.due(row.endpoint_id, COUNTED)
        yield PausedWork(
            kind="webhook",
            name=row.endpoint_id,
            since=since,
            reason="",
            waiting=Counted(number=len(due), is_all=len(due) < COUNTED),
            tenant_id=row.tenant_id,
        )


def _of_images(ports: ListPausesPorts, pause: Pause, parked: Sequence[Image]) -> PausedWork:
    waiting = sum((row.lane if pause.kind == "lane" else row.tenant_id) == pause.name for row in parked)
    queued = ports.queues.count(pause.name).total if pause.kind == "lane" else 0
    return PausedWork(
        kind=pause.kind,
        name=pause.name,
        since=pause.since,
        reason=pause.reason,
        waiting=Counted(number=waiting + queued, is_all=len(parked) < COUNTED),
        is_served=pause.kind == "lane" and ports.sources.is_on(pause.name),
    )
