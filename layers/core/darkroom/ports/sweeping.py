"""What the sweeper asks other parts."""

from __future__ import annotations

from collections.abc import Callable

type Cleanup = Callable[[str], bool]
"""Takes what a part keeps of a deleted image, by its id, out of what that part keeps; returns whether that was all.
Raises Retryable, and UnreadableRow if this version cannot read some of it."""
