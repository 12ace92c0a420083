"""Starts the embedded AWS without a supervisor, for tests of the emulator itself."""

import functools
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local_aws.stacks.clients import isolated_clients, of_account

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(sys.prefix).parent
"""The environments `emulator` and `runtime`, beside that of the tests."""
BYTECODE = {
    "PYTHONPYCACHEPREFIX": str(ENVIRONMENTS.parent / "bytecode"),
    **({} if "PYTHONPYCACHEPREFIX" in os.environ else {"PYTHONDONTWRITEBYTECODE": "1"}),
}
"""Compiled modules save four fifths of a start. They are only read where the tests' own are not written there."""
ACCOUNT_ID = "000000000000"
REGION = "us-east-1"
ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/test"


@dataclass(frozen=True, kw_only=True)
class EmulatorServer:
    """A running emulator and the process that serves it."""

    gateway_url: str
    front_url: str
    edge_url: str
    secret: str
    process: subprocess.Popen[bytes]

    def client(self, service: str) -> Any:
        """Return an SDK client that knows this emulator and nothing of the machine's AWS configuration."""
        return _clients(self.gateway_url, self.secret)(service)


@functools.cache
def _clients(gateway_url: str, secret: str) -> Callable[[str], Any]:
    return isolated_clients(gateway_url, REGION, of_account(secret), config=Config(retries={"total_max_attempts": 1}))


def output_of(program: str, *arguments: str | Path) -> str:
    """What a program prints that runs in the emulator's environment."""
    completed = subprocess.run(
        [ENVIRONMENTS / "emulator" / "bin" / "python", "-c", program, *arguments],
        env={"PYTHONPATH": str(REPOSITORY), **BYTECODE},
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


@contextmanager
def emulator_server(data_dir: Path, *options: str, **extra_environment: str) -> Iterator[EmulatorServer]:
    """Run an emulator with the server's options; it always ends with the block."""
    ready_file = data_dir / "ready.json"
    data_dir.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        *(ENVIRONMENTS / "emulator" / "bin" / "python", "-m", "local_aws.server"),
        *("--ready-file", ready_file, "--data-dir", data_dir),
        *("--function-python", ENVIRONMENTS / "runtime" / "bin" / "python"),
        *options,
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        **BYTECODE,
        **extra_environment,
    }
    with (data_dir / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        ready = _await_ready(ready_file, process, data_dir / "log")
        ready.pop("pid")
        yield EmulatorServer(**ready, process=process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        finally:
            process.kill()


def _await_ready(ready_file: Path, process: subprocess.Popen[bytes], log: Path) -> dict[str, str]:
    deadline = time.monotonic() + 60
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"The emulator did not start:\n{log.read_text()}")
        time.sleep(0.02)
    ready: dict[str, str] = json.loads(ready_file.read_text())
    return ready


def listening(server: EmulatorServer) -> set[tuple[str, int]]:
    """The addresses, as /proc writes them, and the ports at which the emulator's process listens."""
    waits = "0A"
    descriptors = []
    for entry in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed since
            descriptors.append(str(entry.readlink()))
    inodes = {name.removeprefix("socket:[").removesuffix("]") for name in descriptors if name.startswith("socket:")}
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    ends = [row[1].partition(":") for row in rows if row[3] == waits and row[9] in inodes]
    return {(address, int(port, 16)) for address, _, port in ends}


def package(files: dict[str, str]) -> bytes:
    """Return a deployment package with these files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in files.items():
            opened.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return archive.getvalue()


def create_function(server: EmulatorServer, name: str, source: str, **configuration: Any) -> str:
    """Create a Python function whose module `app` is the source given, and return its ARN."""
    lambda_ = server.client("lambda")
    arn: str = lambda_.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="app.handler",
        Role=ROLE,
        Code={"ZipFile": package({"app.py": source})},
        **configuration,
    )["FunctionArn"]
    return arn


def invoke(server: EmulatorServer, name: str, event: Any = None) -> Any:
    """Invoke a function synchronously and return its payload."""
    response = server.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event or {}).encode())
    return json.loads(response["Payload"].read())


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Return the first true value of a condition."""
    deadline = time.monotonic() + 60
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited in vain: {what}")
        time.sleep(0.02)
    return value


def refusal(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    """The error code and message with which a request is refused."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def in_plain_http(client: Any) -> Any:
    """The client, modified to speak plain http to AWS."""

    def say_so(request: Any, **_: object) -> None:
        request.headers["X-Forwarded-Proto"] = "http"

    client.meta.events.register("before-send", say_so)
    return client


def function_resource(source: str, **properties: Any) -> dict[str, Any]:
    """A function of a stack, whose code is `source`."""
    function = {"Runtime": "python3.13", "Handler": "index.handler", "Role": ROLE, "Code": {"ZipFile": source}}
    return {"Type": "AWS::Lambda::Function", "Properties": {**function, **properties}}


@contextmanager
def stack(server: EmulatorServer, resources: dict[str, Any]) -> Iterator[str]:
    """Create a stack of these resources, and delete it afterwards."""
    name = f"stack-{uuid4().hex[:8]}"
    cloudformation = server.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
    try:
        settled = _settled(server, name)
        assert settled["StackStatus"] == "CREATE_COMPLETE", failures(server, name)
        yield name
    finally:
        cloudformation.delete_stack(StackName=name)
        wait_until(lambda: name not in _stack_names(server), f"{name} is deleted")


def physical_ids(server: EmulatorServer, name: str) -> dict[str, str]:
    """The physical ids of a stack's resources."""
    resources = server.client("cloudformation").describe_stack_resources(StackName=name)["StackResources"]
    return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}


def update_stack(server: EmulatorServer, name: str, resources: dict[str, Any]) -> None:
    """Update a stack to these resources."""
    server.client("cloudformation").update_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
    assert _settled(server, name)["StackStatus"] == "UPDATE_COMPLETE", failures(server, name)


def reasons_for_failed_stack(server: EmulatorServer, resources: dict[str, Any]) -> str:
    """Create a stack that must fail, and return why it did; an empty string if it did not."""
    name = f"stack-{uuid4().hex[:8]}"
    cloudformation = server.client("cloudformation")
    cloudformation.create_stack(
        StackName=name, TemplateBody=json.dumps({"Resources": resources}), OnFailure="DO_NOTHING"
    )
    _settled(server, name)
    reasons = failures(server, name)
    cloudformation.delete_stack(StackName=name)
    return reasons


def failures(server: EmulatorServer, name: str) -> str:
    """Return the reasons in a stack's events for what failed."""
    events = server.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    return "\n".join(event.get("ResourceStatusReason", "") for event in events if "FAILED" in event["ResourceStatus"])


def _settled(server: EmulatorServer, name: str) -> Any:
    cloudformation = server.client("cloudformation")

    def settled() -> Any:
        described = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        return None if described["StackStatus"].endswith("IN_PROGRESS") else described

    return wait_until(settled, f"{name} has settled")


def _stack_names(server: EmulatorServer) -> list[str]:
    gone = "DELETE_COMPLETE"
    summaries = server.client("cloudformation").list_stacks()["StackSummaries"]
    return [summary["StackName"] for summary in summaries if summary["StackStatus"] != gone]
