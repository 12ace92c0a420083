"""How often an image that has not ended is asked about."""

from __future__ import annotations

# An image that has not ended after this many polls is retried or stuck: it leaves the window to younger ones.
PATIENCE_POLLS = 12

FIRST_PAUSE_SECONDS = 0.5
_PAUSE_GROWTH = 1.5
_LONGEST_PAUSE_SECONDS = 2.0
_PAUSE_WITHOUT_PATIENCE_SECONDS = 5.0
_LONGEST_RETRY_AFTER_SECONDS = 60.0


def pause_before_poll(*, polls: int, retry_after_seconds: float | None) -> float:
    """Seconds until the next poll of an image that has not ended after `polls` polls; never before `Retry-After`."""
    growing = min(FIRST_PAUSE_SECONDS * _PAUSE_GROWTH**polls, _LONGEST_PAUSE_SECONDS)
    pause = growing if polls < PATIENCE_POLLS else _PAUSE_WITHOUT_PATIENCE_SECONDS
    return max(pause, min(retry_after_seconds or 0.0, _LONGEST_RETRY_AFTER_SECONDS))
