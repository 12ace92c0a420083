"""microburst as the tests run it, with a fix for answers that it does not pass on.

    python -m tests.support.running.proxy UPSTREAM READY_FILE

Serves on a free port, whose address it writes to READY_FILE, until it is stopped.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

# microburst publishes no types.
forward: Any = importlib.import_module("microburst.forward")
make_app: Any = importlib.import_module("microburst.app").make_app
Microburst: Any = importlib.import_module("microburst.core.pipeline").Microburst


def correct() -> None:
    """Pass a request's Host and an answer's Content-Length on, and be able to lose empty answers too.

    microburst replaces the Host, which is signed.
    microburst 0.10 leaves that header to aiohttp, which sends none for a HEAD and leaves cut answers without any trace
    of their length; and `abort_frac` cuts within a body, so S3's answer to a put, which has none, always arrived.
    """
    forward.HOP_BY_HOP -= {"content-length"}
    outbound_headers = forward.Upstream._outbound_headers

    def with_its_host(upstream: Any, request: web.Request) -> dict[str, str]:
        headers: dict[str, str] = outbound_headers(upstream, request)
        return headers | {"host": request.headers["host"]}

    forward.Upstream._outbound_headers = with_its_host
    stream = forward._stream_to_client

    async def stream_to_client(request: web.Request, status: int, headers: Any, mutator: Any, chunks: Any) -> Any:
        is_empty = request.method == "HEAD" or headers.get("content-length") == "0"
        if mutator is None or mutator.abort_frac is None or not is_empty:
            return await stream(request, status, headers, mutator, chunks)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()  # to nobody

    forward._stream_to_client = stream_to_client


async def serve(upstream: str, ready_file: Path) -> None:
    """Serve until the task is cancelled."""
    runner = web.AppRunner(make_app(Microburst(upstream, resign=False)))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    unfinished = ready_file.with_suffix(".unfinished")
    unfinished.write_text(f"http://{host}:{port}")
    unfinished.replace(ready_file)
    await asyncio.Event().wait()


if __name__ == "__main__":
    correct()
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
