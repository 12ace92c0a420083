"""Does the same with many things, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from darkroom.ports.kernel import AtOnce


def for_each[One](at_once: AtOnce, do: Callable[[One], object], items: Sequence[One], *, threads: int) -> None:
    """Calls `do` with each of them, in so many threads at most; each thread takes every so manyth."""
    parts = [part for first in range(threads) if (part := items[first::threads])]
    if parts:
        at_once([partial(_one_by_one, do, part) for part in parts])


def _one_by_one[One](do: Callable[[One], object], items: Sequence[One]) -> None:
    for item in items:
        do(item)
