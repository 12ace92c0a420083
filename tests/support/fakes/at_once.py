"""Works that are done at the same time, without threads: a history is told by its calls in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def one_after_another(works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
    """The `AtOnce` port."""
    return [work() for work in works]
