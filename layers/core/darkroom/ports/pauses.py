"""What pausing needs."""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.pauses.pauses import NOTHING_PAUSED, Pauses

type KnownPauses = Callable[[], Pauses]
"""What is paused, as far as was known KNOWN_SECONDS ago. It never raises: what cannot be read is as it last was, and a
pause decides nothing that could lose an image."""


def nothing_paused() -> Pauses:
    """The answer of a stack in which nothing can be paused."""
    return NOTHING_PAUSED
