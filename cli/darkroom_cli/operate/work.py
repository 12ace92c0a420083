"""The work of `darkroom operate`, once the command line is parsed."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from darkroom_cli.operate.actions import Actions
from darkroom_cli.operate.entrance import Entrance
from darkroom_cli.operate.parts import Parts
from darkroom_cli.operate.server import application
from darkroom_cli.operate.shell import Shell
from darkroom_cli.places import ROOT
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.browser import open_in_browser
from darkroom_cli.terminal.interrupts import LEAVING, Interrupts
from darkroom_client.client import ApiError

PAGE = (ROOT / "layers/page/web", Path(__file__).with_name("web"))
"""The page's files: those that the stack serves too, and the operators' screens."""

_LEAVE_SECONDS = 3
_YOURSELF = "Open the address above in one."


def serve(stack: Stack, *, write: bool, port: int, open_it: bool) -> None:
    """`operate`: until it is interrupted. Raises ApiError if the port is taken, the page's files are not there or the
    stack does not answer."""
    shell, parts, actions = Shell(*PAGE), Parts(stack), Actions(stack)
    about = parts.about()
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ApiError(
            f"Port {port} of this machine cannot be used ({error}). Choose another: --port N. Without it, a free one "
            "is used."
        ) from error
    token, entrance, chosen = secrets.token_urlsafe(32), Entrance(), listener.getsockname()[1]
    served = application(
        about=about,
        parts=parts,
        actions=actions,
        shell=shell,
        token=token,
        entrance=entrance,
        port=chosen,
        is_writable=write,
    )
    url = f"http://127.0.0.1:{chosen}/app/#token={token}"
    out = display.output()
    display.line(out, f"{stack.name}: {url}")
    what = "It can change things: every action is in the audit log." if write else "It only reads; --write lets it act."
    display.line(display.errors(), f"Who has this address can use it until Ctrl-C. {what}")
    server = server_of(served)

    def leave() -> None:
        server.should_exit = True

    # uvicorn itself ends at SIGINT and SIGTERM, and raises them again once it has: a drill that is under way is still
    # to be put back then, and also if the terminal closes.
    opening = _opening(entrance, chosen) if open_it else nullcontext()
    with listener, suppress(KeyboardInterrupt), Interrupts(*LEAVING, on_request=leave), opening:
        try:
            server.run(sockets=[listener])
        finally:
            actions.running.end(
                lambda action: display.line(display.errors(), f"{action} is under way: it is ended in order first.")
            )


@contextmanager
def _opening(entrance: Entrance, port: int) -> Iterator[None]:
    """Has the browser opened beside the block: an opener may wait for what the block serves."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(entrance.file(port))
        except OSError as error:
            display.complain(f"the browser is not opened, since its file cannot be written ({error}). {_YOURSELF}")
        else:
            # guard: operate-opener-without-token
            threading.Thread(target=open_in_browser, args=(file.as_uri(), _YOURSELF), daemon=True).start()
        yield


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
