"""What deals with dead letters beside their queues, in memory: moves of whole queues, and the archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.dead_letter import Move, MoveStatus
from darkroom.domain.hold import read_batch_letter
from darkroom.domain.message import read_message
from proof.fakes.stores import FakeDeadLetters, FakeLanes


@dataclass
class FakeMoves:
    """The `Moves` port: whenever somebody looks at a move, `per_look` letters more come to their lane."""

    letters: FakeDeadLetters
    lanes: FakeLanes
    per_look: int = 1
    failure: str | None = None
    on_start: Callable[[], None] = lambda: None
    started: list[tuple[str, int]] = field(default_factory=list)
    moves: dict[str, Move] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)

    def latest(self, queue: str) -> Move | None:
        move = self.moves.get(queue)
        if move is not None and move.status is MoveStatus.RUNNING:
            self.moves[queue] = self._moved_on(move)
        elif move is not None and move.status is MoveStatus.CANCELLING:
            self.moves[queue] = replace(move, status=MoveStatus.CANCELLED)
        return move

    def start(self, queue: str, per_second: int) -> None:
        running = self.moves.get(queue)
        if running is not None and not running.status.is_over:
            return
        self.on_start()
        self.started.append((queue, per_second))
        self.moves[queue] = Move(
            queue=queue,
            status=MoveStatus.RUNNING,
            started_at=len(self.started),
            moved=0,
            to_move=len(self.letters.lying[queue]),
            handle=f"move-{len(self.started)}",
        )

    def cancel(self, move: Move) -> None:
        current = self.moves[move.queue]
        if current.handle == move.handle and current.status is MoveStatus.RUNNING:
            self.moves[move.queue] = replace(current, status=MoveStatus.CANCELLING, handle=None)

    def _moved_on(self, move: Move) -> Move:
        if self.failure is not None:
            return replace(move, status=MoveStatus.FAILED, handle=None, failure=self.failure)
        there = [one for one in self.letters.lying[move.queue] if one.message_id not in self.letters.hidden]
        for letter in there[: self.per_look]:
            self.letters.remove(letter)
            if read_batch_letter(letter.body) is None:
                self.lanes.send(read_message(letter.body))
            else:
                self.batches.append(letter.body)
        moved = replace(move, moved=move.moved + len(there[: self.per_look]))
        return moved if there else replace(moved, status=MoveStatus.COMPLETED, handle=None)


@dataclass
class FakeArchive:
    """The `Archive` port; what is stored goes through JSON."""

    objects: dict[str, Any] = field(default_factory=dict)

    def put_if_absent(self, key: str, document: dict[str, Any]) -> bool:
        if key in self.objects:
            return False
        self.objects[key] = json.loads(json.dumps(document))
        return True
