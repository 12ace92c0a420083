"""A child process and everything that it starts end with it, with their supervisor, and within the grace period."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local_aws import stack
from local_aws.failures import CommandFailed
from local_aws.paths import State
from local_aws.processes import Child, Interrupted, Interrupts, run
from local_aws.tests.emulator_server import REPOSITORY, wait_until
from local_aws.tests.started import Started

# Started by a shell that does not wait for them: one in its own session, one that ignores SIGTERM.
_DAEMONS = "setsid sleep 600 & sh -c 'trap \"\" TERM; sleep 600' & touch started; wait"


@pytest.fixture
def here(tmp_path: Path) -> Started:
    """Finds the processes that this test started, by their folder."""
    return Started(folder=tmp_path)


def test_stopping_a_command_ends_all_that_it_started(here: Started) -> None:
    child = start_daemons(here.folder)
    child.stop()
    assert here.processes() == {}


def test_a_command_that_ends_leaves_no_child_behind(here: Started) -> None:
    with Child(
        ["sh", "-c", "setsid sleep 600 & exit 3"], environment=environment(), folder=here.folder, log=log(here)
    ) as child:
        wait_until(lambda: child.exit_status is not None, "the command ends")
        assert child.exit_status == 3
    assert here.processes() == {}


def test_a_command_that_ignores_sigterm_is_killed_after_its_grace(here: Started) -> None:
    command = ["sh", "-c", 'trap "" TERM; touch started; while :; do sleep 0.1; done']
    child = Child(command, environment=environment(), folder=here.folder, log=log(here), grace_seconds=0.2)
    wait_until((here.folder / "started").exists, "the command runs")
    child.stop()
    assert child.exit_status == 128 + signal.SIGKILL
    assert here.processes() == {}


@pytest.mark.parametrize("victim", ["supervisor", "guardian"])
def test_a_kill_of_the_supervisor_or_of_the_guardian_ends_the_command(here: Started, victim: str) -> None:
    program = (
        "import time; from pathlib import Path; from local_aws.processes import Child\n"
        f"Child(['sh', '-c', 'touch started; exec sleep 600'], environment={environment()!r},"
        f" folder=Path({str(here.folder)!r}), log=Path({str(log(here))!r}))\n"
        "time.sleep(600)"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", program], cwd=here.folder, env={**environment(), "PYTHONPATH": str(REPOSITORY)}
    )
    try:
        wait_until((here.folder / "started").exists, "the command runs")
        guardian = next(process for process, command in here.processes().items() if "guardian.py" in command)
        os.kill(supervisor.pid if victim == "supervisor" else guardian, signal.SIGKILL)
        wait_until(lambda: "sleep 600 " not in here.processes().values(), "the command is gone")
    finally:
        supervisor.kill()
        supervisor.wait()
    wait_until(lambda: not here.processes(), "everything is gone")


@pytest.mark.parametrize(
    ("on_sigterm", "seconds", "exit_status"),
    [
        pytest.param("time.sleep(1), Path('clean').touch(), sys.exit(0)", 60, 0, id="one that cleans up is waited for"),
        pytest.param("None", 0.5, -signal.SIGKILL, id="one that hangs is killed"),
    ],
)
def test_down_stops_the_process_that_holds_the_lock(
    here: Started, monkeypatch: pytest.MonkeyPatch, on_sigterm: str, seconds: float, exit_status: int
) -> None:
    program = (
        "import signal, sys, time; from pathlib import Path; from local_aws import stack\n"
        "from local_aws.paths import State\n"
        f"signal.signal(signal.SIGTERM, lambda *_: ({on_sigterm},))\n"
        f"with stack.held(State(folder=Path({str(here.folder)!r}))):\n"
        "    Path('held').touch()\n"
        "    while True: time.sleep(0.1)"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", program], cwd=here.folder, env={**environment(), "PYTHONPATH": str(REPOSITORY)}
    )
    try:
        wait_until((here.folder / "held").exists, "the lock is held")
        monkeypatch.setattr(stack, "_STOP_SECONDS", seconds)
        assert stack.stop(State(folder=here.folder))
        assert supervisor.wait(60) == exit_status
        assert (here.folder / "clean").exists() == (exit_status == 0)
        assert not stack.stop(State(folder=here.folder))
    finally:
        supervisor.kill()
        supervisor.wait()


def test_a_failed_command_is_reported_with_its_log(here: Started) -> None:
    with pytest.raises(CommandFailed) as failure:
        run(
            "the example",
            ["sh", "-c", "echo what went wrong; exit 7"],
            environment=environment(),
            folder=here.folder,
            log=log(here),
            interrupts=Interrupts(),
            show=lambda _: None,
        )
    assert failure.value.exit_status == 7
    assert failure.value.log.read_text() == "what went wrong\n"


def test_a_program_that_does_not_exist_is_a_failed_command(here: Started) -> None:
    with pytest.raises(CommandFailed, match="status 127"):
        run(
            "the example",
            [here.folder / "missing"],
            environment=environment(),
            folder=here.folder,
            log=log(here),
            interrupts=Interrupts(),
            show=lambda _: None,
        )


def test_only_the_first_signal_is_raised_and_later_ones_change_nothing() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with Interrupts() as interrupts:
            interrupts.check()
            with pytest.raises(Interrupted) as stop, interrupts.raised_at_once():
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)  # during the clean-up
            assert stop.value.exit_status == 128 + signal.SIGTERM
            with pytest.raises(Interrupted):
                interrupts.pause(600)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def start_daemons(folder: Path) -> Child:
    """A command with children that would outlive it."""
    child = Child(["sh", "-c", _DAEMONS], environment=environment(), folder=folder, log=folder / "log")
    wait_until((folder / "started").exists, "the command runs")
    return child


def environment() -> dict[str, str]:
    """Enough to run a shell."""
    return {"PATH": os.environ["PATH"]}


def log(stack: Started) -> Path:
    """Where the output goes."""
    return stack.folder / "log"
