"""Lists dead letters, grouped by failure, with what their rows say now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from darkroom.domain.dead_letters.dead_letter import Verdict
from darkroom.domain.kernel.fingerprint import is_defect
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.operations.dead_letters.cases import Case, CasePorts, grouped, look_up
from darkroom.ports.dead_letters import Taken
from darkroom.ports.kernel import AtOnce


@dataclass(frozen=True, kw_only=True)
class DeadLetterSelection:
    """Which cases are selected: those that match every field that is set."""

    image_id: str | None = None
    tenant_id: str | None = None
    cause: str | None = None
    fingerprint: str | None = None
    verdict: Verdict | None = None
    older_than_seconds: float | None = None
    newer_than_seconds: float | None = None

    @property
    def words(self) -> dict[str, Any]:
        """The fields that are set, as the audit log has them."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def covers(self, case: Case, now: Milliseconds) -> bool:
        """Whether the case is selected."""
        age_seconds = (now - case.sent_at) / 1000
        message = case.message
        return (
            (self.image_id is None or (message is not None and message.image_id == self.image_id))
            and (self.tenant_id is None or (message is not None and message.tenant_id == self.tenant_id))
            and (self.cause is None or self.cause.casefold() in _names_of_cause(case))
            and (self.fingerprint is None or _is_defect(case, self.fingerprint))
            and (self.verdict is None or case.verdict is self.verdict)
            and (self.older_than_seconds is None or age_seconds > self.older_than_seconds)
            and (self.newer_than_seconds is None or age_seconds < self.newer_than_seconds)
        )


EVERYTHING = DeadLetterSelection()


def _is_defect(case: Case, wanted: str) -> bool:
    """Whether it is the defect with that fingerprint, as this version or an earlier one names it."""
    error = case.last_error
    return error is not None and is_defect(wanted, str(error["error_type"]), str(error.get("stack") or ""))


def _names_of_cause(case: Case) -> set[str]:
    error = case.last_error
    names = (case.error_code, case.cause, None if error is None else error["error_type"])
    return {str(name).casefold() for name in names if name is not None}


@dataclass(frozen=True, kw_only=True)
class DeadLetterListing:
    """What the queues hold: the selected cases, each queue's depth, how many dead letters were read, and which queues
    hold more than that."""

    cases: tuple[Case, ...]
    depths: dict[str, int]
    dead_letters: int
    incomplete: tuple[str, ...]


def _one_after_another(works: Sequence[Callable[[], Any]]) -> Sequence[Any]:
    return [work() for work in works]


def list_dead_letters(
    ports: CasePorts,
    queues: Iterable[str],
    selection: DeadLetterSelection = EVERYTHING,
    *,
    limit: int,
    at_once: AtOnce = _one_after_another,
    on_case: Callable[[int, int], None] = lambda done, total: None,
) -> DeadLetterListing:
    """Reads up to `limit` dead letters of each queue and gives them back; oldest first within a queue.

    `on_case` is called with how many cases have been looked up, of how many. Raises Retryable if a queue or the table
    cannot answer.
    """
    queues = tuple(queues)
    # Each empty queue takes a second to say so: the end of a long poll.
    read = dict(zip(queues, at_once([partial(_read, ports, queue, limit) for queue in queues]), strict=True))
    depths = {queue: depth for queue, (depth, _) in read.items()}
    incomplete = [queue for queue, (_, taken) in read.items() if not taken.complete]
    groups = [group for _, taken in read.values() for group in grouped(taken.dead_letters)]
    dead_letters = sum(len(taken.dead_letters) for _, taken in read.values())
    cases = []
    for number, group in enumerate(groups):
        on_case(number, len(groups))
        case = look_up(ports, group)
        if selection.covers(case, ports.clock()):
            cases.append(case)
    order = {queue: number for number, queue in enumerate(depths)}
    cases.sort(key=lambda case: (order[case.queue], case.sent_at))
    return DeadLetterListing(cases=tuple(cases), depths=depths, dead_letters=dead_letters, incomplete=tuple(incomplete))


def _read(ports: CasePorts, queue: str, limit: int) -> tuple[int, Taken]:
    """A queue's depth, and what was read of it, which is visible again."""
    depth = ports.dead_letters.depth(queue)
    taken = ports.dead_letters.take(queue, limit)
    ports.dead_letters.give_back(taken.dead_letters)
    return depth, taken
