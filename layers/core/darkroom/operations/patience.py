"""Waiting out what passes by itself, in an operator's work that nobody else waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.errors import Retryable

PAUSES_SECONDS = (1, 2, 4, 8, 16, 32, 32, 32)
"""Two minutes in all, after what the SDK has tried by itself: longer than a table or a bucket takes to make room."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How an operator waits: `pause` waits so many seconds, or until `stop` says that the end is wanted."""

    pause: Callable[[float], None]
    stop: Callable[[], bool]

    def __call__[*Arguments, Answer](self, call: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
        """What `call` gives, which may be repeated. Raises the last Retryable where it cannot work for minutes, or
        where the end is wanted."""
        for pause_seconds in PAUSES_SECONDS:
            try:
                return call(*arguments)
            except Retryable as error:
                if self.stop():
                    raise
                self.pause(max(pause_seconds, error.retry_after_seconds))
        return call(*arguments)
