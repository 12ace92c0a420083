"""A program that receives webhooks, as small as a developer's first one: it believes what is signed, and nothing
else."""

from __future__ import annotations

import base64
import hmac
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from darkroom.domain.webhooks.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER

_TOLERANCE_SECONDS = 300
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


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether who knows the secret has sent this body just now: Standard Webhooks, with nothing but the standard
    library, as a program without Darkroom's code would check it."""
    given = {name.lower(): value for name, value in headers.items()}
    timestamp = given.get(TIMESTAMP_HEADER, "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > _TOLERANCE_SECONDS:
        return False
    content = f"{given.get(ID_HEADER)}.{timestamp}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    return any(hmac.compare_digest(expected, signature) for signature in given.get(SIGNATURE_HEADER, "").split())
