"""Operators' actions are in the audit log: each is announced before it changes anything, and its end is written after.

If the log does not answer first, nothing is done. If it does not answer last, what was done stays done, and the
operator is told: a key that was made is not hidden because its second entry is missing, and the first one says who made
it. An action without an end was killed, or is still going on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from darkroom.ports.kernel import Clock, Randomness
from darkroom_cli.operator.domain.audit import MOST_TARGETS, AuditEntry, State, split
from darkroom_cli.operator.ports import Audit


@dataclass(frozen=True, kw_only=True)
class Trail:
    """Where an operator's actions are written; `on_missed` is told of one whose end could not be."""

    log: Audit
    clock: Clock
    randomness: Randomness
    on_missed: Callable[[str], None]

    @contextmanager
    def action(self, name: str, *targets: str, is_certain: bool = True, **about: Any) -> Iterator[AuditedAction]:
        """An action for the length of the block. Unless it `is_certain` to change something, it is announced by
        `AuditedAction.begin` and not before.

        Raises Retryable before anything is changed if the log does not answer.
        """
        audited = AuditedAction(
            trail=self,
            action=name,
            action_id=self.randomness(8).hex(),
            about={key: value for key, value in about.items() if value is not None},
        )
        if is_certain:
            audited.begin(*targets)  # guard: audit-begun-before-change
        try:
            yield audited
        except BaseException as error:
            audited.state = State.FAILED if isinstance(error, Exception) else State.INTERRUPTED
            audited.error = type(error).__name__ if isinstance(error, Exception) else None  # guard: audit-no-error-text
            raise
        finally:
            audited.end()


@dataclass(kw_only=True)
class AuditedAction:
    """What an action has done so far. Threads may share it."""

    trail: Trail
    action: str
    action_id: str
    about: Mapping[str, Any]
    state: State = State.DONE
    error: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    _targets: list[str] = field(default_factory=list)
    _has_begun: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, *targets: str) -> None:
        """Announces the action, once, before its first change. Raises Retryable if the log does not answer: nothing may
        be changed then."""
        with self._turn:
            if not self._has_begun:
                self._write(State.BEGUN, targets, about=self.about)
                self._has_begun = True

    def add(self, target: str | None, outcome: str) -> None:
        """Counts one thing that was changed, and names it, if it has an id. Raises Retryable if the log does not answer
        when there are enough of them for an entry; they are then written at the end."""
        with self._turn:
            self.counts[outcome] += 1
            if target is None:
                return
            self._targets.append(target)
            if len(self._targets) >= MOST_TARGETS:  # guard: audit-entry-targets-bound
                self._write(State.GOING_ON, self._targets)
                self._targets.clear()

    def interrupt(self) -> None:
        """The operator has stopped it early."""
        self.state = State.INTERRUPTED

    def end(self) -> None:
        """Writes how it ended, if it has begun. Never raises for what the log does."""
        if not self._has_begun:
            return
        try:
            self._write(self.state, self._targets, counts=dict(self.counts), error=self.error)
        except Exception as error:  # guard: audit-unwritten-end-tolerated
            self.trail.on_missed(
                f"The end of {self.action} ({self.action_id}) is not in the audit log, which did not answer: {error}. "
                "What was done is done."
            )

    def _write(self, state: State, targets: Any, **more: Any) -> None:
        entry = AuditEntry(
            action_id=self.action_id,
            action=self.action,
            state=state,
            at=self.trail.clock(),
            targets=tuple(targets),
            **more,
        )
        self.trail.log.write(list(split(entry)))
