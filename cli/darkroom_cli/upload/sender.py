"""Sends files from several threads; the API sees each file at most once."""

from __future__ import annotations

import hashlib
import io
import json
import mimetypes
import queue
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from darkroom_cli.terminal.interrupts import Interrupted
from darkroom_cli.upload.order import UploadOrder
from darkroom_cli.upload.photos import Photo
from darkroom_client.client import Api, ApiError, StatusAnswer, Unauthorized, Unreachable

# What POST /images accepts; a larger file is announced with POST /uploads and sent directly to S3.
_LARGEST_REQUEST_BYTES = 4 * 1024 * 1024

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


def idempotency_key(source: KeySource, *, content_sha256: str) -> str:
    """A key for one file of one invocation, or one for its bytes and order whenever and from wherever they are sent."""
    return f"upload-{secrets.token_hex(16)}" if source is KeySource.RANDOM else f"content-{content_sha256}"


@dataclass(frozen=True, kw_only=True)
class Hashes:
    """The hash of a file's bytes, and the hash of them with the order."""

    sha256: str
    content_sha256: str


def hashes_of(file: BinaryIO, order: UploadOrder) -> Hashes:
    """Both hashes of the rest of a file, which is read in pieces."""
    alone, with_order = hashlib.sha256(), hashlib.sha256(order.words.encode() + b"\0")
    while piece := file.read(_READ_BYTES):
        alone.update(piece)
        with_order.update(piece)
    return Hashes(sha256=alone.hexdigest(), content_sha256=with_order.hexdigest())


def media_type(file: Path) -> str:
    """The image's type that the file's name suggests; the API looks at the bytes itself, but cannot if they are sent as
    text or JSON."""
    guessed = mimetypes.guess_type(file.name)[0] or ""
    return guessed if guessed.startswith("image/") else "application/octet-stream"  # guard: bodies-no-file-as-text


_STACKS_CHOICE = UploadOrder()


def send_file(
    api: Api,
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
        return FileOutcome(file=file, problem=error, ends_all=isinstance(error, Unreachable | Unauthorized))
    except Interrupted:
        return FileOutcome(file=file, problem=ApiError("Interrupted between two attempts; it may have been accepted."))
    return FileOutcome(file=file, answer=answer)


def _answer(
    api: Api, file: Photo, order: UploadOrder, key_source: KeySource, on_sent: Callable[[int], None] | None
) -> StatusAnswer:
    if isinstance(file, str):
        asked = hashes_of(io.BytesIO(b"url\0" + file.encode()), order)
        return api.submit(
            json.dumps({"url": file, **order.fields}).encode(),
            content_type="application/json",
            idempotency_key=idempotency_key(key_source, content_sha256=asked.content_sha256),
        )
    size_bytes = file.stat().st_size
    if size_bytes <= _LARGEST_REQUEST_BYTES:
        body = file.read_bytes()
        hashes = hashes_of(io.BytesIO(body), order)
        return api.submit(
            body,
            content_type=media_type(file),
            idempotency_key=idempotency_key(key_source, content_sha256=hashes.content_sha256),
            parameters=order.parameters,
            on_sent=on_sent,
        )
    with file.open("rb") as opened:
        hashes = hashes_of(opened, order)
    return api.upload(
        file,
        announcement={"bytes": size_bytes, "sha256": hashes.sha256, "content_type": media_type(file), **order.fields},
        idempotency_key=idempotency_key(key_source, content_sha256=hashes.content_sha256),
        on_sent=on_sent,
    )


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
