"""Pauses in memory, with the semantics that the ports promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.pauses.pauses import Pause, Paused, Pauses, subject_of
from darkroom.ports.kernel import UnreadableRow


@dataclass
class FakePauses:
    """The `PauseRegistry` port over a dictionary; called, it is the `KnownPauses` port that knows all at once."""

    pauses: dict[str, Pause] = field(default_factory=dict)

    def __call__(self) -> Pauses:
        return Pauses(by_subject=dict(self.pauses))

    def all(self) -> Sequence[Pause | UnreadableRow]:
        return list(self.pauses.values())

    def pause(self, pause: Pause) -> Pause:
        current = self.pauses.get(pause.subject)
        if current is None or not current.is_active:
            self.pauses[pause.subject] = pause
        return self.pauses[pause.subject]

    def resume(self, kind: Paused, name: str, resumed_at: Milliseconds) -> Pause | None:
        current = self.pauses.get(subject_of(kind, name))
        if current is not None and current.is_active:
            self.pauses[current.subject] = replace(current, resumed_at=resumed_at)
        return self.pauses.get(subject_of(kind, name))

    def forget(self, kind: Paused, name: str) -> None:
        self.pauses.pop(subject_of(kind, name), None)


@dataclass
class FakeLaneSources:
    """The `LaneSources` port: the lanes that are `off`, and how often a switch is refused because one is under way."""

    off: set[str] = field(default_factory=set)
    refusals: int = 0

    def is_on(self, lane: str) -> bool:
        return lane not in self.off

    def switch(self, lane: str, on: bool) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Retryable("it is being changed")
        (self.off.discard if on else self.off.add)(lane)
