"""Serves the embedded AWS: MiniStack and its corrections on one port, the deployed HTTP API on another.

Usage: python -m embedded_aws.server --ready-file FILE --data-dir DIR --function-python PATH
"""

import argparse
import asyncio
import ctypes
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from embedded_aws import clock
from embedded_aws.corrections import NAMES, apply_corrections
from embedded_aws.emulator import Emulator
from embedded_aws.front import front
from embedded_aws.ministack_internals import internals

_REGION = "us-east-1"
_PR_SET_PDEATHSIG = 1

_SWITCH_SECONDS = 0.0005
"""How long a thread may keep the others waiting: a request passes through several, and each would wait for the default
of 5 ms whenever another request is worked on."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent process dies."""
    options = _parse(arguments)
    _die_with_parent()
    sys.setswitchinterval(_SWITCH_SECONDS)
    options.ready_file.unlink(missing_ok=True)
    gateway, api = _listen(options.gateway_port), _listen(options.front_port)
    emulator = Emulator(
        gateway_url=_url(gateway),
        function_python=options.function_python.absolute(),
        data_dir=options.data_dir.resolve(),
        clock={name: os.environ[name] for name in clock.VARIABLES if name in os.environ},
        concurrency=options.concurrency,
        idle_seconds=options.idle_seconds,
        initialised_ahead=options.initialise,
    )
    _isolate_environment(emulator, port=gateway.getsockname()[1], enforce_iam=options.enforce_iam)
    if not options.stock:
        apply_corrections(emulator, without=options.without)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    asyncio.run(_serve(gateway, api, options.ready_file))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m embedded_aws.server", description=__doc__.partition("\n")[0])
    parser.add_argument("--ready-file", type=Path, required=True, help="written once both ports answer, as JSON")
    parser.add_argument("--data-dir", type=Path, required=True, help="everything that the emulator writes goes here")
    parser.add_argument("--function-python", type=Path, required=True, help="the interpreter that runs functions")
    parser.add_argument("--gateway-port", type=int, default=0, help="the port of AWS's services (default: a free one)")
    parser.add_argument(
        "--front-port", type=int, default=0, help="the port of the deployed HTTP API (default: a free one)"
    )
    parser.add_argument(
        "--enforce-iam", action="store_true", help="check signatures, and evaluate policies; `local` is the root user"
    )
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


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"


def _isolate_environment(emulator: Emulator, *, port: int, enforce_iam: bool) -> None:
    """Hide the machine's environment from MiniStack, and keep it from opening any ports but our two.

    MiniStack reads most of this when it is imported, so no part of it may be imported earlier.
    """
    for folder in ("tmp", "s3"):
        (emulator.data_dir / folder).mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LOG_LEVEL") if name in os.environ}
    # The one key that MiniStack accepts as the account's root when it checks signatures; otherwise any key works.
    root = "local" if enforce_iam else "test"
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
        AWS_ACCESS_KEY_ID=root,
        AWS_SECRET_ACCESS_KEY=root,
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


async def _serve(gateway: socket.socket, api: socket.socket, ready_file: Path) -> None:
    serve = importlib.import_module("hypercorn.asyncio").serve
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(internals("app").app, _hypercorn(gateway), shutdown_trigger=_never))
        tasks.create_task(serve(front, _hypercorn(api), shutdown_trigger=_never))
        tasks.create_task(_announce(ready_file, gateway, api))


async def _never() -> None:
    await asyncio.Event().wait()


def _hypercorn(listener: socket.socket) -> Any:
    config = importlib.import_module("hypercorn.config").Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.loglevel = "WARNING"
    return config


async def _announce(ready_file: Path, gateway: socket.socket, api: socket.socket) -> None:
    for url in (f"{_url(gateway)}/_ministack/health", _url(api)):
        await asyncio.to_thread(_await_answer, url)
    document = {"gateway_url": _url(gateway), "front_url": _url(api), "pid": os.getpid()}
    unfinished = ready_file.with_name(f"{ready_file.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document))
    unfinished.replace(ready_file)


def _await_answer(url: str) -> None:
    # The socket is already listening, so one request waits for the server behind it. 503 is an answer too.
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
