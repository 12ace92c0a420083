"""The work of `darkroom top`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.operations.observation.observe_stack import Observation, ObserveStackPorts, observe_stack
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.at_once import at_once
from darkroom_cli.terminal.interrupts import INTERRUPTED, LEAVING, Interrupts
from darkroom_cli.top import pages
from darkroom_cli.top.document import document
from darkroom_client.client import ApiError

LOCAL_SECONDS, DEPLOYED_SECONDS = 2.0, 5.0
"""How often a stack is looked at, unless the command says otherwise."""

_RENDERINGS_PER_SECOND = 2
"""How often the page is drawn anew between two looks: ages count on, and it follows the window's size."""


def ports_of(stack: Stack) -> ObserveStackPorts:
    """What observing the stack needs. Its clients are made here, in one thread: boto3's sessions allow no others."""
    with stack.explained():
        return ObserveStackPorts(
            images=stack.images,
            queues=stack.queue_counts,
            given_up=stack.given_up_counts,
            dead_letters=stack.dead_letters_of_images,
            throughput=stack.throughput,
            outcome_counts=stack.outcome_counts,
            measurements=stack.measurements,
            alarms=stack.alarms,
            endpoints=stack.endpoints,
            deliveries=stack.deliveries,
            pauses=stack.pauses,
            at_once=at_once,
            clock=stack.clock,
            service=stack.service,
            parts=stack.parts,
        )


def problems_of(stack: Stack, observation: Observation) -> Mapping[str, str]:
    """Why parts could not be read, in sentences."""
    return {name: _explained(stack, error) for name, error in observation.problems.items()}


def _explained(stack: Stack, error: Exception) -> str:
    if isinstance(error, Retryable):  # it is tried again at the next look
        return f"AWS did not answer ({error})"
    try:
        with stack.explained():
            raise error
    except ApiError as explained:
        return str(explained)
    except Exception:  # a bug: it hides no other part
        return f"{type(error).__name__}: {error}"


def show_once(stack: Stack, *, as_json: bool) -> None:
    """`top --once`, `top --json`."""
    observation = observe_stack(ports_of(stack))
    problems = problems_of(stack, observation)
    if as_json:
        shown = document(observation, problems, stack=stack.name, region=stack.region, options=stack.options)
        display.print_json(shown)
    else:
        out = display.output()
        page = _Page(stack, observation, problems)
        for line in pages.page(page.view, width=out.width, height=None):
            out.print(line, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def show_live(stack: Stack, *, interval_seconds: float | None) -> None:
    """`top`: until it is interrupted; once, if there is no terminal to show it live in."""
    out = display.output()
    if not out.is_terminal or out.is_dumb_terminal:
        show_once(stack, as_json=False)
        return
    interval = interval_seconds or (LOCAL_SECONDS if stack.is_local else DEPLOYED_SECONDS)
    with Interrupts(*LEAVING) as interrupts:
        try:
            with interrupts.raised_at_once():  # only read: nothing is lost, wherever it is cut short
                _follow(stack, out, interval, interrupts.wait)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def _follow(stack: Stack, out: Console, interval_seconds: float, wait: Callable[[float], None]) -> None:
    ports = ports_of(stack)
    observation = observe_stack(ports)
    page = _Page(stack, observation, problems_of(stack, observation))
    try:
        with Live(page, console=out, screen=True, refresh_per_second=_RENDERINGS_PER_SECOND) as live:
            while True:
                wait(interval_seconds)
                observation = observe_stack(ports, observation)
                live.update(_Page(stack, observation, problems_of(stack, observation)), refresh=True)
    finally:  # a second interrupt may have cut short what restores the terminal
        out.set_alt_screen(False)
        out.show_cursor()


class _Page:
    """An observation as the screen shows it: drawn for the window and the moment of each drawing."""

    def __init__(self, stack: Stack, observation: Observation, problems: Mapping[str, str]) -> None:
        self._stack, self._observation, self._problems = stack, observation, problems

    @property
    def view(self) -> pages.View:
        """What is shown at this moment."""
        return pages.View(
            observation=self._observation,
            problems=self._problems,
            now=max(self._stack.clock(), self._observation.observed_at),
            stack=self._stack.name,
            region=self._stack.region,
            options=self._stack.options,
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from pages.page(self.view, width=options.max_width, height=options.height or console.height)
