"""Waits out transient failures, in an operator's work that nobody else waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.kernel.errors import Retryable

PAUSES_SECONDS = (1, 2, 4, 8, 16, 32, 32, 32)
"""Two minutes in all, after the SDK's own retries: longer than a table or a bucket takes to scale up."""


@dataclass(frozen=True, kw_only=True)
class TransientRetry:
    """How an operator's work waits: `pause` waits that many seconds, or until `stop` returns True."""

    pause: Callable[[float], None]
    stop: Callable[[], bool]

    def __call__[*Arguments, Answer](self, call: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
        """Returns the result of `call`, which may be repeated. Raises the last Retryable if it fails for minutes, or if
        `stop` asks for the end."""
        for pause_seconds in PAUSES_SECONDS:
            try:
                return call(*arguments)
            except Retryable as error:
                if self.stop():
                    raise
                self.pause(max(pause_seconds, error.retry_after_seconds))
        return call(*arguments)
