"""Shows the start of the local stack: its steps, where it then serves, and what went wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from darkroom.operations.page import serve_page
from darkroom.parts import Part
from darkroom.settings import deployed
from darkroom_cli.terminal import display
from local_aws.failures import AlreadyRunning, ApiSilent, ClockFixed, CommandFailed, DeploymentFailed, NotRunning
from local_aws.paths import State
from local_aws.processes import tail
from local_aws.stacks.record import StackRecord

_TAIL_LINES = 20
_ADVICE = {
    "setting up the Python environments": "Check that this machine reaches a Python package index, and run this again.",
    "reading the presets": "Correct layers/core/darkroom/domain/recipes/presets.py, then run this again; nothing was "
    "built.",
    "sam build": "Fix what it names, then run this again, or `./darkroom local deploy` if a stack is running.",
    "sam deploy": "Fix what it names, then `./darkroom local deploy` if a stack is running, or `make run`.",
    "a function": "Fix it, then `./darkroom local deploy` if a stack is running, or `make run`.",
    "the emulator": "Run this again; if it fails again, its log says why.",
}


def command_began(
    uptime: Path = Path("/proc/uptime"),
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """When `./darkroom` began, by the clock; now, if something else started this program."""
    now = clock()
    try:
        return now - (float(uptime.read_text().split()[0]) - float(environment["DARKROOM_BEGAN"]))
    except (KeyError, OSError, ValueError):
        return now


class Steps:
    """Shows each step of a start as one line: a spinner and the seconds while it runs, a tick once it is done.

    A step lasts from the end of the one before, so the seconds of all add up to what has passed since `began`. The time
    before the first is a step of its own if it is over a second: then the command line itself was installed.
    """

    def __init__(self, out: Console, began: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._began = self._ended = began

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[str], None]]:
        if self._ended == self._began and self._clock() - self._began > 1:
            self._finish("✓", "green", "command line")
        if not self._out.is_terminal:
            display.line(self._out, f"  … {name}")
        try:
            with self._live(name) as show:
                yield show
        except BaseException:
            self._finish("✗", "red", name)
            raise
        self._finish("✓", "green", name)

    def add_up(self) -> None:
        """Shows how long all of it took."""
        text = Text.assemble(f"    {'together':<14}", (f"{self._ended - self._began:5.1f} s", "dim"))
        self._out.print(text, soft_wrap=True)

    @contextmanager
    def then(self, name: str) -> Iterator[Callable[[], None]]:
        """Shows a step that begins when the block calls what it gets, and lasts until all that it opened is closed."""
        begun = False

        def begin() -> None:
            nonlocal begun
            begun, self._ended = True, self._clock()

        try:
            yield begin
        finally:
            if begun:
                self._finish("✓", "green", name)

    @contextmanager
    def _live(self, name: str) -> Iterator[Callable[[str], None]]:
        if not self._out.is_terminal:
            yield lambda _: None
            return
        spinner, detail = Spinner("dots"), Text(style="dim", overflow="ellipsis", no_wrap=True)

        def line() -> Table:
            table = Table.grid(padding=(0, 1), expand=True)
            for _ in range(3):
                table.add_column(no_wrap=True)
            table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
            table.add_row(Text(" "), spinner, Text(f"{name:<14}{self._clock() - self._ended:5.0f} s"), detail)
            return table

        with Live(get_renderable=line, console=self._out, refresh_per_second=8, transient=True):

            def show(text: str) -> None:
                detail.plain = display.printable(text.strip())

            yield show

    def _finish(self, sign: str, style: str, name: str) -> None:
        before, self._ended = self._ended, self._clock()
        text = Text.assemble("  ", (sign, style), f" {name:<14}", (f"{self._ended - before:5.1f} s", "dim"))
        self._out.print(text, soft_wrap=True)


@contextmanager
def failures_explained(state: State) -> Iterator[None]:
    """Turns a failure of the stack into an explanation, the end of the log that says why, and exit status 1."""
    errors = display.errors()
    try:
        yield
    except DeploymentFailed as failure:
        display.complain(str(failure))
        for reason in failure.reasons:
            display.line(errors, f"  {reason}", style="red")
        display.line(errors, f"  The whole log: {_short(failure.log)}")
        display.line(errors, _ADVICE[failure.name])
    except CommandFailed as failure:
        display.complain(str(failure))
        _show_tail(errors, failure.log)
        display.line(errors, _ADVICE[failure.name])
    except ApiSilent as failure:
        display.complain(str(failure))
        for first, *stack in failure.exceptions:
            display.line(errors, f"  {display.printable(first)}", style="red")
            for line in stack:
                display.line(errors, f"  │ {display.printable(line)}", style="dim")
        if failure.exceptions:
            display.line(errors, _ADVICE["a function"])
        else:
            _show_tail(errors, state.logs / "emulator.log")
    except (AlreadyRunning, NotRunning, ClockFixed) as failure:
        display.complain(str(failure))
    except _aws_errors() as failure:
        display.complain(f"the emulator did not answer as expected: {failure}")
        _show_tail(errors, state.logs / "emulator.log")
    else:
        return
    raise typer.Exit(1)


def _aws_errors() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    return BotoCoreError, ClientError


def _show_tail(out: Console, log: Path) -> None:
    for line in tail(log, lines=_TAIL_LINES):
        display.line(out, f"  │ {display.printable(line)}", style="dim")
    display.line(out, f"  The whole log: {_short(log)}")


def introduce(out: Console, state: State, stack: StackRecord) -> None:
    """Prints the addresses and the logs of a stack that has started."""
    display.line(out)
    if has_part(stack, "page"):
        display.line(out, f"  Page  {page_url(stack)}", style="bold")
    display.line(out, f"  API   {stack.api_url}", style="bold")
    if stack.api_key is not None:
        display.line(out, f"  Key   {stack.api_key}   (./darkroom tenants and ./darkroom keys make others)")
    profile = f"AWS_CONFIG_FILE={_short(state.aws_config)} AWS_PROFILE={stack.stack_name}"
    display.line(out, f"  AWS   {stack.aws_endpoint_url}   ({profile})")
    display.line(out, f"  Logs  {_short(state.logs)}   (the functions': ./darkroom logs --follow)")
    display.line(out)


def has_part(stack: StackRecord, part: Part) -> bool:
    """Whether this optional part is deployed, by the output of its deployment: AWS need not be asked for parameters."""
    return part in deployed(stack.outputs.get("Parts", f"{part}=true"))


def page_url(stack: StackRecord) -> str:
    """Where a browser finds the page."""
    return f"{stack.api_url}{serve_page.ROOT}"


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
