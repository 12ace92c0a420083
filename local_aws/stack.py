"""The one stack of a state folder: the lock that shows it runs, `stack.json` with its address, and how to stop it."""

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from local_aws.failures import AlreadyRunning, NotRunning
from local_aws.paths import State
from local_aws.project import given
from local_aws.stacks.record import AnotherVersion, StackRecord, read_record

_LOCK_SECONDS = 1.0
# How long a stack may take to remove its files, some ten thousand: a second on an idle machine, a dozen on a busy one.
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05


@contextmanager
def held(state: State) -> Iterator[None]:
    """Hold the lock, so that this is the only stack of the state folder; raises AlreadyRunning."""
    state.lock.parent.mkdir(parents=True, exist_ok=True)
    with state.lock.open("a+") as file:
        deadline = time.monotonic() + _LOCK_SECONDS  # readers take it for an instant to see whether it is held
        while not _taken(file):
            if time.monotonic() > deadline:
                raise AlreadyRunning(
                    f"A local stack runs already (process {_content(state.lock)}): "
                    f"use it, change it with `{given().command} deploy`, or stop it with `{given().command} down`."
                )
            time.sleep(_POLL_SECONDS)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


@contextmanager
def deploying(state: State, pause: Callable[[float], None]) -> Iterator[None]:
    """Wait for any other build or deployment, and exclude others meanwhile."""
    state.deploy_lock.parent.mkdir(parents=True, exist_ok=True)
    with state.deploy_lock.open("a+") as file:
        while not _taken(file):
            pause(_POLL_SECONDS)
        yield


def supervisor(state: State) -> int | None:
    """The process that runs this folder's stack, or None."""
    try:
        with state.lock.open("a+") as file:
            if _taken(file):
                return None
    except FileNotFoundError:
        return None
    return int(_content(state.lock) or 0) or None


def withdraw(state: State) -> None:
    """Remove stack.json, and the partial file of a writer that was killed."""
    for file in [state.stack_file, *state.folder.glob(f"{state.stack_file.name}.*")]:
        file.unlink(missing_ok=True)


def running(state: State) -> StackRecord:
    """The stack that is serving; raises NotRunning, also for a stack.json whose writer was killed."""
    if supervisor(state) is None:
        raise NotRunning(f"No local stack runs. Start one with `{given().start}`, or with `{given().command} up`.")
    try:
        return read_record(state.stack_file)
    except FileNotFoundError:
        raise NotRunning("The local stack is still starting, or is stopping. Try again in a moment.") from None
    except AnotherVersion:
        raise NotRunning(
            f"The local stack that runs is of another version. Stop it: `{given().command} down`."
        ) from None


def stop(state: State) -> bool:
    """Stop the stack and wait until it has cleaned up, or kill it after a minute; False if none was running."""
    process = supervisor(state)
    if process is None:
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return True
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            if supervisor(state) != process:
                return True
            time.sleep(_POLL_SECONDS)
    return True


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _content(lock: Path) -> str:
    return lock.read_text().strip()
