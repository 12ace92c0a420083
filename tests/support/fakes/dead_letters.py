"""In-memory fakes of what handles dead letters besides their queues: redrives of whole queues, and the archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.kernel.message import read_message
from darkroom.domain.schedules.hold import read_batch_dead_letter
from darkroom_cli.operator.domain.redrives import Redrive, RedriveStatus
from tests.support.fakes.stores import FakeDeadLetters, FakeLanes


@dataclass
class FakeRedrives:
    """The `Redrives` port: with each look at a redrive, `per_look` more dead letters return to their lane."""

    dead_letters: FakeDeadLetters
    lanes: FakeLanes
    per_look: int = 1
    failure: str | None = None
    on_start: Callable[[], None] = lambda: None
    started: list[tuple[str, int]] = field(default_factory=list)
    redrives: dict[str, Redrive] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)

    def latest(self, queue: str) -> Redrive | None:
        redrive = self.redrives.get(queue)
        if redrive is not None and redrive.status is RedriveStatus.RUNNING:
            self.redrives[queue] = self._moved_on(redrive)
        elif redrive is not None and redrive.status is RedriveStatus.CANCELLING:
            self.redrives[queue] = replace(redrive, status=RedriveStatus.CANCELLED)
        return redrive

    def start(self, queue: str, per_second: int) -> None:
        running = self.redrives.get(queue)
        if running is not None and not running.status.is_over:
            return
        self.on_start()
        self.started.append((queue, per_second))
        self.redrives[queue] = Redrive(
            queue=queue,
            status=RedriveStatus.RUNNING,
            started_at=len(self.started),
            moved=0,
            to_move=len(self.dead_letters.messages[queue]),
            handle=f"move-{len(self.started)}",
        )

    def cancel(self, redrive: Redrive) -> None:
        current = self.redrives[redrive.queue]
        if current.handle == redrive.handle and current.status is RedriveStatus.RUNNING:
            self.redrives[redrive.queue] = replace(current, status=RedriveStatus.CANCELLING, handle=None)

    def _moved_on(self, redrive: Redrive) -> Redrive:
        if self.failure is not None:
            return replace(redrive, status=RedriveStatus.FAILED, handle=None, failure=self.failure)
        visible = [
            dead_letter
            for dead_letter in self.dead_letters.messages[redrive.queue]
            if dead_letter.message_id not in self.dead_letters.hidden
        ]
        for dead_letter in visible[: self.per_look]:
            self.dead_letters.remove(dead_letter)
            if read_batch_dead_letter(dead_letter.body) is None:
                self.lanes.send(read_message(dead_letter.body))
            else:
                self.batches.append(dead_letter.body)
        moved = replace(redrive, moved=redrive.moved + len(visible[: self.per_look]))
        return moved if visible else replace(moved, status=RedriveStatus.COMPLETED, handle=None)


@dataclass
class FakeArchive:
    """The `Archive` port; stored objects pass through JSON."""

    objects: dict[str, Any] = field(default_factory=dict)

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        if key in self.objects:
            return False
        self.objects[key] = json.loads(json.dumps(document))
        return True
