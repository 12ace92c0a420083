"""The work of `darkroom operate`, once the command line is parsed."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from console.api.client import ApiError
from console.operate.actions import Actions
from console.operate.parts import Parts
from console.operate.server import application
from console.operate.shell import Shell
from console.stack.operators import Stack
from console.terminal import display
from console.terminal.browser import open_in_browser

PAGE = Path(__file__).resolve().parents[3] / "layers/page/web"
"""The page's files, the same as the stack serves."""

_LEAVE_SECONDS = 3


def serve(stack: Stack, *, write: bool, port: int, open_it: bool) -> None:
    """`operate`: until it is interrupted. Raises ApiError if the port is taken or the page's files are not there."""
    shell = Shell(PAGE)
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ApiError(
            f"Port {port} of this machine cannot be used ({error}). Choose another: --port N. Without it, a free one "
            "is used."
        ) from error
    token, chosen = secrets.token_urlsafe(32), listener.getsockname()[1]
    served = application(
        parts=Parts(stack), actions=Actions(stack), shell=shell, token=token, port=chosen, is_writable=write
    )
    url = f"http://127.0.0.1:{chosen}/app/#token={token}"
    out = display.output()
    display.line(out, f"{stack.name}: {url}")
    what = "It can change things: every action is in the audit log." if write else "It only reads; --write lets it act."
    display.line(display.errors(), f"Who has this address can use it until Ctrl-C. {what}")
    if open_it:
        open_in_browser(url)
    with listener, suppress(KeyboardInterrupt):  # which uvicorn raises again once it has ended in order
        server_of(served).run(sockets=[listener])


def server_of(served: ASGIApp) -> uvicorn.Server:
    """The HTTP server of an application. It logs no requests."""
    return uvicorn.Server(
        uvicorn.Config(
            served,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=_LEAVE_SECONDS,
        )
    )
