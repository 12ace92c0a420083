"""Serves the embedded AWS: MiniStack and its corrections on one port, the deployed HTTP API and CloudFront on others.

Usage: python -m local_aws.server --ready-file FILE --data-dir DIR --function-python PATH

The ready file names all three ports and the secret of this run, with which requests to AWS's services must be signed.
"""

import argparse
import asyncio
import ctypes
import gc
import importlib
import json
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from local_aws import clock
from local_aws.asgi import Application
from local_aws.corrections import NAMES, apply_corrections
from local_aws.edge import edge
from local_aws.emulator import Emulator
from local_aws.front import front
from local_aws.gate import api_gate, aws_gate
from local_aws.ministack_internals import internals
from local_aws.stacks.record import ACCESS_KEY_ID, write_private

_REGION = "us-east-1"
_PR_SET_PDEATHSIG = 1

_SWITCH_SECONDS = 0.0005
"""How long a thread may keep the others waiting: a request passes through several, and each would wait for the default
of 5 ms whenever another request is worked on."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent process dies."""
    gc.disable()  # until all is imported, which stays: no collection has to look at it
    options = _parse(arguments)
    _die_with_parent()
    sys.setswitchinterval(_SWITCH_SECONDS)
    options.ready_file.unlink(missing_ok=True)
    gateway, api, viewers = (_listen(port) for port in (options.gateway_port, options.front_port, options.edge_port))
    emulator = Emulator(
        gateway_url=_url(gateway),
        edge_url=_url(viewers),
        function_python=options.function_python.absolute(),
        data_dir=options.data_dir.resolve(),
        layers_dir=options.layers_dir,
        clock={name: os.environ[name] for name in clock.VARIABLES if name in os.environ},
        concurrency=options.concurrency,
        idle_seconds=options.idle_seconds,
        initialised_ahead=options.initialise,
    )
    secret = secrets.token_urlsafe(32)
    _isolate_environment(emulator, port=_port(gateway), secret=secret, enforce_iam=options.enforce_iam)
    if not options.stock:
        apply_corrections(emulator, without=options.without)
    aws: Application = internals("app").app
    if not options.stock:
        aws = aws_gate(
            aws,
            port=_port(gateway),
            api_port=_port(api),
            relay_file=options.relay_file,
            how_to_sign=options.how_to_sign,
            how_to_allow=options.how_to_allow,
        )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    gated = api_gate(front, port=_port(api), how_to_allow=options.how_to_allow)
    shown = api_gate(edge, port=_port(viewers), how_to_allow=options.how_to_allow, may_be_shown=True)
    gc.freeze()
    gc.enable()
    importlib.import_module("uvloop").run(
        _serve({gateway: aws, api: gated, viewers: shown}, _announcement(gateway, api, viewers, secret), options)
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local_aws.server", description=__doc__.partition("\n")[0])
    parser.add_argument("--ready-file", type=Path, required=True, help="written once both ports answer, as JSON")
    parser.add_argument("--data-dir", type=Path, required=True, help="everything that the emulator writes goes here")
    parser.add_argument("--layers-dir", type=Path, help="unpacked layers go here, for other emulators, too")
    parser.add_argument(
        "--relay-file", type=Path, default=os.devnull, help="has the host by which containers reach AWS's port, if any"
    )
    parser.add_argument("--how-to-sign", default="", help="what to do about a missing signature, for its refusal")
    parser.add_argument("--how-to-allow", default="", help="what to do to allow a website, for its refusal")
    parser.add_argument("--function-python", type=Path, required=True, help="the interpreter that runs functions")
    parser.add_argument("--gateway-port", type=int, default=0, help="the port of AWS's services (default: a free one)")
    parser.add_argument(
        "--front-port", type=int, default=0, help="the port of the deployed HTTP API (default: a free one)"
    )
    parser.add_argument("--edge-port", type=int, default=0, help="the port of the distribution (default: a free one)")
    parser.add_argument("--enforce-iam", action="store_true", help="evaluate policies; `local` is the root user")
    parser.add_argument(
        "--concurrency", type=int, metavar="N", help="invocations of one function at once (default: by the machine)"
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=300, metavar="S", help="end a function's process that idles for so long"
    )
    parser.add_argument(
        "--initialise",
        action="append",
        default=[],
        metavar="ID",
        help="start this function as soon as it is deployed (its logical id)",
    )
    parser.add_argument("--stock", action="store_true", help="unmodified MiniStack, without shims and guards")
    parser.add_argument("--without", action="append", default=[], choices=NAMES, metavar="NAME", help="leave one out")
    return parser.parse_args(arguments)


def _die_with_parent() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("The process that started the embedded AWS is gone already.")


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError as error:
        sys.exit(f"Port {port} cannot be used: {error.strerror}. Stop what uses it, or let a free one be chosen.")


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{_port(listener)}"


def _isolate_environment(emulator: Emulator, *, port: int, secret: str, enforce_iam: bool) -> None:
    """Hide the machine's environment from MiniStack, and keep it from opening any ports but ours.

    MiniStack reads most of this when it is imported, so no part of it may be imported earlier.
    """
    for folder in ("tmp", "s3"):
        (emulator.data_dir / folder).mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LOG_LEVEL") if name in os.environ}
    os.environ.clear()
    os.environ.update(
        kept,
        **emulator.clock,
        GATEWAY_PORT=str(port),
        BIND_HOST="127.0.0.1",
        MINISTACK_HOST="localhost",
        MINISTACK_REGION=_REGION,
        AWS_DEFAULT_REGION=_REGION,
        AUTH=str(enforce_iam).lower(),
        AWS_ACCESS_KEY_ID=ACCESS_KEY_ID,
        AWS_SECRET_ACCESS_KEY=secret,
        DOCKER_HOST="unix:///nonexistent.sock",
        IOT_MTLS_ENABLED="0",
        SFTP_ENABLED="0",
        S3_DATA_DIR=str(emulator.data_dir / "s3"),
        HOME=str(emulator.data_dir),
        TMPDIR=str(emulator.data_dir / "tmp"),
        TZ="UTC",
    )
    tempfile.tempdir = os.environ["TMPDIR"]
    time.tzset()


async def _serve(
    applications: dict[socket.socket, Application], announcement: dict[str, Any], options: argparse.Namespace
) -> None:
    uvicorn = importlib.import_module("uvicorn")
    async with asyncio.TaskGroup() as tasks:
        for listener, application in applications.items():
            server = uvicorn.Server(
                uvicorn.Config(
                    application,
                    http="httptools",
                    ws="none",
                    timeout_keep_alive=75,
                    log_config=None,
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,  # a client's word about itself is its header, as at the gateway
                )
            )
            server.capture_signals = nullcontext  # they end the functions' processes, and then this one
            tasks.create_task(server.serve(sockets=[listener]))
        tasks.create_task(_announce(options.ready_file, announcement))


def _announcement(gateway: socket.socket, api: socket.socket, viewers: socket.socket, secret: str) -> dict[str, Any]:
    urls = {"gateway_url": _url(gateway), "front_url": _url(api), "edge_url": _url(viewers)}
    return {**urls, "secret": secret, "pid": os.getpid()}


async def _announce(ready_file: Path, announcement: dict[str, Any]) -> None:
    for name in ("gateway_url", "front_url", "edge_url"):
        await asyncio.to_thread(_await_answer, announcement[name])
    write_private(ready_file, json.dumps(announcement))


def _await_answer(url: str) -> None:
    # The socket is already listening, so one request waits for the server behind it. A refusal is an answer too.
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=30):  # noqa: S310  # Our own port.
        pass


def _end(*_: object) -> None:
    """End the functions' processes and then this one: nothing outlives it, so there is nothing to wait for."""
    pools = list(internals("core.lambda_runtime")._workers.values())
    for process in [worker._proc for pool in pools for worker in pool if worker._proc]:
        process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
