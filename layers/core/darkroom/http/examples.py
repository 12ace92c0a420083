"""Examples for openapi.json: images made by the domain's functions, in the documents that the handlers answer with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darkroom.domain.image import Image, Source, Status, Variant
from darkroom.domain.instants import Milliseconds, rfc3339
from darkroom.domain.lanes import SLOW
from darkroom.domain.listing import Cursor
from darkroom.domain.presets import DEFAULT_PRESET, PRESETS
from darkroom.domain.transitions import (
    UPLOAD_SECONDS,
    accept,
    await_upload,
    complete,
    reject,
)
from darkroom.http.documents import (
    FormDocument,
    ImageDocument,
    PageDocument,
    StatusDocument,
    UploadDocument,
    image_document,
    listed_document,
    status_document,
)
from darkroom.http.headers import EXAMPLE_ID
from darkroom.http.list_queries import cursor_text

ACCEPTED_AT: Milliseconds = 1_795_251_600_000
"""2026-11-21T09:00:00Z."""

_SHA256 = "9f2c6b7e41d05a83c7be19f4402d6a58e3b0c1f7a94d2e6b85037cfa61d9e824"


def accepted() -> Image:
    """An image that was accepted just now."""
    return accept(
        image_id=EXAMPLE_ID,
        tenant_id="default",
        lane=SLOW.name,
        preset=DEFAULT_PRESET,
        recipe=PRESETS[DEFAULT_PRESET],
        fingerprint="",
        correlation_id="T3stRequ3stId=",
        source=Source(version_id="1", sha256=_SHA256, size_bytes=3_481_912, media_type="image/jpeg"),
        now=ACCEPTED_AT,
    )


def announced() -> Image:
    """The same image before its bytes arrive."""
    return await_upload(accepted(), now=ACCEPTED_AT)


def _claimed() -> Image:
    return replace(accepted(), status=Status.PROCESSING, attempt=1)


def done() -> Image:
    """The same image, developed."""
    made = (
        ("thumb", 256, 144, "jpeg", 7_726),
        ("medium", 800, 450, "jpeg", 52_310),
        ("large", 1920, 1080, "jpeg", 240_118),
        ("webp", 1920, 1080, "webp", 187_402),
    )
    return complete(
        _claimed(),
        tuple(
            Variant(
                name=name,
                width=width,
                height=height,
                format=form,
                size_bytes=size_bytes,
                sha256=_SHA256,
                key=f"outputs/{EXAMPLE_ID}/1/{name}",
            )
            for name, width, height, form, size_bytes in made
        ),
        notices=(),
        now=ACCEPTED_AT + 1_300,
        placeholder={"thumbhash": "1QcSHQRnh493V4dIh4eXh1h4kJUI", "color": "#7a8b5c"},
    )


def failed() -> Image:
    """The same image if its file had been cut off."""
    return reject(_claimed(), code="truncated", message="The file ends before the picture does.", now=ACCEPTED_AT + 500)


def _url_of(variant: Variant) -> str:
    return f"https://darkroom-outputs.s3.us-east-1.amazonaws.com/{variant.key}?X-Amz-Expires=900&X-Amz-Signature=0a1b2c"


def examples_of(kind: Any) -> dict[str, Any]:
    """Returns the named examples of that document type; none if it has no example here."""
    if kind is StatusDocument:
        return {image.status.value: status_document(image, _url_of) for image in (accepted(), done(), failed())}
    if kind is UploadDocument:
        url = "https://darkroom-uploads.s3.us-east-1.amazonaws.com/"
        fields = {"key": f"uploads/{EXAMPLE_ID}", "Content-Type": "image/jpeg", "x-amz-signature": "0a1b2c"}
        expires_at = rfc3339(ACCEPTED_AT + UPLOAD_SECONDS * 1000)
        form: FormDocument = {"url": url, "fields": fields, "expires_at": expires_at}
        return {
            "awaited": {**status_document(announced(), _url_of), "upload": form},
            "uploaded": {**status_document(accepted(), _url_of), "upload": None},
        }
    if kind is ImageDocument:
        return {image.status.value: image_document(image, _url_of) for image in (accepted(), done())}
    if kind is PageDocument:
        cursor = Cursor(created_at=ACCEPTED_AT, image_id=EXAMPLE_ID)
        return {"page": {"images": [listed_document(done())], "next": cursor_text(cursor)}}
    return {}
