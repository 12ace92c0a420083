"""Pauses of a lane or of a tenant's work, which operators begin and end: meanwhile no worker begins any of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from darkroom.domain.kernel.instants import Milliseconds

type Paused = Literal["lane", "tenant"]
"""What can be paused so. A webhook is paused by its endpoint's row."""

REASON_CHARACTERS = 200
"""The longest reason of a pause, in an operator's words."""

KNOWN_SECONDS = 10
"""How long a process goes by what it last read: so late it may notice a pause, or its end."""

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long a pause is kept after its end: from then on the images that waited meanwhile count as waiting."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A pause of that lane or tenant `since`; in force until it has `resumed_at`."""

    kind: Paused
    name: str
    since: Milliseconds
    reason: str = ""
    resumed_at: Milliseconds | None = None

    @property
    def subject(self) -> str:
        """The key of its row. No lane's or tenant's name has a `#`."""
        return subject_of(self.kind, self.name)

    @property
    def is_active(self) -> bool:
        """Whether it is in force."""
        return self.resumed_at is None


def subject_of(kind: Paused, name: str) -> str:
    """What names a lane or tenant among the pauses: `lane#fast`, `tenant#acme`."""
    return f"{kind}#{name}"


@dataclass(frozen=True, kw_only=True)
class Pauses:
    """All pauses that are remembered, the latest of each subject."""

    by_subject: Mapping[str, Pause] = field(default_factory=dict)

    @classmethod
    def of_all(cls, pauses: Iterable[Pause]) -> Self:
        """The collection of these."""
        return cls(by_subject={pause.subject: pause for pause in pauses})

    def of(self, lane: str, tenant_id: str | None = None) -> Pause | None:
        """The pause in force of the lane, or else of the tenant; None if neither is paused."""
        return next((pause for pause in self._about(lane, tenant_id) if pause.is_active), None)

    def counted_since(self, since: Milliseconds, lane: str, tenant_id: str | None = None) -> Milliseconds:
        """What the service level of an image counts from that has waited `since`: no earlier than the end of the pause
        that it waited for."""
        # guard: pause-end-begins-service-level
        return max([since, *(pause.resumed_at or 0 for pause in self._about(lane, tenant_id))])

    def oldest(self) -> Pause | None:
        """The pause that has been in force for the longest time, or None."""
        active = (pause for pause in self.by_subject.values() if pause.is_active)
        return min(active, key=lambda pause: pause.since, default=None)

    def _about(self, lane: str, tenant_id: str | None) -> Iterable[Pause]:
        subjects = [subject_of("lane", lane), *([] if tenant_id is None else [subject_of("tenant", tenant_id)])]
        return [self.by_subject[subject] for subject in subjects if subject in self.by_subject]


NOTHING_PAUSED = Pauses()
