"""The audit log in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.audit import AuditEntry, Recorded
from darkroom_cli.operator.operations.kernel.audit_trail import AuditedAction, Trail

ACTOR = "arn:aws:sts::123456789012:assumed-role/operator/ada"


@dataclass
class FakeAudit:
    """Implements `Audit`; `is_down` makes it silent, from the write with the number `down_from` on if that is given."""

    lines: list[Recorded] = field(default_factory=list)
    stack: str = "shop"
    is_down: bool = False
    down_from: int | None = None
    writes: int = 0

    def write(self, entries: Sequence[AuditEntry]) -> None:
        self.writes += 1
        if self.is_down or (self.down_from is not None and self.writes >= self.down_from):
            raise Retryable("writing the audit log: no answer")
        self.lines += [Recorded(entry=entry, actor=ACTOR, stack=self.stack) for entry in entries]

    def entries(self, *, since: Milliseconds, until: Milliseconds) -> Iterator[Recorded]:
        yield from (line for line in self.lines if since <= line.entry.at <= until)

    @property
    def actions(self) -> list[tuple[str, str]]:
        """The actions and their states, in order."""
        return [(line.entry.action, line.entry.state.value) for line in self.lines]


def trail_of(
    log: FakeAudit | None = None,
    *,
    clock: Callable[[], Milliseconds] = lambda: 1_795_251_600_000,
    missed: list[str] | None = None,
) -> Trail:
    """A trail to a log in memory; `missed` gets what could not be written."""
    numbers = itertools.count(1)
    return Trail(
        log=FakeAudit() if log is None else log,
        clock=clock,
        randomness=lambda size: next(numbers).to_bytes(size),
        on_missed=([] if missed is None else missed).append,
    )


def audited_action_of(trail: Trail | None = None) -> AuditedAction:
    """An action that the caller has opened, of which an operation is a part."""
    return AuditedAction(trail=trail or trail_of(), action="test", action_id="0", about={})
