"""Does several reads at the same time, in threads that do not outlive the command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

AT_A_TIME = 8
"""How many of one call's works at most: their answers come back in milliseconds, and nobody is throttled."""


def at_once(works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
    """The results of all works, in their order; works may use it again. If some fail, the failure of the first of them
    is raised once all have ended.

    Its threads are daemons: an interrupted command does not wait for what AWS has not answered.
    """
    results: list[Any] = [None] * len(works)
    failures: dict[int, BaseException] = {}
    places, turn = iter(range(len(works))), threading.Lock()

    def work() -> None:
        while True:
            with turn:
                place = next(places, None)
            if place is None:
                return
            try:
                results[place] = works[place]()
            except BaseException as error:
                failures[place] = error

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_A_TIME, len(works)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[min(failures)]
    return results
