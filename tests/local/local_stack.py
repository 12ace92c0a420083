"""Runs `./darkroom local …` as a user does, and finds whatever of a stack is still running."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import local_aws.stacks.running
from darkroom_cli.local.project import PROJECT
from local_aws.build import inputs_now, made_from
from local_aws.processes import guardian
from local_aws.tests.started import Started

REPOSITORY = PROJECT.root
PHOTO = REPOSITORY / "tests" / "photos" / "seeding-16mp.jpg"
LENT = REPOSITORY / ".darkroom" / "build" / "tests"
"""A state folder with a whole build, and what it was made of, for the stacks of the tests."""
LENDERS = (LENT, REPOSITORY / ".darkroom")
"""The state folders whose downloaded packages a stack of the tests may reuse."""
_TEMPLATE = Path("sam", "build", "template.yaml")
_BUILT = ("build", "build.toml", "layers", "made-from")
_DOWNLOADED = (".aws-sam", "build.toml", "cache", "downloaded")
START_SECONDS = 300
STOP_SECONDS = 60


def document_in(printed: str) -> Any:
    """The JSON that a command with `--json` printed: its progress, on a busy machine, and its notes are around it."""
    begins = re.search(r"^[{\[]", printed, re.MULTILINE)
    assert begins is not None, printed
    return json.JSONDecoder().raw_decode(printed, begins.start())[0]


@dataclass(frozen=True, kw_only=True)
class LocalStack(local_aws.stacks.running.LocalStack):
    """A stack of a checkout, with its own state folder; the same checkout may run others at the same time.

    One that `builds_itself` has its layers unpacked, too; others have their archives.
    """

    checkout: Path = REPOSITORY
    variables: Mapping[str, str] = field(default_factory=dict)
    builds_itself: bool = False

    def darkroom(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and return its output, both streams in one."""
        return subprocess.run(
            self._command(arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    def start(self, *arguments: str | Path, under: Sequence[str | Path] = ()) -> subprocess.Popen[bytes]:
        """Start a command in its own session, as a terminal does, perhaps `under` another one; its output goes to
        `terminal.log`."""
        self.state.mkdir(parents=True, exist_ok=True)
        with self.terminal.open("ab") as output:
            return subprocess.Popen(
                [*under, *self._command(arguments)],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def operate(self, *options: str) -> tuple[subprocess.Popen[bytes], str]:
        """`darkroom operate`, started, and the address that it prints, with its token."""
        before = len(self.terminal.read_text()) if self.terminal.exists() else 0
        process = self.start("operate", *options)

        def said() -> str:
            return self.terminal.read_text()[before:]

        def address() -> re.Match[str] | None:
            return re.search(r"http://127\.0\.0\.1:\d+/\S*#token=[\w-]+", said())

        wait_until(lambda: address() or process.poll() is not None, "it serves", seconds=60)
        printed = address()
        assert printed is not None, said()
        return process, printed[0]

    @property
    def terminal(self) -> Path:
        """The output of the commands that `start` started."""
        return self.state / "terminal.log"

    @contextmanager
    def serving(self, *options: str) -> Iterator[LocalStack]:
        """Run the stack for the length of the block; it also ends if this process is killed."""
        self.borrow_build()
        process = self.start("local", "up", *options, under=guardian(STOP_SECONDS))
        try:
            wait_until(lambda: (self.state / "stack.json").exists() or process.poll() is not None, "the stack serves")
            if process.poll() is not None:
                raise RuntimeError(f"The local stack did not start:\n{self.terminal.read_text()}")
            yield self
        finally:
            interrupt(process)

    def processes(self) -> dict[int, str]:
        """The command of every living process whose variables, command or folder name this stack's state."""
        return Started(folder=self.state).processes()

    def ready_ports(self) -> list[int]:
        """The ports that the running emulator opened, if it got so far."""
        try:
            ready = json.loads((self.state / "run" / "session" / "ready.json").read_bytes())
        except FileNotFoundError:
            return []
        return [urlsplit(ready[name]).port or 0 for name in ("gateway_url", "front_url", "edge_url")]

    def borrow_build(self) -> None:
        """Reuse what another stack built and downloaded, so that a start takes seconds.

        A stack that will not build, because its checkout is this one and not edited since, needs no downloads.
        """
        is_built = not self.builds_itself and made_from(LENT / "sam") == inputs_now()
        lender = next(filter(_downloaded, LENDERS), None)
        if is_built:
            _lend(_BUILT, LENT, self.state)
            _rename(self.state / _TEMPLATE, f"{REPOSITORY}/", f"{self.checkout}/")
        if lender is not None and not (is_built and self.checkout == REPOSITORY):
            _lend(_DOWNLOADED, lender, self.state)
            # SAM CLI recognises a layer by the folder that it was built from.
            _rename(self.state / "sam" / "build.toml", f'"{REPOSITORY}/', f'"{self.checkout}/')

    def _command(self, arguments: Sequence[str | Path]) -> list[str | Path]:
        return [self.checkout / "darkroom", *arguments]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables, "DARKROOM_STATE_DIR": str(self.state)}


@contextmanager
def shared_stack(state: Path, *options: str, builds_itself: bool = False) -> Iterator[LocalStack]:
    """The stack that the tests of a tier share. Its build and its downloads are left for the other stacks."""
    stack = LocalStack(state=state, builds_itself=builds_itself)
    with stack.serving(*options):
        if made_from(LENT / "sam") != made_from(state / "sam"):
            shutil.rmtree(LENT, ignore_errors=True)
            whole = LENT.with_suffix(f".{os.getpid()}")
            _lend({*_BUILT, *_DOWNLOADED}, state, whole)
            # What is not built, the template names from where it lies.
            from_there = os.path.relpath(REPOSITORY, (state / _TEMPLATE).parent.resolve())
            _rename(whole / _TEMPLATE, f"{from_there}/", f"{REPOSITORY}/")
            whole.rename(LENT)  # atomically, so that nobody borrows half of it
        yield stack


def have_build(folder: Path) -> None:
    """Builds this checkout, unless that was done: by a stack in `folder`, once for all processes that ask."""
    LENT.parent.mkdir(parents=True, exist_ok=True)
    with LENT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made_from(LENT / "sam") != inputs_now():
            with shared_stack(folder):
                pass


def _lend(names: Iterable[str], lender: Path, borrower: Path) -> None:
    """Copies parts of SAM CLI's folder from one state folder to another; of the build only the functions, because the
    layers' archives are among the parts."""
    for name in names:
        source, target = lender / "sam" / name, borrower / "sam" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignore = shutil.ignore_patterns("*Layer") if name == "build" else None
            shutil.copytree(source, target, ignore=ignore, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, target)


def _rename(file: Path, before: str, after: str) -> None:
    file.write_text(file.read_text().replace(before, after))


def _downloaded(state: Path) -> bool:
    """Whether packages were downloaded there."""
    return (state / "sam" / "downloaded").exists()


def copy_of_the_checkout(folder: Path) -> Path:
    """The files that a stack is made from, free to edit; the environments are the checkout's own."""
    places = (
        *("cli", "events", "extensions", "functions", "layers", "local_aws"),
        *("requirements", "scripts", "statemachines"),
    )
    for name in places:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (REPOSITORY / name for name in ("darkroom", "template.yaml")):
        shutil.copy(file, folder / file.name)
    for name in ("samconfig.toml", ".python-version"):
        shutil.copy(REPOSITORY / name, folder / name)
    (folder / ".darkroom").mkdir()
    (folder / ".darkroom" / "venvs").symlink_to(REPOSITORY / ".darkroom" / "venvs")
    return folder


def edit(file: Path, before: str, after: str) -> None:
    """Replace a passage that must be there."""
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def interrupt(process: subprocess.Popen[bytes]) -> int:
    """Interrupt the whole group, as a terminal does for Ctrl-C, and return the exit status."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(STOP_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_open(port: int) -> bool:
    """Whether anybody listens on a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], Any], what: str, *, seconds: float = START_SECONDS) -> Any:
    """The first true value of a condition, which is looked at less often the longer it takes: it costs its process."""
    deadline, pause = time.monotonic() + seconds, 0.05
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited in vain: {what}")
        time.sleep(pause)
        pause = min(pause * 1.1, 0.5)
    return value
