"""Uploads at a steady pace with a tenant's key, whatever the answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from benchmarks.forms import by_form
from benchmarks.load_shedding.stage import Work, now

CLIENTS = by_form(short=4, usual=8)
"""Concurrent requests of one tenant: more would only wait for this machine's processors."""

PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of one upload, sent and answered at these instants. `status` is 0 if the connection failed."""

    sent_at: int
    answered_at: int
    status: int
    code: str = ""
    retry_after_seconds: int | None = None
    image_id: str = ""


class Client:
    """A tenant with its key."""

    def __init__(self, api_url: str, key: str, work: Work) -> None:
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        headers = {"authorization": f"Bearer {key}", "content-type": "image/jpeg"}
        self._http = httpx.Client(
            base_url=api_url, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS, limits=limits
        )
        self._work = work

    def warm_up(self) -> None:
        """Starts as many API workers as will be used at once: if thirty started together on two processors, they would
        outlast the gateway's timeout, which is a limit of this machine and not of Lambda."""
        for _ in range(2):
            with ThreadPoolExecutor(CLIENTS) as pool:
                for _ in range(CLIENTS):
                    pool.submit(self._http.post, "/images", content=b"", timeout=2 * PATIENCE_SECONDS)

    def upload(self) -> Answer:
        """Sends the photo once."""
        sent_at = now()
        try:
            response = self._http.post("/images", params=self._work.parameters, content=self._work.body)
        except httpx.TransportError:
            return Answer(sent_at=sent_at, answered_at=now(), status=0)
        document = response.json()
        retry_after = response.headers.get("retry-after")
        return Answer(
            sent_at=sent_at,
            answered_at=now(),
            status=response.status_code,
            code=document.get("code", ""),
            retry_after_seconds=None if retry_after is None else int(retry_after),
            image_id=document.get("id", ""),
        )

    def upload_at(self, per_second: float, seconds: float) -> list[Answer]:
        """Sends photos at that rate for so long, and returns when all are answered."""
        return upload_in_turns([self], per_second, seconds)

    @contextmanager
    def uploading(self, per_second: float) -> Iterator[list[Answer]]:
        """Sends photos at that rate during the block, as connections are free; the list is complete after it."""
        answers: list[Answer] = []
        over = threading.Event()

        def go_on() -> None:
            began = time.monotonic()
            sent: list[Future[Answer]] = []
            with ThreadPoolExecutor(CLIENTS) as pool:
                while not over.wait(max(0.0, began + len(sent) / per_second - time.monotonic())):
                    sent.append(pool.submit(self.upload))
                pool.shutdown(cancel_futures=True)  # uploads still waiting for a connection are not sent
            answers.extend(future.result() for future in sent if not future.cancelled())

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield answers
        finally:
            over.set()
            thread.join()


def upload_in_turns(clients: Sequence[Client], per_second: float, seconds: float) -> list[Answer]:
    """Sends photos at that total rate for so long, the clients taking turns; each photo at its own time, or as soon as
    a connection is free after it. Returns when all are answered."""
    began, answers = time.monotonic(), []
    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(max(1, round(per_second * seconds))):
            time.sleep(max(0.0, began + number / per_second - time.monotonic()))
            answers.append(pool.submit(clients[number % len(clients)].upload))
    return [answer.result() for answer in answers]


def accepted(answers: Sequence[Answer]) -> list[Answer]:
    """Those that were answered 202."""
    return [answer for answer in answers if answer.status == httpx.codes.ACCEPTED]


def shed(answers: Sequence[Answer]) -> list[Answer]:
    """Those that were refused because of a lane's backlog."""
    return [answer for answer in answers if answer.code == "overloaded"]
