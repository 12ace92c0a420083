"""Work on whole dead-letter queues: Ctrl-C ends it cleanly, and it counts before, during and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import typer
from rich.console import Console

from darkroom_cli.operator.domain.redrives import Redrive
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import Counts, QueuePorts
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import ApiError


class Job:
    """One command's work on the dead-letter queue of one lane, or on all of them."""

    def __init__(self, stack: Stack, lane: str | None, doing: str) -> None:
        self._stack, self._doing = stack, doing
        self._queues = stack.chosen(lane)
        self._interrupts = Interrupts()
        self._report = display.ProgressReport(display.errors())
        self._before: dict[str, int] = {}
        self._after: dict[str, int] = {}
        self._unseen: list[str] = []
        self.counts = Counts(on_change=self._show)
        self.ports = QueuePorts(
            images=stack.images,
            lanes=stack.lanes,
            dead_letters=stack.dead_letters,
            redrives=stack.redrives,
            clock=stack.clock,
            pause=self.pause,
            audit=stack.audit,
        )

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupts.requested

    def __enter__(self) -> Self:
        self._interrupts.__enter__()
        self._report.__enter__()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._report.__exit__(error_type, error, traceback)
        self._interrupts.__exit__(error_type, error, traceback)

    def run(self, work: Callable[[str], bool]) -> None:
        """Does the work on each queue. If it fails midway, it first reports what was done."""
        try:
            with self._stack.explained():
                self._before = {queue: self.ports.dead_letters.depth(queue) for queue in self._queues}
                for queue in self._queues:
                    if not self.interrupted and not work(queue):
                        self._unseen.append(queue)
                self._after = {queue: self.ports.dead_letters.depth(queue) for queue in self._queues}
        except Exception:
            if self.counts.counts:
                self._report.complain(f"so far: {self._detail()}")
            raise

    def pause(self, seconds: float) -> None:
        """Waits, at most until Ctrl-C; after that, at most a second at a time."""
        if self.interrupted:
            time.sleep(min(seconds, 1.0))
        self._interrupts.wait(seconds)

    def show_redrive(self, redrive: Redrive) -> None:
        """Shows the progress of a redrive."""
        of = "" if redrive.to_move is None else f" of about {redrive.to_move:,}"
        self._report.show(
            f"moving {redrive.queue}",
            completed=redrive.moved,
            total=redrive.to_move,
            detail=f"{redrive.moved:,}{of} dead letters",
        )

    def before_and_after(self) -> str:
        """The number of dead letters in each queue before and after, by SQS's count."""
        counts = ", ".join(
            f"{queue} {self._before[queue]:,} before, {self._after[queue]:,} after" for queue in self._after
        )
        return f"Dead letters: {counts}."

    def tell_rest(self, out: Console, done: set[str]) -> None:
        """Prints what was left alone, by verdict."""
        rest = {name: count for name, count in self.counts.counts.items() if name not in done and count}
        if rest:
            display.line(out, "Left alone: " + ", ".join(f"{count:,} {name}" for name, count in rest.items()) + ".")

    def end(self, again: str) -> None:
        """Ends the command: as interrupted, as unfinished, or successfully."""
        if self.interrupted:
            display.line(display.errors(), f"Interrupted. For the rest:  {again}", style="yellow")
            raise typer.Exit(INTERRUPTED)
        if self._unseen:
            raise ApiError(
                f"Not all dead letters in {', '.join(self._unseen)} could be read: some may be hidden for a minute. "
                f"For the rest:  {again}"
            )

    def _show(self) -> None:
        total = sum(self._before.values())
        self._report.show(self._doing, completed=self.counts.counts.total(), total=total or None, detail=self._detail())

    def _detail(self) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in self.counts.counts.items())
