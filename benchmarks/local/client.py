"""A client of the local stack's API that measures what its user would."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 600
_FULL_SECONDS = 0.2


@dataclass(frozen=True)
class Sent:
    """An accepted photo: when its request began, how long its answer took, and its id; in seconds."""

    began: float
    answered_after: float
    image_id: str


class Client:
    """One kept-alive connection to the API."""

    def __init__(self, api_url: str, *, api_key: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(api_url).netloc, timeout=60)
        self._authorization = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    def send(self, photo: bytes) -> Sent:
        """Uploads a photo, again where a full stack answers 503. Raises RuntimeError if it is not accepted."""
        began = time.perf_counter()
        while True:
            status, body = self._ask("POST", "/images", photo)
            if status != HTTPStatus.SERVICE_UNAVAILABLE or time.perf_counter() - began > _PATIENCE_SECONDS:
                break
            time.sleep(_FULL_SECONDS)
        answered_after = time.perf_counter() - began
        if status != HTTPStatus.ACCEPTED:
            raise RuntimeError(f"the upload was not accepted: {status} {body[:500]!r}")
        return Sent(began, answered_after, json.loads(body)["id"])

    def done_after(self, sent: Sent, *, look_seconds: float = _LOOK_SECONDS) -> float:
        """Waits until the photo is done; how many seconds after its request began that was."""
        self.done(sent, look_seconds=look_seconds)
        return time.perf_counter() - sent.began

    def done(self, sent: Sent, *, look_seconds: float) -> dict[str, Any]:
        """Waits until the photo is done; its status document."""
        while (waited := time.perf_counter() - sent.began) < _PATIENCE_SECONDS:
            status, body = self._ask("GET", f"/images/{sent.image_id}/status")
            document: dict[str, Any] = json.loads(body)
            state = document.get("status") if status == HTTPStatus.OK else str(status)
            if state == "done":
                return document
            if state not in ("pending", "processing"):
                raise RuntimeError(f"the photo did not become done: {body[:500]!r}")
            time.sleep(look_seconds)
        raise TimeoutError(f"{sent.image_id} was not done after {waited:.0f} s")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        headers = {} if body is None else {"Content-Type": "image/jpeg"}
        self._connection.request(method, path, body=body, headers=headers | self._authorization)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def rate(api_url: str, photo: bytes, *, count: int, concurrency: int, api_key: str | None = None) -> float:
    """Photos per second: `count` of them are sent by so many senders, and the last one is done, by its own record."""

    def send_some(number: int) -> list[Sent]:
        client = Client(api_url, api_key=api_key)
        return [client.send(photo) for _ in range(number)]

    shares: Sequence[int] = [len(range(first, count, concurrency)) for first in range(concurrency)]
    began = time.time()
    with ThreadPoolExecutor(concurrency) as senders:
        sent = [image_id for some in senders.map(send_some, shares) for image_id in some]
    client = Client(api_url, api_key=api_key)
    # One after the other, and seldom: looking takes the processors from the workers.
    ends = [client.done(image_id, look_seconds=0.5)["completed_at"] for image_id in sent]
    return count / (max(map(datetime.fromisoformat, ends)).timestamp() - began)
