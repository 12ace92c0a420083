"""Redrives of whole dead-letter queues, made by SQS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from darkroom.domain.kernel.instants import Milliseconds


class RedriveStatus(StrEnum):
    """The state of a redrive of a whole dead-letter queue."""

    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def is_over(self) -> bool:
        """Whether it has stopped moving messages."""
        return self not in (RedriveStatus.RUNNING, RedriveStatus.CANCELLING)


@dataclass(frozen=True, kw_only=True)
class Redrive:
    """A redrive of all dead letters of a queue to their lane, which continues without the process that started it.

    `handle` is needed to cancel it, and known only while it runs; `to_move` is None until SQS has counted.
    """

    queue: str
    status: RedriveStatus
    started_at: Milliseconds
    moved: int
    to_move: int | None = None
    handle: str | None = None
    failure: str | None = None
