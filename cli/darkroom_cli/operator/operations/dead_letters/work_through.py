"""Takes the dead letters of a queue to work on them, a handful at a time."""

from __future__ import annotations

from collections.abc import Callable

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.operations.dead_letters.cases import Case, CasePorts, Group, grouped, look_up
from darkroom.ports.dead_letters import DeadLetter
from darkroom.ports.kernel import Clock

HOLD_SECONDS = 40
"""How long taken dead letters are worked on before they are given back and taken again: they are hidden for a
minute."""

HANDFUL = 200
"""How many dead letters are taken at a time to be worked on."""


def work_through(
    ports: CasePorts,
    queue: str,
    act: Callable[[Case], bool],
    *,
    wants: Callable[[Case], bool],
    before_each: Callable[[], None],
    stop: Callable[[], bool],
) -> bool:
    """Calls `act` once for each case of the queue that it `wants`, with its dead letters taken: if it returns True they
    are removed, and all others are given back in the end. Returns whether the whole queue was seen.

    Dead letters are hidden from others for only a minute, so that those taken by a process that died show again soon:
    cases that do not fit into that time are taken again. `before_each` may wait. Raises Retryable if the queue or the
    table cannot answer.
    """
    seen: dict[tuple[str, int], bool] = {}  # whether its dead letters go
    asked_again = False
    in_hand: dict[str, DeadLetter] = {}

    def remove(group: Group) -> None:
        for dead_letter in group.dead_letters:
            ports.dead_letters.remove(dead_letter)
            del in_hand[dead_letter.message_id]

    try:
        while not stop():
            taken_at = ports.clock()
            taken = ports.dead_letters.take(queue, HANDFUL)
            in_hand |= {dead_letter.message_id: dead_letter for dead_letter in taken.dead_letters}
            asked_again |= taken.asked_again
            if not _is_held(taken_at, ports.clock):
                raise Retryable("reading dead letters takes longer than they stay hidden")
            groups = grouped(taken.dead_letters)
            if taken.dead_letters and not taken.complete and all(group.key in seen for group in groups):
                return False  # it goes round in circles: dead letters show again before all were seen
            for group in groups:
                if stop() or not _is_held(taken_at, ports.clock):
                    break
                if group.key not in seen:
                    case = look_up(ports, group)
                    wanted = wants(case)
                    if wanted:
                        before_each()
                        if stop() or not _is_held(taken_at, ports.clock):
                            break
                    seen[group.key] = wanted and act(case)
                if seen[group.key]:
                    remove(group)
            else:
                if taken.complete:
                    # guard: dead-letters-replay-lost-answer
                    return not asked_again  # then some may be hidden, and show in the next look
            # The rest of this handful is taken again; what was seen of it stays hidden meanwhile.
            unseen = [dead_letter for group in groups if group.key not in seen for dead_letter in group.dead_letters]
            ports.dead_letters.give_back(tuple(unseen))
        return False
    finally:
        ports.dead_letters.give_back(tuple(in_hand.values()))


def _is_held(taken_at: Milliseconds, clock: Clock) -> bool:
    return clock() - taken_at < HOLD_SECONDS * 1000
