"""The emulator's process: what it binds, what reaches it, and that it leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local_aws.tests.emulator_server import (
    EmulatorServer,
    create_function,
    emulator_server,
    invoke,
    listening,
    wait_until,
)
from local_aws.tests.queues import queue

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

PROCESS_ID = "import os\ndef handler(event, context):\n    return os.getpid()"
HANGING = "import os, time\nprint(os.getpid(), file=open(os.environ['FILE'], 'w'), flush=True)\ntime.sleep(600)"


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_hanging_function(server: EmulatorServer, folder: Path) -> int:
    """Start a function that answers nothing for minutes, and return its process id."""
    file = folder / "process_id"
    create_function(server, "hanging", HANGING, Timeout=900, Environment={"Variables": {"FILE": str(file)}})
    server.client("lambda").invoke(FunctionName="hanging", InvocationType="Event")
    return int(wait_until(lambda: file.exists() and file.read_text().strip(), "the function runs"))


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM], [signal.SIGKILL]])
def test_the_functions_end_with_the_emulator(tmp_path: Path, signals: list[signal.Signals]) -> None:
    with emulator_server(tmp_path / "data") as server:
        create_function(server, "idle", PROCESS_ID)
        functions = [invoke(server, "idle"), start_hanging_function(server, tmp_path)]
        assert all(is_running(process_id) for process_id in functions)

        for number in signals:
            server.process.send_signal(number)
        server.process.wait(timeout=30)

        wait_until(lambda: not any(is_running(process_id) for process_id in functions), "the functions are gone")
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", urlsplit(server.front_url).port or 0)) != 0


def test_the_emulator_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    starter = f"""
import os, signal, sys
from pathlib import Path
from local_aws.tests.emulator_server import emulator_server
with emulator_server(Path({str(tmp_path / "data")!r})) as server:
    print(server.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(
        [sys.executable, "-c", starter], env=environment, capture_output=True, text=True, check=False
    )
    process_id = int(answer.stdout)
    wait_until(lambda: not is_running(process_id), "the emulator is gone")


AMBIENT = {"AWS_PROFILE": "production", "AWS_ENDPOINT_URL_S3": "http://203.0.113.1", "GATEWAY_PORT": "1", "SECRET": "x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("another")


@pytest.fixture(scope="module")
def another(folder: Path) -> Iterator[EmulatorServer]:
    """An emulator on a machine with settings of its own, without one correction."""
    with emulator_server(folder, "--without", "message_delay", **AMBIENT) as server:
        yield server


def test_the_ready_file_names_the_ports_and_the_process_to_its_owner_alone(
    another: EmulatorServer, folder: Path
) -> None:
    ready = json.loads((folder / "ready.json").read_text())
    urls = {name: getattr(another, name) for name in ("gateway_url", "front_url", "edge_url")}
    assert ready == {**urls, "secret": another.secret, "pid": another.process.pid}
    assert (folder / "ready.json").stat().st_mode & 0o777 == 0o600


def test_the_emulator_listens_on_its_own_ports_of_this_machine_alone(emulator: EmulatorServer) -> None:
    sockets = listening(emulator)
    assert {address for address, _ in sockets} == {"0100007F"}
    ports = {port for _, port in sockets}
    own = (emulator.gateway_url, emulator.front_url, emulator.edge_url)
    assert {urlsplit(url).port for url in own} <= ports


def test_a_port_that_is_taken_ends_the_start_with_a_word_of_advice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RuntimeError) as failure:
        port = taken.getsockname()[1]
        with emulator_server(tmp_path, "--gateway-port", str(port)):
            pass
    assert f"Port {port} cannot be used" in str(failure.value)


def test_the_machines_environment_reaches_neither_the_emulator_nor_its_functions(another: EmulatorServer) -> None:
    create_function(another, "variables", "import os\ndef handler(event, context):\n    return dict(os.environ)")
    assert not AMBIENT.keys() & invoke(another, "variables").keys()
    assert another.client("s3").create_bucket(Bucket="a-bucket")


def test_a_correction_can_be_left_out_by_name(another: EmulatorServer) -> None:
    assert queue(another).send("late", DelaySeconds=901)
