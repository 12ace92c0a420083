"""Uploads through the API by several clients at once, and the answer to each of them."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import uuid4

import httpx
from PIL import Image

from darkroom.domain.kernel.ids import image_id_for_key

CLIENT_PATIENCE_SECONDS = 60.0
_RETRY_PAUSE_SECONDS = 0.3
_MAX_TRIES = 30

ACCEPTED, UNAVAILABLE = 202, 503

VARIANTS = "thumb,webp"
"""What is made of every photo: two files, of two encoders."""

TENANT = "default"
"""The tenant of the uploads, unless a credential names another one."""


@dataclass(frozen=True, kw_only=True)
class Photo:
    """A small JPEG with a name."""

    name: str
    body: bytes


def photos(count: int) -> list[Photo]:
    """Photos of different sizes, whose variants therefore differ."""
    return [Photo(name=f"photo-{number:02d}", body=_jpeg(64 + 4 * number, 48)) for number in range(count)]


def marked_photo(mark: str) -> Photo:
    """A valid photo with a mark in a comment."""
    return Photo(name="marked", body=_jpeg(80, 60, comment=mark.encode()))


def truncated_photo() -> Photo:
    """A photo whose second half is missing: decoding refuses it, the API accepts it."""
    body = _jpeg(640, 480)
    return Photo(name="truncated", body=body[: len(body) // 2])


def _jpeg(width: int, height: int, comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(file, "JPEG", comment=comment)
    return file.getvalue()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of one upload: the id that its key makes, the last status, and how long that took.

    `status` is 0 if the connection failed. `refused` counts the answers before the last one.
    """

    photo: Photo
    image_id: str
    status: int
    retry_after: str | None = None
    seconds: float
    refused: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether the image was accepted, and so must be developed."""
        return self.status == ACCEPTED

    @property
    def is_worth_repeating(self) -> bool:
        """Whether the same upload may still be accepted: a connection or a function has failed, or a store is down."""
        return self.status == 0 or self.status >= 500

    @property
    def is_honest_refusal(self) -> bool:
        """Whether the client was told that this does not work now, and when to retry."""
        return self.status == UNAVAILABLE and (self.retry_after or "").isdecimal()


def upload(
    api_url: str,
    bodies: Sequence[Photo],
    *,
    clients: int,
    persistent: bool = False,
    interval_seconds: float = 0.0,
    parameters: Mapping[str, str] = MappingProxyType({}),
    on_answer: Callable[[Answer], None] | None = None,
    api_key: str | None = None,
) -> list[Answer]:
    """Posts every photo under its own key, and returns when the last one is answered.

    `persistent` clients send what was not accepted again, under the same key; others take the first answer. Two uploads
    begin at least `interval_seconds` apart. `parameters` are added to each request.
    """
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    turn = threading.Lock()

    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    with httpx.Client(
        base_url=api_url, headers=headers, trust_env=False, timeout=CLIENT_PATIENCE_SECONDS, limits=limits
    ) as api:

        def send(photo: Photo) -> Answer:
            with turn:
                time.sleep(interval_seconds)
            answer = (_persist if persistent else _post)(api, photo, key=uuid4().hex, parameters=parameters)
            if on_answer is not None:
                on_answer(answer)
            return answer

        with ThreadPoolExecutor(clients, thread_name_prefix="upload") as pool:
            return list(pool.map(send, bodies))


def _persist(api: httpx.Client, photo: Photo, *, key: str, parameters: Mapping[str, str]) -> Answer:
    started, tries = time.monotonic(), 0
    while (answer := _post(api, photo, key=key, parameters=parameters)).is_worth_repeating and tries < _MAX_TRIES:
        tries += 1
        time.sleep(_RETRY_PAUSE_SECONDS)
    return replace(answer, seconds=time.monotonic() - started, refused=tries)


def _post(api: httpx.Client, photo: Photo, *, key: str, parameters: Mapping[str, str]) -> Answer:
    image_id = image_id_for_key(TENANT, key)
    started = time.monotonic()
    try:
        response = api.post(
            "/images",
            params={"variants": VARIANTS, **parameters},
            content=photo.body,
            headers={"content-type": "image/jpeg", "idempotency-key": key},
        )
    except httpx.TransportError:
        return Answer(photo=photo, image_id=image_id, status=0, seconds=time.monotonic() - started)
    if response.status_code == ACCEPTED and response.json()["id"] != image_id:
        raise RuntimeError(f"{response.json()['id']} is not the id that its key makes, {image_id}")
    return Answer(
        photo=photo,
        image_id=image_id,
        status=response.status_code,
        retry_after=response.headers.get("retry-after"),
        seconds=time.monotonic() - started,
    )
