"""Child processes that never outlive their supervisor, and signals that stop the supervisor cleanly."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from local_aws.failures import CommandFailed

_GUARDIAN = Path(__file__).with_name("guardian.py")
_POLL_SECONDS = 0.05
_TAIL_BYTES = 16_384


class Interrupted(KeyboardInterrupt):
    """The stack was asked to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.exit_status = 128 + number


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into one request to stop, which is checked where the program waits.

    No exception is raised at an arbitrary place, so a second Ctrl-C cannot break the clean-up that the first one began.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._raising = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The handlers stay installed: only the exit is left, and nothing needs to interrupt that.
        self._raising = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        first, self._number = self._number is None, self._number or number
        if first and self._raising:
            raise Interrupted(number)

    def check(self) -> None:
        """Raise Interrupted if a stop was requested."""
        if self._number is not None:
            raise Interrupted(self._number)

    def pause(self, seconds: float) -> None:
        """Sleep, or raise Interrupted as soon as a stop is requested."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _POLL_SECONDS))
        self.check()

    @contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """In this block the first signal raises Interrupted immediately: for code that never checks."""
        self._raising = True
        try:
            self.check()
            yield
        finally:
            self._raising = False


def guardian(grace_seconds: float) -> list[str | Path]:
    """What a command is to follow so that it ends with this process, however that ends, and has so long to clean up."""
    return [sys.executable, "-I", "-S", _GUARDIAN, str(os.getpid()), str(grace_seconds)]


class Child:
    """A command in its own process group: a terminal's Ctrl-C reaches only the supervisor, which then ends the command.

    Must be started from the main thread: Linux's parent-death signal watches the thread that forked (prctl(2)).
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        grace_seconds: float = 1.5,
    ) -> None:
        self.log = log
        self._grace_seconds = grace_seconds
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*guardian(grace_seconds), *command],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    @property
    def exit_status(self) -> int | None:
        """None while it is running."""
        return self._process.poll()

    def stop(self) -> None:
        """End the command and everything that it started; returns when they are gone."""
        self._process.terminate()
        try:
            self._process.wait(self._grace_seconds + 2)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the parent-death signal then ends the command too
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def run(
    name: str,
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    interrupts: Interrupts,
    show: Callable[[str], None],
) -> None:
    """Run a command to its end, showing the last line of its output; raises CommandFailed or Interrupted."""
    interrupts.check()
    with Child(command, environment=environment, folder=folder, log=log) as child:
        while child.exit_status is None:
            interrupts.pause(_POLL_SECONDS)
            show("".join(tail(log, lines=1)))
        if child.exit_status:
            raise CommandFailed(name, child.exit_status, log)


def tail(log: Path, *, lines: int) -> list[str]:
    """The last lines of a log that are not blank."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
