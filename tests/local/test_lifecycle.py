"""However and whenever the local stack is stopped, nothing of it is left."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.local.local_stack import STOP_SECONDS, LocalStack, copy_of_the_checkout, interrupt, is_open, wait_until

pytestmark = pytest.mark.promise("interrupts")

_MOMENTS = 10 if os.environ.get("LONG") == "1" else 5
_SEED = 20261121


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A running stack, and how long its start took here and now."""

    stack: LocalStack
    process: subprocess.Popen[bytes]
    start_seconds: float


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A stack that the last test stops."""
    started = LocalStack(state=tmp_path_factory.mktemp("serving"))
    started.borrow_build()
    began = time.monotonic()
    process = started.start("local", "up", "--concurrency", "5000")
    try:
        wait_until(lambda: (started.state / "stack.json").exists() or process.poll() is not None, "the stack serves")
        yield Serving(stack=started, process=process, start_seconds=time.monotonic() - began)
    finally:
        interrupt(process)


@pytest.fixture(scope="module")
def moments_seconds(serving: Serving) -> list[float]:
    """Random moments during a start, one in each equal part of it."""
    chance = random.Random(_SEED)
    return [serving.start_seconds * (number + chance.random()) / _MOMENTS for number in range(_MOMENTS)]


def test_how_many_functions_run_at_once_is_an_option(serving: Serving) -> None:
    settings = serving.stack.client("lambda").get_account_settings()
    assert settings["AccountLimit"]["ConcurrentExecutions"] == 10_000  # room for two such functions


@pytest.mark.parametrize("number", range(_MOMENTS))
def test_an_interrupt_at_a_random_moment_of_the_start_leaves_nothing(
    another_stack: LocalStack, moments_seconds: list[float], number: int
) -> None:
    process = another_stack.start("local", "up")
    time.sleep(moments_seconds[number])
    ports = another_stack.ready_ports()
    interrupt(process)
    assert_nothing_is_left(another_stack, ports)


@pytest.mark.parametrize("number", [_MOMENTS // 5, 3 * _MOMENTS // 5])
def test_two_interrupts_within_half_a_second_leave_nothing(
    another_stack: LocalStack, moments_seconds: list[float], number: int
) -> None:
    process = another_stack.start("local", "up")
    time.sleep(moments_seconds[number])
    ports = another_stack.ready_ports()
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    interrupt(process)
    assert_nothing_is_left(another_stack, ports)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_first_process_alone_is_enough(another_stack: LocalStack, number: int) -> None:
    process = another_stack.start("local", "up")
    wait_until(another_stack.ready_ports, "the emulator answers")
    ports = another_stack.ready_ports()
    process.send_signal(number)
    assert process.wait(STOP_SECONDS) == 128 + number
    assert_nothing_is_left(another_stack, ports)


def test_a_killed_supervisor_takes_everything_with_it_and_its_stack_file_counts_no_more(
    another_stack: LocalStack,
) -> None:
    process = another_stack.start("local", "up")
    wait_until((another_stack.state / "stack.json").exists, "the stack serves")
    ports = another_stack.ready_ports()
    process.kill()
    process.wait()
    wait_until(lambda: not another_stack.processes(), "all processes are gone", seconds=STOP_SECONDS)
    assert not any(is_open(port) for port in ports)

    deploy = another_stack.darkroom("local", "deploy")
    assert deploy.returncode == 1
    assert "No local stack runs" in deploy.stdout

    process = another_stack.start("local", "up")
    wait_until(lambda: not (another_stack.state / "stack.json").exists(), "the next start removes it")
    assert interrupt(process) == 128 + signal.SIGINT


def test_a_second_stack_in_the_same_state_folder_is_refused_and_the_first_serves_on(serving: Serving) -> None:
    second = serving.stack.darkroom("local", "up", "--then-exit")
    assert second.returncode == 1
    assert "runs already" in second.stdout
    assert is_open(int(serving.stack.api_url.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("environments", "background"), [("dev", "sleep 600"), ("emulator sam runtime", "setsid sleep 600")]
)
def test_an_interrupted_set_up_of_the_environments_leaves_nothing(
    tmp_path: Path, environments: str, background: str
) -> None:
    checkout = copy_of_the_checkout(tmp_path / "checkout")
    setup = checkout / "scripts" / "setup" / "environments.sh"
    setup.write_text(
        f'#!/bin/sh\n[ "$*" = "{environments}" ] || exit 0\n'
        f'{background} &\ntouch "$DARKROOM_STATE_DIR/asked"\nsleep 600\n'
    )
    slow = LocalStack(state=tmp_path / "state", checkout=checkout)
    process = slow.start("local", "up")
    wait_until((slow.state / "asked").exists, "the set-up began")
    process.terminate()
    assert process.wait(STOP_SECONDS) == 128 + signal.SIGTERM
    assert_nothing_is_left(slow, [])


def test_what_a_failed_build_said_is_shown_and_nothing_is_left(another_stack: LocalStack, tmp_path: Path) -> None:
    broken = LocalStack(state=another_stack.state, checkout=copy_of_the_checkout(tmp_path / "checkout"))
    (broken.checkout / "template.yaml").write_text("Resources: [")
    failed = broken.darkroom("local", "up", "--then-exit")
    assert failed.returncode == 1
    assert "sam build failed" in failed.stdout
    assert "Failed to parse template" in failed.stdout
    assert_nothing_is_left(broken, [])


def test_down_stops_a_serving_stack_from_another_terminal_and_that_is_no_failure(serving: Serving) -> None:
    ports = serving.stack.ready_ports()
    down = serving.stack.darkroom("local", "down")
    assert (down.returncode, down.stdout) == (0, "Stopped.\n")
    assert serving.process.wait(STOP_SECONDS) == 0
    assert_nothing_is_left(serving.stack, ports)
    assert "No local stack is running" in serving.stack.darkroom("local", "down").stdout


def assert_nothing_is_left(stack: LocalStack, ports: list[int]) -> None:
    """No process, no port, no stack.json, no profile, no temporary file."""
    assert stack.processes() == {}
    assert [port for port in ports if is_open(port)] == []
    assert not (stack.state / "stack.json").exists()
    assert not (stack.state / "aws" / "config").exists()
    assert not (stack.state / "run" / "session").exists()
