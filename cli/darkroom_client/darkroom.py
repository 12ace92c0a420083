"""A Darkroom as its clients use it: images go in, and their variants come out."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast
from urllib.parse import urlencode

from darkroom.domain.images.limits import MAX_BODY_BYTES
from darkroom_client.client import (
    AddressExpired,
    ApiError,
    NotFinished,
    ReceivedStatus,
    ReceivedVariant,
    Refused,
    StatusAnswer,
)
from darkroom_client.imports import ImportsApi
from darkroom_client.polling import pause_before_poll

if TYPE_CHECKING:
    from darkroom.http.images.documents import ListedDocument, PageDocument
    from darkroom.http.uploads.upload_tokens import UploadTokenDocument

_ADDRESSES_PER_FILE = 3

_LATER: Mapping[str, Any] = {"work": None, "edit": None, "reference": None, "tags": [], "metadata": None}
"""What a stack of an earlier version does not say of an image."""


class NotDownloaded(ApiError):
    """A variant is not there, or its bytes are not those that the status document names; the message says which."""


class UploadOptions(TypedDict, total=False):
    """What to make of an image, when, who hears of it, and the client's own words on it: the API's parameters, by
    their names."""

    preset: str | None
    variants: list[str] | None
    recipe: Mapping[str, Any] | None
    process_at: str | None
    delay: str | None
    expires_at: str | None
    notify: str | None
    reference: str | None
    tags: list[str] | None
    metadata: Mapping[str, Any] | None
    visibility: Literal["private", "public", "signed"] | None
    batch: str | None
    on_duplicate: Literal["reuse"] | None


class UploadTokenTerms(TypedDict, total=False):
    """What one browser may upload, until when, and what is made of it: the API's fields, by their names."""

    expires_in: str
    count: int
    max_bytes: int
    origins: list[str]
    preset: str
    variants: list[str]
    recipe: Mapping[str, Any]
    notify: str
    reference: str
    tags: list[str]
    metadata: Mapping[str, Any]
    visibility: Literal["private", "public", "signed"]


class Darkroom(ImportsApi):
    """A stack's API, at its output `ApiUrl`, with the API key of a tenant. Several threads may use one.

        with Darkroom(url, api_key) as darkroom:
            image = darkroom.upload(Path("photo.jpg"))
            document = darkroom.wait(image.image_id)
            thumb = darkroom.download(document, "thumb")

    Requests are sent again for about a minute if that is safe and may help. Every method raises ApiError: `Refused` if
    the same request would be refused again (its `code` is in the API's table of problems), `Unavailable` if it is worth
    trying later, `Unreachable` if nothing answers there.
    """

    def upload(
        self,
        source: bytes | Path | str,
        *,
        idempotency_key: str | None = None,
        content_type: str | None = None,
        on_sent: Callable[[int], None] | None = None,
        **order: Unpack[UploadOptions],
    ) -> StatusAnswer:
        """Sends an image, a file, or a URL from which the stack fetches it; returns once it is accepted, when nothing
        can lose it any more. What is too large for a request is sent to S3.

        With the same `idempotency_key`, the same upload is accepted once, however often it is sent: choose one that
        your own records name, to be safe also from your own repetitions. With `on_duplicate="reuse"` no key is sent:
        the same bytes are the same image. `on_sent` gets the number of bytes sent so far. Raises OSError if a file
        cannot be read.
        """
        key = idempotency_key or (None if order.get("on_duplicate") else f"upload-{secrets.token_hex(16)}")
        if isinstance(source, str):
            body = json.dumps({"url": source, **order}).encode()
            return self.submit(body, content_type="application/json", idempotency_key=key)
        if isinstance(source, bytes) and len(source) > MAX_BODY_BYTES:
            with NamedTemporaryFile(prefix="darkroom-") as file:
                file.write(source)
                file.flush()
                kind = content_type or "application/octet-stream"
                return self._send_large(Path(file.name), key, kind, order, on_sent)
        kind = content_type or (media_type(source) if isinstance(source, Path) else "application/octet-stream")
        if isinstance(source, Path):
            if source.stat().st_size > MAX_BODY_BYTES:
                return self._send_large(source, key, kind, order, on_sent)
            source = source.read_bytes()
        return self.submit(
            source, content_type=kind, idempotency_key=key, parameters=_in_a_query(order), on_sent=on_sent
        )

    def _send_large(
        self, file: Path, key: str | None, kind: str, order: Mapping[str, Any], on_sent: Callable[[int], None] | None
    ) -> StatusAnswer:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        announcement = {"bytes": file.stat().st_size, "sha256": digest, "content_type": kind, **order}
        return self.send_announced(file, announcement=announcement, idempotency_key=key, on_sent=on_sent)

    def wait(
        self,
        image_id: str,
        *,
        seen: StatusAnswer | None = None,
        timeout_seconds: float | None = None,
        on_document: Callable[[ReceivedStatus], None] = lambda document: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> ReceivedStatus:
        """Waits until the image has ended (`done`, `failed` or `expired`), and the work beside it if there is any, and
        returns its status document.

        With `seen`, an earlier answer such as that of `upload`, it begins with a pause. `on_document` gets each
        document on the way. Raises NotFinished after the timeout, at which it asks once more: the image is not lost,
        and can be waited for again.
        """
        give_up_at = float("inf") if timeout_seconds is None else clock() + timeout_seconds
        answer, polls = seen or self.status(image_id), 0
        on_document(answer.document)
        while not answer.is_terminal:
            remaining_seconds = give_up_at - clock()
            if remaining_seconds <= 0:
                raise NotFinished(
                    f"Image {image_id} is still {state_of(answer.document)} after {timeout_seconds:g} s. It is not "
                    "lost: check again later, or wait longer."
                )
            pause = pause_before_poll(polls=polls, retry_after_seconds=answer.retry_after_seconds)
            self._pause(min(pause, remaining_seconds))
            answer, polls = self.status(image_id, seen=answer), polls + 1
            on_document(answer.document)
        return answer.document

    def create_upload_token(self, **terms: Unpack[UploadTokenTerms]) -> UploadTokenDocument:
        """Makes a token with which one browser uploads, without the key: `token` is for its header `Authorization`,
        and for `Darkroom(url, token)`."""
        made = self.ask("POST", "/upload-tokens", answered_by=201, body=dict(terms))
        return cast("UploadTokenDocument", made)

    def images(
        self, *, status: str | None = None, reference: str | None = None, tag: str | None = None
    ) -> Iterator[ListedDocument]:
        """All images of the tenant, or those with that status, reference and tag, newest first. Pages are fetched as
        they are needed; images that are accepted meanwhile are not among them."""
        filters = {"status": status, "reference": reference, "tag": tag}
        asked = {name: value for name, value in filters.items() if value is not None}
        while True:
            page = self._page(f"/images?{urlencode(asked)}" if asked else "/images")
            yield from page["images"]
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def _page(self, path: str) -> PageDocument:
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - the other requests should not wait for it

        from darkroom.http.images.documents import PageDocument  # noqa: PLC0415

        try:
            page = self.ask("GET", path)
            for image in page.get("images", ()):
                image.update({**_LATER, **image})
            return TypeAdapter(PageDocument).validate_python(page)
        except (ValidationError, AttributeError, TypeError) as error:
            raise Refused(
                f"{self.url} did not return a list of images. Is this the address of a Darkroom API?", status_code=200
            ) from error

    def download(self, document: ReceivedStatus, name: str) -> bytes:
        """A variant's bytes, compared with what the image's status document says of them. Raises NotDownloaded."""
        variant = _named(document, name)
        for _ in range(_ADDRESSES_PER_FILE):
            try:
                content = self.fetch(variant["url"], size_bytes=variant["bytes"])
            except AddressExpired:
                variant = _named(self.status(document["id"]).document, name)
                continue
            if len(content) != variant["bytes"] or hashlib.sha256(content).hexdigest() != variant["sha256"]:
                raise NotDownloaded(
                    f"The file of {name} is not the one in the status document (size or SHA-256 differ) and "
                    "was not saved. Try again, and tell the operator if it happens twice."
                )
            return content
        raise NotDownloaded(
            f"The store keeps refusing the URL of {name}. Is this machine's clock right, "
            "and are the credentials of the stack's functions still valid?"
        )


def state_of(document: ReceivedStatus) -> str:
    """What a client waits for: the image's state, or that of the work beside it."""
    work = document.get("work")
    if work is None or work["ended_at"] is not None:
        return document["status"]
    return f"{document['status']}, its {work['kind']} {work['status']}"


def media_type(file: Path) -> str:
    """The image's type that the file's name suggests; the API looks at the bytes itself, but cannot if they are sent as
    text or JSON."""
    guessed = mimetypes.guess_type(file.name)[0] or ""
    return guessed if guessed.startswith("image/") else "application/octet-stream"  # guard: bodies-no-file-as-text


def _in_a_query(order: Mapping[str, Any]) -> dict[str, str]:
    """An order as parameters of a request whose body is the image."""
    return {name: _in_text(name, value) for name, value in order.items() if value is not None}


def _in_text(name: str, value: Any) -> str:
    match value:
        case str():
            return value
        case Sequence():
            return ",".join(value)
        case _ if name == "metadata":  # whose order is the client's
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case _:
            return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _named(document: ReceivedStatus, name: str) -> ReceivedVariant:
    for variant in document["variants"]:
        if variant["name"] == name:
            return variant
    raise NotDownloaded(f"The image is {document['status']} and has no {name} any more.")
