"""What operators' commands need."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.images.service_level import Budget
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom_cli.operator.domain.audit import AuditEntry, Recorded
    from darkroom_cli.operator.domain.observation import Alarm, History, Measured, QueueCount
    from darkroom_cli.operator.domain.trace import LogLine


class QueueCounts(Protocol):
    """How many messages the queues of a stack have, each by its name. Raises Retryable if a queue cannot answer."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all of them."""

    def count(self, queue: str) -> QueueCount:
        """About how many it has now."""


class Alarms(Protocol):
    """The alarms of a stack. Raises Retryable if they cannot be listed."""

    def on(self) -> Sequence[Alarm]:
        """Those that are on, the longest first."""


class Measurements(Protocol):
    """What is measured of a stack, in the last minutes and over its error budgets' days. Raises Retryable if it cannot
    be read."""

    def latest(self, now: Milliseconds) -> Measured:
        """The latest whole minutes, which may be minutes ago."""

    def history(self, now: Milliseconds) -> History:
        """The lanes in the last HISTORY_MINUTES whole minutes (`domain.observation`), of which the newest may not be
        measured yet."""

    def budgets(self, now: Milliseconds) -> Mapping[str, Budget]:
        """What each lane has spent its error budget on until minutes ago."""

    def function_errors(self, now: Milliseconds) -> Mapping[str, int]:
        """How many invocations of each function ended in an error in the last ERROR_MINUTES (`domain.observation`),
        those with the most first; functions without errors are left out."""


class Audit(Protocol):
    """The audit log. Raises Retryable if it does not answer."""

    def write(self, entries: Sequence[AuditEntry]) -> None:
        """Appends the entries, with who acts and on which stack. After Retryable some of them may be there."""

    def entries(self, *, since: Milliseconds, until: Milliseconds) -> Iterator[Recorded]:
        """What was written from `since` until `until`, in any order, read as the caller iterates; without what this
        version cannot read."""


class LogLines(Protocol):
    """The lines that the functions and the gateway have logged. Every method raises Retryable if the logs cannot be
    searched."""

    @property
    def sources(self) -> Collection[str]:
        """Whose logs there are: the names of functions, and that of the gateway."""

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        """The lines of a source in which `text` is, in that time, read as the caller iterates. A line may take seconds
        until it can be found; those that are no JSON objects are left out."""
