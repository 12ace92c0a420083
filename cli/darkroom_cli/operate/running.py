"""Actions that are under way: each runs in a thread of its own, and is stopped as Ctrl-C stops a command.

A browser gives up a request that is not answered for minutes, and shows nothing meanwhile: a drill takes longer.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.operate.problems import OperateProblem
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import Ending, ended_by

PATIENCE_SECONDS = 1.0
"""How long a request waits for the end of the action that it has begun: most have ended by then."""

MOST_RUNS = 16
"""The most actions under way at once; of those that have ended, as many are kept until a page asks how."""


@dataclass
class ActionRun:
    """One action from its beginning until a page has heard of its end."""

    action: str
    began_at: Milliseconds
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    shown: display.Shown = field(default_factory=display.Shown)
    ending: Ending = field(default_factory=Ending)
    future: Future[dict[str, Any]] = field(default_factory=Future)

    def document(self) -> dict[str, Any]:
        """How far it is."""
        step = self.shown.step
        return {
            "run": self.run_id,
            "action": self.action,
            "began_at": rfc3339(self.began_at),
            "stopping": self.ending.requested,
            "ended": self.future.done(),
            "says": self.shown.lines,
            "notes": self.shown.complaints,
            "step": None if step is None else asdict(step),
        }


class Running:
    """The actions of one server. `work` gets what is to be shown, and returns the action's answer or raises."""

    def __init__(self, *, clock: Callable[[], Milliseconds], patience_seconds: float | None = None) -> None:
        self._clock, self._patience_seconds = clock, patience_seconds
        self._turn = threading.Lock()
        self._runs: dict[str, ActionRun] = {}
        self._threads = ThreadPoolExecutor(MOST_RUNS, thread_name_prefix="action")

    def begin(self, action: str, work: Callable[[display.Shown], dict[str, Any]]) -> dict[str, Any]:
        """Begins an action, and waits a moment: the answer, if it has ended by then, or the document of its run.

        Raises what the action raises, and Problem if too many are under way.
        """
        run = ActionRun(action=action, began_at=self._clock())
        with self._turn:
            ended = [run.run_id for run in self._runs.values() if run.future.done()]
            for run_id in ended[: max(0, len(ended) - MOST_RUNS + 1)]:
                del self._runs[run_id]
            if len(self._runs) - len(ended) >= MOST_RUNS:  # guard: operate-actions-bound
                raise OperateProblem(
                    HTTPStatus.CONFLICT,
                    "too_many_actions",
                    f"{MOST_RUNS} actions are under way, and nothing was done. Wait for one of them, or stop one.",
                )
            run.future = self._threads.submit(self._in_order, run, work)
            self._runs[run.run_id] = run
        patience_seconds = PATIENCE_SECONDS if self._patience_seconds is None else self._patience_seconds
        return self.look(run.run_id, patience_seconds=patience_seconds)

    @staticmethod
    def _in_order(run: ActionRun, work: Callable[[display.Shown], dict[str, Any]]) -> dict[str, Any]:
        with ended_by(run.ending):  # guard: operate-stop-per-action
            return work(run.shown)

    def look(self, run_id: str, *, patience_seconds: float = 0) -> dict[str, Any]:
        """The answer of an action that has ended, once: a key that it made is not told again. Until then the document
        of its run. Raises what the action raised, and Problem if there is no such run."""
        run = self._run(run_id)
        try:
            run.future.exception(patience_seconds)
        except NotYet:
            return run.document()
        with self._turn:
            self._runs.pop(run_id, None)  # guard: operate-answer-told-once
        return run.future.result()

    def stop(self, run_id: str) -> dict[str, Any]:
        """Asks an action to end in order: what it has begun is finished, and what a drill has broken is put back."""
        run = self._run(run_id)
        run.ending.requested = True
        return run.document()

    def documents(self) -> list[dict[str, Any]]:
        """All that are under way, and those that have ended whose answer no page has asked for, the oldest first."""
        with self._turn:
            runs = list(self._runs.values())
        return [run.document() for run in runs]

    def end(self, on_wait: Callable[[str], None]) -> None:
        """Stops all of them, and waits until the last has ended: `on_wait` hears of each that is under way."""
        for document in self.documents():
            if not document["ended"]:
                self.stop(document["run"])  # guard: operate-shutdown-stop
                on_wait(document["action"])
        self._threads.shutdown()

    def _run(self, run_id: str) -> ActionRun:
        with self._turn:
            run = self._runs.get(run_id)
        if run is None:
            raise OperateProblem(
                HTTPStatus.NOT_FOUND,
                "no_such_run",
                "This action is not under way: its end was told, or the command was started again since. "
                "The audit log says what became of it.",
            )
        return run
