"""What `darkroom drill` prints."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.drill.drills import DRILLS, INCIDENT, Drill
from darkroom_cli.drill.switches import Restoration, RestoreResult, Setting, words
from darkroom_cli.terminal import display

if TYPE_CHECKING:
    from darkroom_cli.drill.opened import OpenDrill
    from darkroom_cli.drill.result import DrillResult
    from darkroom_cli.drill.scene import Scene

_FIRST = re.compile(r"First: \./darkroom (?P<command>[a-z -]+?) --stack ")
_LINES = 20


class DrillReport(Protocol):
    """Hears what a drill does."""

    def begin(self, drill: Drill, is_moved: bool) -> None:
        """It begins; `is_moved` if the clock is."""
        ...

    def note(self, text: str) -> None:
        """Something happens that takes time."""
        ...

    def trouble(self, text: str) -> None:
        """Something went wrong."""
        ...

    def thrown(self, setting: Setting) -> None:
        """A switch was thrown."""
        ...

    def restored(self, restoration: Restoration) -> None:
        """A switch was put back, or was left alone."""
        ...

    def undoing(self, opened: OpenDrill, now: int) -> None:
        """An earlier drill is undone."""
        ...

    def fired(self, alarm: str, minutes: float) -> None:
        """An alarm fired, so many minutes of the stack's time after the beginning."""
        ...

    def show_operator(self, drill: Drill, on: Mapping[str, str], scene: Scene) -> None:
        """All expected alarms are on: what an operator sees."""
        ...

    def end(self, result: DrillResult) -> None:
        """It is over."""
        ...


class Page:
    """Prints it happens."""

    def __init__(self, out: Console) -> None:
        self._out = out

    def begin(self, drill: Drill, is_moved: bool) -> None:
        """A heading."""
        display.line(self._out, f"{drill.name}: {drill.rehearses}", style="bold")
        time = "the stack's clock is moved" if is_moved else "nothing is faster than it is"
        display.line(self._out, f"  load: {drill.load.words}; {time}")

    def note(self, text: str) -> None:
        """A line."""
        display.line(self._out, f"  {text}", style="dim")

    def trouble(self, text: str) -> None:
        """A line on standard error."""
        display.line(display.errors(), display.printable(text), style="red")

    def thrown(self, setting: Setting) -> None:
        """What it was, and what it is."""
        was, is_ = words(setting.kind, setting.before), words(setting.kind, setting.during)
        display.line(self._out, f"  switched  {setting.target}: {is_} (was: {was})")

    def restored(self, restoration: Restoration) -> None:
        """What it is again."""
        setting = restoration.setting
        before = words(setting.kind, setting.before)
        match restoration.back:
            case RestoreResult.RESTORED:
                display.line(self._out, f"  put back  {setting.target}: {before}")
            case RestoreResult.AS_BEFORE:
                display.line(self._out, f"  put back  {setting.target}: {before} (it was so already)")
            case RestoreResult.CHANGED:
                display.line(
                    display.errors(),
                    f"  left      {setting.target}: somebody has set it to {words(setting.kind, restoration.now)} "
                    f"meanwhile; before the drill it was: {before}",
                    style="yellow",
                )

    def undoing(self, opened: OpenDrill, now: int) -> None:
        """Which, and since when."""
        display.line(self._out, f"The drill {opened.name} was begun {ago(now - opened.began_at)} ago.")

    def fired(self, alarm: str, minutes: float) -> None:
        """Its name and when."""
        display.line(self._out, f"  {minutes:6.1f} min  ALARM  {alarm}", style="red")

    def show_operator(self, drill: Drill, on: Mapping[str, str], scene: Scene) -> None:
        """The texts of the alarms, and the output of the first command of the first."""
        display.line(self._out)
        if not on:
            display.line(self._out, f"  No alarm is on: {drill.shows}.")
        for name in sorted(on, key=lambda name: name != INCIDENT):
            display.line(self._out, f"  {name}: {display.printable(on[name])}")
        chosen = next((on[name] for name in sorted(drill.alarms) if name in on), "")
        match = _FIRST.search(chosen)
        if match is not None:
            self._show_command(match["command"].split(), scene)

    def _show_command(self, command: Sequence[str], scene: Scene) -> None:
        asked = [*command, "--once"] if list(command) == ["top"] else [*command]
        status, said = scene.darkroom(*asked)
        if status == _NOT_UNDERSTOOD:
            asked = ["dlq", "ls"]
            _, said = scene.darkroom(*asked)
        display.line(self._out, f"\n  $ ./darkroom {' '.join(asked)}{scene.stack.options}", style="bold")
        lines = said.rstrip().splitlines()
        for text in lines[:_LINES]:
            display.line(self._out, f"  {display.printable(text)}")
        if len(lines) > _LINES:
            display.line(self._out, f"  … and {len(lines) - _LINES} more lines", style="dim")
        display.line(self._out)

    def end(self, result: DrillResult) -> None:
        """What was as expected, and what was not."""
        if result.problems:
            for problem in result.problems:
                display.line(display.errors(), f"  NOT AS EXPECTED: {display.printable(problem)}", style="red")
        else:
            paged = "one page, and one message that it is over" if result.pages else "no page"
            display.line(
                self._out, f"  as expected: {paged}; everything was clear after {result.cleared_after} minutes."
            )
        display.line(self._out)


_NOT_UNDERSTOOD = 2


def print_plan(out: Console, drill: Drill, options: str) -> None:
    """What a drill would break, what it should set off, and how it ends."""
    display.line(out, f"{drill.name} would rehearse: {drill.rehearses}. Nothing was changed.", style="bold")
    for throw in drill.throws:
        display.line(out, f"It would switch {throw.target.format(row='a new row')}: {words(throw.kind, throw.during)}.")
    display.line(out, f"Load: {drill.load.words}.")
    display.line(out, f"Alarms that must fire: {_alarms(drill).replace('`', '')}. An operator sees {drill.shows}.")
    minutes = drill.lead_minutes + drill.patience_minutes + drill.clear_minutes
    display.line(
        out,
        f"It takes at most {minutes} minutes of the stack's time, and puts everything back: once the alarms were on, "
        "when it is stopped, and at the latest when its time is over.",
    )
    display.line(out)
    display.line(out, f"Do it:  ./darkroom drill {drill.name}{options}")


def tell_undo(out: Console, opened: OpenDrill) -> None:
    """What `undo` would put back."""
    display.line(out, f"The drill {opened.name} is open. Nothing was put back yet.", style="bold")
    for setting in reversed(opened.settings):
        display.line(out, f"It would put back {setting.target}: {words(setting.kind, setting.before)}.")


class Silence:
    """Prints nothing but trouble, for `--json`."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def trouble(self, text: str) -> None:
        """On standard error."""
        display.line(display.errors(), display.printable(text), style="red")


def ago(milliseconds: int) -> str:
    """A duration: "3 minutes"."""
    minutes = max(0, milliseconds) // 60_000
    for length, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= length:
            count = minutes // length
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def table_of_drills() -> list[tuple[str, ...]]:
    """A row of docs/drills.md for each drill: its name and what it rehearses, the alarms, and where it may run."""
    return [(f"`{drill.name}`: {drill.rehearses}", _alarms(drill), drill.where.value) for drill in DRILLS.values()]


def _alarms(drill: Drill) -> str:
    parts = [f"`{name}`" for name in sorted(drill.alarms)]
    parts += ["pages"] if drill.pages else []
    parts += [f"perhaps `{name}`" for name in sorted(drill.perhaps)]
    return ", ".join(parts) or "none"


def list_drills(out: Console, opened: OpenDrill | None, options: str, parts: Collection[str]) -> None:
    """`drill ls`, of a stack with these optional parts."""
    rows = [
        (
            drill.name,
            drill.rehearses,
            ", ".join(sorted(alarm.removesuffix("Alarm") for alarm in drill.alarms)) or "none",
            drill.where.value if drill.part is None or drill.part in parts else f"not here: no {drill.part}",
        )
        for drill in DRILLS.values()
    ]
    display.table(out, ("drill", "rehearses", "alarms", "runs"), rows, right=frozenset())
    if opened is not None:
        display.line(out)
        display.line(
            out,
            f"Open since {rfc3339(opened.began_at)}: {opened.name}. To put back what it has changed: "
            f"./darkroom drill undo{options}",
            style="yellow",
        )


def summary(out: Console, results: Sequence[DrillResult]) -> None:
    """`drill all`: a row for each."""
    rows = [
        (
            result.drill.name,
            ", ".join(
                name.removesuffix("Alarm") + ("" if isnan(at) else f" {at:g}") for name, at in result.fired.items()
            )
            or "none",
            str(result.pages),
            "-" if result.cleared_after is None else f"{result.cleared_after:g}",
            f"{result.seconds:.0f} s",
            "as expected" if not result.problems else "NOT AS EXPECTED",
        )
        for result in results
    ]
    heads = ("drill", "alarms, after minutes", "pages", "cleared after", "took", "")
    display.table(out, heads, rows, right=frozenset({"pages", "cleared after", "took"}))


def document(result: DrillResult) -> dict[str, Any]:
    """A result for programs."""
    return {
        "drill": result.drill.name,
        "expected": sorted(result.drill.expected),
        "fired": {name: None if isnan(at) else at for name, at in result.fired.items()},
        "pages": result.pages,
        "all_clears": result.all_clears,
        "cleared_after_minutes": result.cleared_after,
        "seconds": round(result.seconds, 1),
        "problems": result.problems,
    }
