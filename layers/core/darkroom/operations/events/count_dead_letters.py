"""Counts the dead letters of events in each queue: of those who count, of webhooks, and of what was never published."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom.for_each import for_each
from darkroom.ports.dead_letters import DeadLetters
from darkroom.ports.kernel import AtOnce

THREADS = 4
"""How many queues are looked at at the same time: all that there are."""


def count_dead_letters(
    event_dead_letters: DeadLetters, at_once: AtOnce
) -> tuple[Mapping[str, int], Mapping[str, Exception]]:
    """The dead letters by queue, and an error for each queue whose dead letters could not be counted. It never
    raises."""
    counted: dict[str, int] = {}
    problems: dict[str, Exception] = {}

    def count(queue: str) -> None:
        try:
            counted[queue] = event_dead_letters.depth(queue)
        # guard: event-dead-letters-counted-apart
        except Exception as error:  # of this queue alone
            problems[f"the dead letters of {queue}"] = error

    for_each(at_once, count, list(event_dead_letters.queues), threads=THREADS)
    return counted, problems
