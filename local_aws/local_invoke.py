"""Runs `sam local invoke` against the local stack: a real function in a container, with the stack's tables, buckets."""

from __future__ import annotations

import fcntl
import io
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from local_aws import docker_engine, lambda_base_image, stack
from local_aws.build import local_options, prepare_sam, sam_command, sam_environment
from local_aws.gate import relayed
from local_aws.layers import deployed_template
from local_aws.logs import folder_name
from local_aws.paths import State
from local_aws.project import given
from local_aws.stacks.running import RunningStack, recorded_stack

if TYPE_CHECKING:
    pass

_TEMPLATE, _VARIABLES = "template.json", "variables.json"
_FUNCTION = "AWS::Lambda::Function"
_OTHERS = ("AWS::Serverless::Function", "AWS::Serverless::LayerVersion", "AWS::CloudFormation::Stack")
_CHUNK_BYTES = 65_536
_INTERRUPTED_SAM_SECONDS = 3
_CONTAINER = "SAM_CONTAINER_ID: "
# SAM CLI's last output on Python 3.13, when it closes its connection to the engine: of no use to anybody.
_NOISE = "Exception ignored in: <urllib3.response.HTTPResponse"


class UnknownFunction(Exception):
    """The stack has no such function; the message lists those it has."""


class NotReachable(Exception):
    """The Docker engine's containers cannot reach this machine."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The function's return value, or why there is none."""

    payload: Any
    error: str | None = None


def logical_id(function: str) -> str:
    """The resource of a function's folder: SubmitImageFunction for submit_image."""
    return "".join(word.capitalize() for word in function.split("_")) + "Function"


def invoke(state: State, function: str, event: Path) -> Answer:
    """Invoke a function of the running stack with the event in a file; its log goes to standard error.

    The code is that of the last deployment. It runs in AWS's base image if the engine has it, otherwise in our own.
    Raises NotRunning, UnknownFunction, NoDockerEngine, ImageNotBuilt or NotReachable.
    """
    serving = stack.running(state)
    name = logical_id(function)
    running = _stack_with(name, recorded_stack(serving), serving.extensions)
    variables = _variables(running, name)
    docker_host = docker_engine.host()
    state.temporary.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="invoke-", dir=state.temporary) as scratch, _one_at_a_time():
        lambda_base_image.ensure()
        try:
            with _relay(serving.aws_endpoint_url, state.relay_file) as endpoint_url:
                variables |= {"AWS_ENDPOINT_URL": endpoint_url}
                _write_project(Path(scratch), running, name, variables, fetched=state.session / "invoked")
                return _sam_local_invoke(state, name, event, Path(scratch), docker_host)
        finally:
            lambda_base_image.prune()


def _stack_with(name: str, running: RunningStack, extensions: Iterable[str]) -> RunningStack:
    """The stack that has a function: the project's, or one of its extensions that are deployed."""
    deployed = [extension for extension in given().extensions if extension.name in extensions]
    stacks = [running, *(replace(running, name=extension.stack_name) for extension in deployed)]
    functions = [(stack, set(stack.physical_ids(_FUNCTION))) for stack in stacks]
    for one, names in functions:
        if name in names:
            return one
    known = ", ".join(sorted(folder_name(other) for _, names in functions for other in names))
    raise UnknownFunction(f"There is no function {folder_name(name)!r}. There are: {known}.")


def _variables(running: RunningStack, name: str) -> dict[str, str]:
    """The deployed function's environment: the real names of its tables, buckets and queues."""
    function = running.physical_id(name)
    deployed = running.client("lambda").get_function_configuration(FunctionName=function)
    return dict(deployed["Environment"]["Variables"])


def _write_project(
    scratch: Path, running: RunningStack, name: str, variables: Mapping[str, str], *, fetched: Path
) -> None:
    """The deployed template, with every variable declared and the function's code and layers in the folder `fetched`.

    SAM CLI passes on only variables that the template declares, and ours declares no AWS_ENDPOINT_URL, because
    functions do not know that they run locally. See "Environment variables file" in SAM's guide to `sam local invoke`.
    """
    template = deployed_template(running.client("cloudformation"), running.name)
    for_all = template.get("Globals", {}).get("Function", {}).get("Layers")
    layers = set(_named([for_all, template["Resources"][name]["Properties"].get("Layers")]))
    for resource_id, resource in list(template["Resources"].items()):
        if resource_id.startswith("Fn::ForEach::"):  # SAM CLI expands it; it contains no function or layer
            continue
        properties = resource.get("Properties", {})
        if resource_id in layers:
            properties["ContentUri"] = _fetched(running, properties["ContentUri"], fetched)
        elif resource_id == name:
            properties["CodeUri"] = _fetched(running, properties["CodeUri"], fetched)
        elif resource["Type"] in _OTHERS:
            del template["Resources"][resource_id]  # SAM CLI would warn that its code or template is not here
    properties = template["Resources"][name]["Properties"]
    declared = properties.setdefault("Environment", {}).setdefault("Variables", {})
    declared |= dict.fromkeys(variables.keys() - declared.keys(), "")
    (scratch / _TEMPLATE).write_text(json.dumps(template))
    (scratch / _VARIABLES).write_text(json.dumps({name: variables}))


def _named(layers: Any) -> Iterator[str]:
    """The layers that a function has, or may have under a condition."""
    if isinstance(layers, list):
        for each in layers:
            yield from _named(each)
    elif isinstance(layers, dict):
        if "Ref" in layers:
            yield layers["Ref"]
        yield from _named(layers.get("Fn::If"))


def _fetched(running: RunningStack, uri: str, fetched: Path) -> str:
    """What SAM CLI uploaded when it deployed, unpacked once: the name of an upload is the hash of its content."""
    location = urlsplit(uri)
    key = location.path.lstrip("/")
    folder = fetched / key
    if not folder.exists():
        packed = io.BytesIO()
        running.client("s3").download_fileobj(location.netloc, key, packed)
        fetched.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=fetched) as unpacked, zipfile.ZipFile(packed) as archive:
            archive.extractall(Path(unpacked, "whole"))
            Path(unpacked, "whole").rename(folder)  # atomically, so that an interrupt leaves no half of it
    return str(folder)


def _sam_local_invoke(state: State, name: str, event: Path, scratch: Path, docker_host: str) -> Answer:
    prepare_sam(state)
    command: list[str | Path] = [
        *(*sam_command(), "local", "invoke", name, "--template-file", scratch / _TEMPLATE),
        *("--event", event.resolve(), "--env-vars", scratch / _VARIABLES),
        *("--skip-pull-image", "--layer-cache-basedir", scratch / "layers"),
        *local_options(),
    ]
    sam = subprocess.Popen(
        command,
        env={**sam_environment(state), "DOCKER_HOST": docker_host},
        cwd=state.sam,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert sam.stdout is not None and sam.stderr is not None  # noqa: S101 -- both are pipes
    containers: list[str] = []
    passing = threading.Thread(target=_pass_on, args=(sam.stderr, containers), daemon=True)
    passing.start()
    try:
        output = sam.stdout.read()
        sam.wait()
        passing.join()
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):  # the terminal interrupted SAM CLI too
            sam.wait(_INTERRUPTED_SAM_SECONDS)
        sam.kill()
        for container in containers:
            with suppress(subprocess.CalledProcessError):  # SAM CLI has removed it
                docker_engine.docker("rm", "--force", container)
        raise
    return read_answer(output, sam.returncode)


def _pass_on(logs: IO[str], containers: list[str]) -> None:
    quiet = False
    for line in logs:
        if line.startswith(_CONTAINER):
            containers.append(line.removeprefix(_CONTAINER).strip())
        quiet = quiet or line.startswith(_NOISE)
        if not quiet:
            sys.stderr.write(line)
            sys.stderr.flush()


def read_answer(output: str, exit_status: int) -> Answer:
    """Interpret SAM CLI's output: it exits with 0 even if the function failed or timed out."""
    if exit_status != 0:
        return Answer(payload=None, error=f"sam local invoke failed with status {exit_status}: it says why above.")
    try:
        payload = json.loads(output)
    except ValueError:
        said = output.strip()
        return Answer(payload=said or None, error="The function did not answer: it timed out or its process ended.")
    if isinstance(payload, dict) and "errorType" in payload:
        return Answer(payload=payload, error=f"{payload['errorType']}: {payload.get('errorMessage')}")
    return Answer(payload=payload)


@contextmanager
def _relay(endpoint_url: str, relay_file: Path) -> Iterator[str]:
    """Let containers reach the emulator, which listens only on the loopback address; yields its address for them.

    `--docker-network host` does not help: SAM CLI still connects the container to the bridge. So for as long as the
    function runs, a port is open on the bridge's address on this machine, which only containers see, and `relay_file`
    says which: the emulator serves no other host. URLs that the function presigns use it too, and stop working with it.
    """
    emulator = urlsplit(endpoint_url)
    gateway = docker_engine.bridge_address()
    try:
        listener = socket.create_server((gateway, 0))
    except OSError as error:
        raise NotReachable(
            f"The Docker engine's network ({gateway}) is not on this machine ({error.strerror}), so its containers "
            "cannot reach the local stack. Use an engine that runs here, not in a virtual machine or on another host."
        ) from None
    with listener:
        accepting = threading.Thread(target=_accept, args=(listener, (emulator.hostname, emulator.port)), daemon=True)
        accepting.start()
        host = f"{gateway}:{listener.getsockname()[1]}"
        try:
            with relayed(relay_file, host):
                yield f"http://{host}"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
            accepting.join()


def _accept(listener: socket.socket, emulator: tuple[str, int]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return  # closed: the function has answered
        threading.Thread(target=_forward, args=(client, emulator), daemon=True).start()


def _forward(client: socket.socket, emulator: tuple[str, int]) -> None:
    """Copy bytes both ways until either side closes: HTTP needs no half-closed connections."""
    with client, suppress(OSError), socket.create_connection(emulator) as server:
        opposite = {client: server, server: client}
        while True:
            readable, _, _ = select.select(opposite, [], [])
            for side in readable:
                data = side.recv(_CHUNK_BYTES)
                if not data:
                    return
                opposite[side].sendall(data)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """An image name of our own: SAM CLI's depends only on the layers' names, so two checkouts would mix up layers."""
    with Path(tempfile.gettempdir(), f"{given().name}-invoke-{os.getuid()}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
