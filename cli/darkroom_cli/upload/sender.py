"""Sends files from several threads; the API sees each file at most once."""

from __future__ import annotations

import hashlib
import io
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from darkroom_cli.terminal.interrupts import Interrupted
from darkroom_cli.upload.order import UploadOrder
from darkroom_cli.upload.photos import Photo
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, Refused, StatusAnswer, Unauthorized, Unreachable

_READ_BYTES = 1024 * 1024


class KeySource(StrEnum):
    """What an Idempotency-Key is made from."""

    RANDOM = "random"
    CONTENT = "content"


@dataclass(frozen=True, kw_only=True)
class FileOutcome:
    """The outcome of one file: the answer that accepted it, or its problem; `ends_all` if others would fail too."""

    file: Photo
    answer: StatusAnswer | None = None
    problem: ApiError | None = None
    ends_all: bool = False


def content_key(file: Photo, order: UploadOrder) -> str:
    """A key for what is sent and its order, the same whenever and from wherever it is sent."""
    digest = hashlib.sha256(order.words.encode() + b"\0")
    with io.BytesIO(b"url\0" + file.encode()) if isinstance(file, str) else file.open("rb") as opened:
        while piece := opened.read(_READ_BYTES):
            digest.update(piece)
    return f"content-{digest.hexdigest()}"


_STACKS_CHOICE = UploadOrder()


def send_file(
    api: Darkroom,
    file: Photo,
    *,
    order: UploadOrder = _STACKS_CHOICE,
    key_source: KeySource = KeySource.RANDOM,
    on_sent: Callable[[int], None] | None = None,
) -> FileOutcome:
    """Sends one file with its `order`, or a URL; `on_sent` gets the number of its bytes sent so far."""
    try:
        answer = _answer(api, file, order, key_source, on_sent)
    except OSError as error:
        return FileOutcome(file=file, problem=ApiError(f"It cannot be read: {error.strerror}."))
    except ApiError as error:
        return FileOutcome(file=file, problem=error, ends_all=_ends_all(error))
    except Interrupted:
        return FileOutcome(file=file, problem=ApiError("Interrupted between two attempts; it may have been accepted."))
    return FileOutcome(file=file, answer=answer)


def _ends_all(error: ApiError) -> bool:
    if isinstance(error, Refused) and error.code in ("unknown_batch", "batch_closed"):
        return True
    return isinstance(error, Unreachable | Unauthorized)


def _answer(
    api: Darkroom, file: Photo, order: UploadOrder, key_source: KeySource, on_sent: Callable[[int], None] | None
) -> StatusAnswer:
    key = content_key(file, order) if key_source is KeySource.CONTENT else None
    return api.upload(file, idempotency_key=key, on_sent=on_sent, **order.fields)


type Send = Callable[[Photo, Callable[[int], None]], FileOutcome]
"""Sends a file and reports the number of its bytes sent so far."""


class Sender:
    """Threads that send files, and the queue on which the outcomes come back to the one thread that shows them."""

    def __init__(self, files: list[Photo], send: Send, *, concurrency: int) -> None:
        self._send = send
        self._stopped = threading.Event()
        self._waiting = iter(enumerate(files))
        self._waiting_lock = threading.Lock()
        self._results: queue.SimpleQueue[tuple[int, FileOutcome | Exception]] = queue.SimpleQueue()
        self._on_the_way: dict[int, Photo] = {}
        self._sent_bytes = [0] * len(files)
        # Daemons: a second Ctrl-C leaves at once, even while a thread is in the middle of a request.
        self._threads = [
            threading.Thread(target=self._work, daemon=True, name=f"sender-{number}")
            for number in range(min(concurrency, len(files)))
        ]

    def start(self) -> None:
        """Starts sending."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begins no further file."""
        self._stopped.set()

    @property
    def is_busy(self) -> bool:
        """Whether a file is still being sent."""
        return any(thread.is_alive() for thread in self._threads)

    @property
    def sent_bytes(self) -> int:
        """How many bytes of photos have been sent."""
        return sum(self._sent_bytes)

    def on_the_way(self) -> list[Photo]:
        """The files that are being sent and whose outcome is not known yet."""
        with self._waiting_lock:
            return list(self._on_the_way.values())

    def outcomes(self, *, wait_seconds: float) -> list[FileOutcome]:
        """The outcomes since the last call; waits up to `wait_seconds` for the first."""
        outcomes: list[FileOutcome] = []
        while True:
            try:
                index, result = self._results.get(timeout=0 if outcomes else wait_seconds)
            except queue.Empty:
                return outcomes
            with self._waiting_lock:
                del self._on_the_way[index]
            if isinstance(result, Exception):
                raise result
            outcomes.append(result)

    def _work(self) -> None:
        while not self._stopped.is_set():
            with self._waiting_lock:
                index, file = next(self._waiting, (-1, None))
                if file is None:
                    return
                self._on_the_way[index] = file
            try:
                result: FileOutcome | Exception = self._send(file, self._count(index))
            except Exception as error:
                result = error  # The main thread would wait forever for a thread that died silently.
            self._results.put((index, result))

    def _count(self, index: int) -> Callable[[int], None]:
        def count(sent_bytes: int) -> None:
            self._sent_bytes[index] = sent_bytes

        return count
