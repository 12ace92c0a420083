"""Kills function processes of one stack at random, with SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RUNTIME_CLIENT = b"awslambdaric"
_LOOK_SECONDS = 0.1


@contextmanager
def killing(
    state: Path, functions: frozenset[str], *, progress: Callable[[], int], every: int, seed: int
) -> Iterator[Counter[str]]:
    """Kills one process of `functions` (by their names in the template) each time that `progress` has grown by `every`,
    plus or minus a half, as long as the block lasts. Yields the count of kills by function, which grows meanwhile.

    Kills follow progress and not the clock: on a slow machine no image would ever be finished. It prefers a process
    that has just worked, if there is any.
    """
    kills: Counter[str] = Counter()
    stop = threading.Event()
    chance = random.Random(seed)

    def kill_on() -> None:
        worked: dict[int, int] = {}
        due = progress() + every
        while not stop.wait(_LOOK_SECONDS):
            before, worked = worked, {process: _cpu_ticks(process) for process, _ in _processes(state, functions)}
            if progress() < due:
                continue
            living = sorted(_processes(state, functions))
            busy = [(process, name) for process, name in living if _cpu_ticks(process) > before.get(process, 0)]
            if living:
                process, function = chance.choice(busy or living)
                if _kill(process, state):
                    kills[function] += 1
                    due = progress() + chance.randint(every // 2, every * 3 // 2)

    thread = threading.Thread(target=kill_on, name="killer", daemon=True)
    thread.start()
    try:
        yield kills
    finally:
        stop.set()
        thread.join()


def ticks(state: Path, functions: frozenset[str]) -> int | None:
    """How long the living processes of `functions` have worked, or None if one of them is working now: while it stays
    the same, none of them works."""
    living = [process for process, _ in _processes(state, functions)]
    return None if any(map(_is_runnable, living)) else sum(map(_cpu_ticks, living))


def _processes(state: Path, functions: frozenset[str]) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (environment := _environment(int(entry.name), state)):
            name = environment.get(b"AWS_LAMBDA_FUNCTION_NAME", b"").decode()
            function = next((function for function in functions if f"-{function}-" in name), None)
            if function is not None:
                yield int(entry.name), function


def _environment(process: int, state: Path) -> dict[bytes, bytes] | None:
    """The environment of a process that runs a function of the stack in `state`; None for any other process."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if _RUNTIME_CLIENT not in command:
            return None
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to another user
        return None
    environment = dict(variable.partition(b"=")[::2] for variable in variables)
    own = environment.get(b"TMPDIR", b"").startswith(os.fsencode(state.resolve()) + b"/")
    return environment if own else None


def _cpu_ticks(process: int) -> int:
    fields = _stat(process)
    return int(fields[11]) + int(fields[12]) if fields else 0  # utime and stime, see proc_pid_stat(5)


def _is_runnable(process: int) -> bool:
    return _stat(process)[:1] in (["R"], ["D"])  # running, waiting for a processor, or for a disk


def _stat(process: int) -> list[str]:
    try:
        # The second field, the command's name, may contain spaces, but ends with the last parenthesis.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _kill(process: int, state: Path) -> bool:
    # The descriptor refers to this very process: by the time of the signal its number may be another's.
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        try:
            if _environment(process, state) is not None:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
