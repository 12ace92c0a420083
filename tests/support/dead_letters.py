"""Dead letters with their rows, and the operations that list, replay, drop and archive them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.dead_letters.dead_letter import explanation_of
from darkroom.domain.dead_letters.rejection import explanation_of_rejection, rejected_message
from darkroom.domain.images.image import (
    Cause,
    DeadLetterState,
    Image,
    message_for,
)
from darkroom.domain.images.transitions import complete, give_up, reject
from darkroom.domain.kernel.message import Message
from darkroom.domain.kernel.signature import VerificationFailure
from darkroom.operations.dead_letters.archive_dead_letters import (
    ArchiveDeadLettersPorts,
    Archiving,
    archive_dead_letters,
)
from darkroom.operations.dead_letters.cases import CasePorts
from darkroom.ports.dead_letters import DeadLetter
from darkroom_cli.operator.domain.redrives import Redrive
from darkroom_cli.operator.operations.dead_letters.drop_dead_letters import DropDeadLettersPorts, drop_dead_letters
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import (
    EVERYTHING,
    DeadLetterListing,
    DeadLetterSelection,
    list_dead_letters,
)
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    Counts,
    QueuePorts,
    replay_dead_letters,
    replay_queue,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from tests.support.fakes import World
from tests.support.fakes.dead_letters import FakeArchive, FakeRedrives
from tests.support.images import NOW, processing

DAY = 24 * 3600


def given_up(number: int, *, bug: str = "ZeroDivisionError", **changes: Any) -> Image:
    """A failed image whose dead letter has been placed."""
    row = processing(image_id=f"{number:026d}", attempt=5, due_at=None, **changes)
    cause = Cause(error_type=bug, message="a bug", stack="Traceback\n  boom")
    return replace(give_up(row, now=NOW, cause=cause), dead_letter=DeadLetterState.KEPT, due_at=None)


@dataclass
class DeadLetterWorld(World):
    """A world whose operators list, replay, drop and archive dead letters; pauses move its clock."""

    archive: FakeArchive = field(default_factory=FakeArchive)
    now: int = NOW + 3_600_000
    pauses: list[float] = field(default_factory=list)
    stopped: bool = False

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += round(seconds * 1000)

    def stop(self) -> bool:
        return self.stopped

    @property
    def redrives(self) -> FakeRedrives:
        return FakeRedrives(self.dead_letters, self.lanes)

    @property
    def queue_ports(self) -> QueuePorts:
        return self.ports(QueuePorts)

    def place(self, image: Image, *, run: int | None = None, sent_at: int = NOW, explained: bool = True) -> DeadLetter:
        """Keeps the row and puts a dead letter of one of its runs into the queue of its lane."""
        self.images.rows[image.image_id] = image
        message = replace_run(message_for(image), run)
        explanation = json.dumps(explanation_of(image, run)) if explained else None
        dead_letter = self.dead_letters.add(image.lane, message.model_dump_json(), explanation)
        dated: DeadLetter = replace(dead_letter, sent_at=sent_at)
        self.dead_letters.messages[image.lane] = [
            dated if each == dead_letter else each for each in self.dead_letters.messages[image.lane]
        ]
        return dated

    def ls(self, selection: DeadLetterSelection = EVERYTHING, limit: int = 100) -> DeadLetterListing:
        return list_dead_letters(self.ports(CasePorts), self.dead_letters.queues, selection, limit=limit)

    def replay(self, selection: DeadLetterSelection = EVERYTHING, *, per_second: float = 1000) -> Counter[str]:
        counts = Counts()
        pace = RateLimiter(per_second=per_second, clock=self.clock, pause=self.pause)
        for queue in self.dead_letters.queues:
            replay_dead_letters(self.queue_ports, queue, selection, pace=pace, stop=self.stop, counts=counts)
        return counts.counts

    def move(self, redrives: FakeRedrives, per_second: int = 10) -> tuple[Redrive | None, Counter[str]]:
        counts, ports = Counts(), replace(self.queue_ports, redrives=redrives)
        return replay_queue(ports, "slow", per_second=per_second, stop=self.stop, counts=counts), counts.counts

    def drop(self, *, force: bool = False, selection: DeadLetterSelection = EVERYTHING) -> Counter[str]:
        counts, ports = Counts(), self.ports(DropDeadLettersPorts)
        for queue in self.dead_letters.queues:
            drop_dead_letters(ports, queue, selection, force=force, stop=self.stop, counts=counts)
        return counts.counts

    def archive_all(self, **options: Any) -> Archiving:
        return archive_dead_letters(self.ports(ArchiveDeadLettersPorts), out_of_time=self.stop, **options)

    @property
    def in_hand(self) -> set[str]:
        """The dead letters that somebody has taken and neither removed nor given back."""
        message_ids = {each.message_id for messages in self.dead_letters.messages.values() for each in messages}
        hidden: set[str] = self.dead_letters.hidden
        return hidden & message_ids


def replace_run(message: Message, run: int | None) -> Message:
    return message if run is None else message.model_copy(update={"run": run})


FAILED = given_up(1)
REFUSED = reject(processing(), code="truncated", message="The file ends too early.", now=NOW)
DONE = complete(processing(), (), notices=(), now=NOW)


def rejected(world: DeadLetterWorld, message_id: str = "message-1", body: str | None = None) -> DeadLetter:
    """The dead letter of a message that somebody made up about a failed image."""
    message = rejected_message(message_id, message_for(FAILED).model_dump_json() if body is None else body)
    world.dead_letters.put_rejected("slow", message, explanation_of_rejection(VerificationFailure.FORGED, queue="slow"))
    dead_letter: DeadLetter = world.dead_letters.messages["slow"][-1]
    return dead_letter
