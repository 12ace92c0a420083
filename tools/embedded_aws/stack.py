"""The one stack of a state folder: the lock that says it runs, `stack.json` that says where, and the way to stop it."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from embedded_aws.environment import PROFILE, REGION
from embedded_aws.failures import AlreadyRunning, NotRunning
from embedded_aws.paths import State

STACK_NAME = PROFILE
_VERSION = 1
_LOCK_SECONDS = 1.0
_STOP_SECONDS = 12.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class RunningStack:
    """Where the stack answers: the content of stack.json."""

    api_url: str
    aws_endpoint_url: str
    outputs: dict[str, str] = field(default_factory=dict)
    api_key: str | None = None
    region: str = REGION
    stack_name: str = STACK_NAME
    clock_file: str | None = None


@contextmanager
def held(state: State) -> Iterator[None]:
    """Hold the lock, so that this is the only stack of the state folder; raises AlreadyRunning."""
    state.lock.parent.mkdir(parents=True, exist_ok=True)
    with state.lock.open("a+") as file:
        deadline = time.monotonic() + _LOCK_SECONDS  # readers hold it for an instant to see whether anybody does
        while not _taken(file):
            if time.monotonic() > deadline:
                raise AlreadyRunning(
                    f"A local stack runs already (process {_content(state.lock)}): "
                    "use it, or stop it with `./darkroom local down`."
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
    """Wait for whoever builds or deploys, and keep others from it meanwhile."""
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


def publish(state: State, stack: RunningStack) -> None:
    """Write stack.json so that no reader ever sees half of it."""
    unfinished = state.stack_file.with_name(f"{state.stack_file.name}.{os.getpid()}")
    document = {
        "version": _VERSION,
        "api_url": stack.api_url,
        "api_key": stack.api_key,
        "aws_endpoint_url": stack.aws_endpoint_url,
        "region": stack.region,
        "stack_name": stack.stack_name,
        "outputs": stack.outputs,
        "clock_file": stack.clock_file,
    }
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(state.stack_file)


def withdraw(state: State) -> None:
    """Remove stack.json, and what a writer that was killed left beside it."""
    for file in [state.stack_file, *state.folder.glob(f"{state.stack_file.name}.*")]:
        file.unlink(missing_ok=True)


def running(state: State) -> RunningStack:
    """The stack that serves now; raises NotRunning, also for a stack.json whose writer was killed."""
    if supervisor(state) is None:
        raise NotRunning("No local stack runs. Start one with `make run`, or with `./darkroom local up`.")
    try:
        document = json.loads(state.stack_file.read_bytes())
    except FileNotFoundError:
        raise NotRunning("The local stack is still starting, or is stopping. Try again in a moment.") from None
    if document.pop("version") != _VERSION:
        raise NotRunning("The local stack that runs is of another version. Stop it: `./darkroom local down`.")
    return RunningStack(**document)


def stop(state: State) -> bool:
    """Stop the stack, by force if it must be; False if none ran."""
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
