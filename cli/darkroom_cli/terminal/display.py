"""What the commands show: live on a terminal, plain lines everywhere else, and to a program that asks for it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.places import as_typed

_SECONDS_BETWEEN_PLAIN_LINES = 5.0


@dataclass(frozen=True, kw_only=True)
class ProgressStep:
    """How far the latest step of a command has come: `total` is None if it is not known how much it is."""

    name: str
    completed: float
    total: float | None
    detail: str


@dataclass
class Shown:
    """What a command has shown while it was listened to (`listening`): its lines, its complaints, its documents, and
    the step that it is at. Another thread may read it meanwhile."""

    _output: io.StringIO = field(default_factory=io.StringIO)
    _errors: io.StringIO = field(default_factory=io.StringIO)
    documents: list[Any] = field(default_factory=list)
    step: ProgressStep | None = None

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self._output.getvalue().splitlines()

    @property
    def complaints(self) -> list[str]:
        """The lines of standard error."""
        return self._errors.getvalue().splitlines()


_listener: ContextVar[Shown | None] = ContextVar("listener", default=None)  # guard: operate-listener-per-thread


@contextmanager
def listening(shown: Shown | None = None) -> Iterator[Shown]:
    """While the block lasts, what this thread's commands show goes to `shown`, or to a new one, which is the result,
    and nothing to the terminal."""
    token = _listener.set(shown := shown or Shown())
    try:
        yield shown
    finally:
        _listener.reset(token)


_NO_TERMINAL: dict[str, Any] = {"width": 200, "force_terminal": False, "color_system": None}
"""Plain lines that no window limits, whatever the environment says of colours."""


def output() -> Console:
    """Standard output, where results go."""
    return _console() if (shown := _listener.get()) is None else _console(file=shown._output, **_NO_TERMINAL)


def errors() -> Console:
    """Standard error, where errors go, and progress if there is no terminal."""
    return _console(stderr=True) if (shown := _listener.get()) is None else _console(file=shown._errors, **_NO_TERMINAL)


def _console(**options: Any) -> Console:
    return Console(highlight=False, markup=False, emoji=False, **options)


def printable(text: str) -> str:
    """`text` on one line and unable to move the cursor: file names and responses are not ours."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def printable_lines(text: str) -> str:
    """The same for several lines."""
    return "\n".join(map(printable, text.splitlines()))


def line(out: Console, text: str = "", *, style: str | None = None) -> None:
    """Prints one line, however long: text to be copied is never wrapped. Commands are named as they are typed here."""
    out.print(Text(as_typed(text)), style=style, soft_wrap=True, markup=False, highlight=False)


def complain(text: str) -> None:
    """Prints an error to standard error."""
    line(errors(), f"error: {printable_lines(text)}", style="red")


def readable[Row](rows: Iterable[Row | UnreadableRow]) -> list[Row]:
    """The rows that can be read; the others are reported as errors."""
    read: list[Row] = []
    for row in rows:
        if isinstance(row, UnreadableRow):
            complain(str(row))
        else:
            read.append(row)
    return read


def seconds(duration_seconds: float) -> str:
    """A duration for people: "0.4 s", "2 min 5 s"."""
    if duration_seconds < 60:
        return f"{duration_seconds:.1f} s"
    minutes, rest = divmod(round(duration_seconds), 60)
    return f"{minutes} min {rest} s"


def age(duration_seconds: float) -> str:
    """A coarse duration for people: "40 s", "5 min", "3 h 20 min", "12 d 4 h"."""
    # What a clock that was ahead has dated is new, not younger than nothing.
    duration_seconds = max(duration_seconds, 0)
    minutes, seconds = int(duration_seconds // 60), int(duration_seconds)
    if seconds < 60:
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def of(count: int, singular: str, many: str | None = None) -> str:
    """A number of things: "1 dead letter", "2,000 dead letters"."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def instant(text: str) -> datetime:
    """An RFC 3339 instant of a status document."""
    return datetime.fromisoformat(text)


def table(out: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: frozenset[str]) -> None:
    """Prints aligned columns that a narrow window does not wrap; those named in `right` are aligned to the right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(cell_len(row[column]) for row in [list(heads), *cells]) for column in range(len(heads))]
    for row, style in [(list(heads), "bold"), *((row, None) for row in cells)]:
        padded = [
            " " * (width - cell_len(cell)) + cell if head in right else cell + " " * (width - cell_len(cell))
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        line(out, "  " + "  ".join(padded).rstrip(), style=style)


def advise(out: Console, advice: Sequence[tuple[str, str]]) -> None:
    """Prints what to type next, aligned."""
    width = max((len(when) for when, _ in advice), default=0)
    for when, what in advice:
        line(out, f"{when:<{width}}  {what}")


def print_json(value: Any) -> None:
    """Prints a document for programs on standard output, in ASCII: what a server said cannot move the cursor."""
    if (shown := _listener.get()) is not None:
        shown.documents.append(value)
    else:
        typer.echo(json.dumps(value, indent=2))


class ProgressReport:
    """Shows progress: bars on a terminal; otherwise a plain line now and then, on standard error."""

    def __init__(
        self, out: Console, *, notes: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._notes = notes or errors()
        self._clock = clock
        self._tasks: dict[str, TaskID] = {}
        self._noted_at: dict[str, float] = {}
        self._noted: dict[str, str] = {}
        self._live = (
            Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[detail]}", markup=False),
                TimeElapsedColumn(),
                console=out,
                refresh_per_second=4,
                transient=True,
            )
            if out.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str, *, style: str | None = None) -> None:
        """Prints a line of the result, which stays."""
        line(self._out, text, style=style)

    def complain(self, text: str) -> None:
        """Prints a line about something that failed, which stays."""
        # On a terminal both streams share the screen, and only the live display's own console keeps it in order.
        line(self._out if self._live is not None else self._notes, text, style="red")

    def show(self, name: str, *, completed: float, total: float | None, detail: str) -> None:
        """Shows the current state of `name` in place of the previous one."""
        if (shown := _listener.get()) is not None:
            shown.step = ProgressStep(name=name, completed=completed, total=total, detail=detail)
        elif self._live is None:
            self._note(name, detail)
        elif name in self._tasks:
            self._live.update(self._tasks[name], completed=completed, total=total, detail=detail)
        else:
            self._tasks[name] = self._live.add_task(name, total=total, detail=detail)
            self._live.update(self._tasks[name], completed=completed)

    def _note(self, name: str, detail: str) -> None:
        now = self._clock()
        # Work that is over in a moment prints no progress.
        due_at = self._noted_at.setdefault(name, now) + _SECONDS_BETWEEN_PLAIN_LINES
        if now >= due_at and self._noted.get(name) != detail:
            line(self._notes, f"{name}: {detail}")
            self._noted_at[name] = now
            self._noted[name] = detail
