"""Two thousand deliveries on the local stack, to nine endpoints that answer and one at which nobody listens."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks.forms import by_form
from benchmarks.local.__main__ import CONCURRENCY, photo
from benchmarks.local.client import rate
from benchmarks.stage import stack_of, unlimited_key
from repository.report import ROOT, Goal

STATE = ROOT / "build" / "bench-webhooks" / "stack"

ENDPOINTS = 10
"""A tenant's most: each photo's `image.done` is so many deliveries, so that few photos have to be developed."""

PHOTOS = by_form(short=4, usual=200)
PATIENCE_SECONDS = 180.0
SETTLE_SECONDS = by_form(short=1.0, usual=5.0)
"""How long after the last has arrived another may come, which would be one too many."""


class Receivers:
    """Receivers on this machine, each with a path of its own: what each has got, by the events' ids."""

    def __init__(self) -> None:
        self.got: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def take(self, path: str, event_id: str) -> None:
        """A delivery has come."""
        with self._lock:
            self.got[path, event_id] += 1

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Answers each POST with 204 during the block; the URL without a path."""
        receivers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                receivers.take(self.path, self.headers["webhook-id"])
                self.send_response(HTTPStatus.NO_CONTENT)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Is silent."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


def asked(api_url: str, method: str, path: str, document: object = None, *, key: str | None = None) -> dict[str, Any]:
    """The API's answer. Raises RuntimeError if it is none that was hoped for."""
    connection = http.client.HTTPConnection(urlsplit(api_url).netloc, timeout=60)
    body, headers = (None, {}) if document is None else (json.dumps(document), {"Content-Type": "application/json"})
    authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
    connection.request(method, path, body=body, headers=headers | authorization)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def deliveries(api_url: str, webhook_id: str, *, key: str | None = None) -> list[dict[str, Any]]:
    """All deliveries of an endpoint."""
    listed: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = asked(
            api_url,
            "GET",
            f"/webhooks/{webhook_id}/deliveries" + (f"?cursor={quote(cursor)}" if cursor else ""),
            key=key,
        )
        listed += page["deliveries"]
        cursor = page["next"]
        if cursor is None:
            return listed


def measure(*, photos: int = PHOTOS) -> tuple[dict[str, Any], list[Goal]]:
    """Sends photos, waits until the endpoints that live have got their events, and counts what came of each."""
    receivers = Receivers()
    # A port that nobody else gets meanwhile, and at which nobody listens: a connection is refused at once.
    with receivers.listening() as url, socket.socket() as dead, stack_of(STATE) as stack:
        dead.bind(("127.0.0.1", 0))
        key = unlimited_key(stack, "hooks")
        living = [f"/hooks/{number}" for number in range(ENDPOINTS - 1)]
        urls = [*(url + path for path in living), f"http://127.0.0.1:{dead.getsockname()[1]}/"]
        ids = [
            asked(stack.api_url, "POST", "/webhooks", {"url": each, "events": ["image.done"]}, key=key)["id"]
            for each in urls
        ]
        began = time.monotonic()
        rate(stack.api_url, photo(320, 240), count=photos, concurrency=CONCURRENCY, api_key=key)
        developed = time.monotonic() - began
        expected = photos * len(living)
        while len(receivers.got) < expected and time.monotonic() - began < developed + PATIENCE_SECONDS:
            time.sleep(0.05)
        delivered = time.monotonic() - began
        time.sleep(SETTLE_SECONDS)
        noted = {webhook_id: deliveries(stack.api_url, webhook_id, key=key) for webhook_id in ids}
        dead_rests = asked(stack.api_url, "GET", f"/webhooks/{ids[-1]}", key=key)["rests_until"] is not None
    unseen = sum(
        receivers.got[path, delivery["event_id"]] != 1
        for path, webhook_id in zip(living, ids, strict=False)
        for delivery in noted[webhook_id]
    )
    statuses = Counter(delivery["status"] for webhook_id in ids[:-1] for delivery in noted[webhook_id])
    waiting = Counter(delivery["status"] for delivery in noted[ids[-1]])
    row: dict[str, Any] = {
        "part": "local",
        "deliveries": sum(map(len, noted.values())),
        "living": dict(statuses),
        "dead": dict(waiting),
        "dead_rests": dead_rests,
        "developed_seconds": round(developed, 1),
        "delivered_seconds": round(delivered, 1),
        "attempts_at_the_dead": sum(len(delivery["attempts"]) for delivery in noted[ids[-1]]),
    }
    wrong = (
        unseen
        + abs(expected - receivers.got.total())
        + abs(expected - statuses["delivered"])
        + photos
        - len(noted[ids[-1]])
    )
    goals = [
        Goal(name="deliveries on the local stack", value=row["deliveries"], limit=photos * ENDPOINTS, at_least=True),
        Goal(name="of these, lost, doubled or told otherwise than they came", value=wrong, limit=0, at_least=False),
        Goal(
            name="of the dead endpoint's, lost or given up",
            value=waiting["failed"] + waiting["delivered"],
            limit=0,
            at_least=False,
        ),
    ]
    return row, goals
