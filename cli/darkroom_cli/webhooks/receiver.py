"""A program that receives webhooks, as small as a developer's first one: it believes what is signed, and nothing
else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from darkroom_client.signature import is_signed

_MAX_BODY_BYTES = 20 * 1024


@dataclass(frozen=True, kw_only=True)
class LocalReceiver:
    """Where it listens, and the bodies that it believed."""

    url: str
    believed: list[str] = field(default_factory=list)


@contextmanager
def receiving(secret: str) -> Iterator[LocalReceiver]:
    """A program that serves while the block lasts, with the secret (whsec_…) of who sends to it."""

    class ReceiverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("content-length", "0")), _MAX_BODY_BYTES))
            signed = is_signed(secret, dict(self.headers), body)
            if signed:
                receiver.believed.append(body.decode())
            self.send_response(204 if signed else 401)
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 -- the name of http.server's
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), ReceiverHandler) as server:
        receiver = LocalReceiver(url=f"http://127.0.0.1:{server.server_port}/webhooks")
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
