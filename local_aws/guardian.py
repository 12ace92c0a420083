"""Runs one command and kills everything it started: when it ends, or when its starter asks for it or dies.

Usage: python -I -S guardian.py STARTER_PID GRACE_SECONDS COMMAND…

Runs between the supervisor and each command that it starts. SIGTERM, or the starter's death of any kind, ends the
command (SIGTERM, then SIGKILL after the grace period); then everything that the command itself started is killed. It
uses only the standard library, so that it starts fast.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

# prctl(2)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_LEFTOVERS_SECONDS = 2.0


def main() -> int:
    """Run the command; return its exit status as a shell reports it."""
    starter, grace_seconds, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # Orphans of the command become children of this process, so that it can find them all.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != starter:
        return 1
    guardian = os.getpid()
    child = os.fork()
    if child == 0:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        try:
            os.execvp(command[0], command)  # noqa: S606 - the command is the supervisor's
        except OSError as error:
            os.write(sys.stderr.fileno(), f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    status = _await_end(child, grace_seconds)
    _kill_leftovers()
    return status if status >= 0 else 128 - status


def _await_end(child: int, grace_seconds: float) -> int:
    """Wait until the command ends on its own, or end it when told to."""
    deadline: float | None = None
    while True:
        if deadline is None:
            signal_number = signal.sigwait(_WATCHED)
            if signal_number != signal.SIGCHLD:
                deadline = time.monotonic() + grace_seconds
                os.kill(child, signal.SIGTERM)
        else:
            signal.sigtimedwait(_WATCHED, max(0.0, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                os.kill(child, signal.SIGKILL)
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return os.waitstatus_to_exitcode(ended[1])


def _kill_leftovers() -> None:
    """Kill this process's children until none is left; a killed child's own children become ours and are next."""
    deadline = time.monotonic() + _LEFTOVERS_SECONDS
    with suppress(ChildProcessError):  # raised when no child is left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for child in _children():
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                time.sleep(0.01)


def _children() -> list[int]:
    own, children = os.getpid(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # proc(5): "pid (name) state ppid …"; a name may contain anything.
                if int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1]) == own:
                    children.append(int(entry.name))
    return children


if __name__ == "__main__":
    sys.exit(main())
