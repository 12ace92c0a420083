"""The documents that the API answers with: what a client sees of an image, always with all its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypedDict

from pydantic import Field

from darkroom.domain.ids import IMAGE_ID_PATTERN
from darkroom.domain.image import Image, Status, Variant
from darkroom.domain.instants import Milliseconds, rfc3339
from darkroom.domain.lanes import LANES
from darkroom.ports import UploadForm

RETRY_AFTER_SECONDS, LONGEST_RETRY_AFTER_SECONDS = 1, 3600
"""How long a client waits before it asks again for an image that is not finished, and at most where it is scheduled."""

type ImageId = Annotated[str, Field(pattern=f"^{IMAGE_ID_PATTERN}$", description="An image's id.")]
type Instant = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="RFC 3339, in UTC, with milliseconds.")
]
type Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="In hexadecimal.")]
Path = Annotated[str, Field(pattern="^/", description="Relative to the API's root.")]
Count = Annotated[int, Field(ge=0)]


class ProgressDocument(TypedDict):
    """How many of the recipe's variants are made."""

    done: Count
    total: Count


class VariantDocument(TypedDict):
    """One finished output."""

    name: str
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    format: Annotated[str, Field(json_schema_extra={"enum": ["jpeg", "png", "webp", "avif"]})]
    bytes: Count
    sha256: Sha256
    url: Annotated[
        str,
        Field(json_schema_extra={"format": "uri"}, description="Anyone can fetch the variant there for 15 minutes."),
    ]


class PlaceholderDocument(TypedDict):
    """What to paint before the image arrives."""

    thumbhash: Annotated[str, Field(description="Base64 (https://evanw.github.io/thumbhash/).")]
    color: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")]


class ErrorDocument(TypedDict):
    """Why an image came to no good end."""

    code: Annotated[str, Field(description="Stable: branch on it.")]
    message: Annotated[str, Field(description="For people.")]
    retryable: Annotated[bool, Field(description="Whether the same bytes may yet succeed.")]


class LinksDocument(TypedDict):
    """Where to ask about the image."""

    self: Path
    status: Path


class StatusDocument(TypedDict):
    """An image as it stands: always all keys, and perhaps more in later versions."""

    id: ImageId
    status: Status
    lane: Annotated[str, Field(json_schema_extra={"enum": list(LANES)})]
    preset: Annotated[str | None, Field(description="null for a recipe of the client's own.")]
    run: Annotated[int, Field(ge=1, description="An operator's replay or redo begins the next one.")]
    attempt: Annotated[int, Field(ge=0, description="Of this run's five.")]
    created_at: Instant
    process_at: Instant | None
    expires_at: Instant | None
    completed_at: Instant | None
    progress: ProgressDocument
    variants: Annotated[
        list[VariantDocument],
        Field(
            description="Empty until the image is done. Where an operator has it developed again, those that there are "
            "stay until a run has made others."
        ),
    ]
    placeholder: PlaceholderDocument | None
    notices: Annotated[list[str], Field(description="What was left out or given up, in sentences for the owner.")]
    error: ErrorDocument | None
    links: LinksDocument


class FormDocument(TypedDict):
    """A form by which the announced bytes, and no others, can be posted to S3."""

    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    fields: Annotated[dict[str, str], Field(description="All of them, before the last one, `file`.")]
    expires_at: Instant


class UploadDocument(StatusDocument):
    """An image as it stands, and how its bytes can be sent."""

    upload: Annotated[FormDocument | None, Field(description="null where its bytes are awaited no longer.")]


class SourceDocument(TypedDict):
    """The original as it was accepted."""

    media_type: str
    bytes: Count
    sha256: Sha256


class ImageDocument(StatusDocument):
    """An image as it stands, with the facts of its original."""

    source: SourceDocument


class PageDocument(TypedDict):
    """Some of the tenant's images, newest first."""

    images: list[StatusDocument]
    next: Annotated[
        str | None,
        Field(description="The `cursor` of the next page; null where the list has ended."),
    ]


def status_document(image: Image, url_of: Callable[[Variant], str]) -> StatusDocument:
    """The document of `image`; `url_of` gives the address from which a finished variant can be fetched now."""
    total = len(image.recipe.variants)
    return {
        "id": image.image_id,
        "status": image.status,
        "lane": image.lane,
        "preset": image.preset,
        "run": image.run,
        "attempt": image.attempt,
        "created_at": rfc3339(image.created_at),
        "process_at": rfc3339(image.process_at),
        "expires_at": rfc3339(image.expires_at),
        "completed_at": rfc3339(image.completed_at),
        "progress": {"done": total if image.status is Status.DONE else 0, "total": total},
        "variants": [
            {
                "name": variant.name,
                "width": variant.width,
                "height": variant.height,
                "format": variant.format,
                "bytes": variant.size_bytes,
                "sha256": variant.sha256,
                "url": url_of(variant),
            }
            for variant in image.variants
        ],
        "placeholder": None
        if image.placeholder is None
        else {"thumbhash": image.placeholder["thumbhash"], "color": image.placeholder["color"]},
        "notices": list(image.notices),
        "error": None
        if image.error is None
        else {"code": image.error.code, "message": image.error.message, "retryable": image.error.retryable},
        "links": {"self": f"/images/{image.image_id}", "status": status_path(image.image_id)},
    }


def image_document(image: Image, url_of: Callable[[Variant], str]) -> ImageDocument:
    """The same with the facts of the original."""
    source = image.source
    return {
        **status_document(image, url_of),
        "source": {"media_type": source.media_type, "bytes": source.size_bytes, "sha256": source.sha256},
    }


def upload_document(image: Image, form: UploadForm | None, url_of: Callable[[Variant], str]) -> UploadDocument:
    """The same with the form by which its bytes can be sent, while they are awaited."""
    upload: FormDocument | None = None
    if form is not None:
        upload = {"url": form.url, "fields": dict(form.fields), "expires_at": rfc3339(form.expires_at)}
    return {**status_document(image, url_of), "upload": upload}


def retry_after_seconds(image: Image, now: Milliseconds) -> int | None:
    """When it makes sense to ask for the image again: for a scheduled one not before its time, but within the hour,
    because it may be moved. None where it has ended."""
    if image.status.is_terminal:
        return None
    if image.status is Status.AWAITING_UPLOAD:
        return RETRY_AFTER_SECONDS  # the notification of its upload comes within seconds, whenever its time is
    ahead_seconds = -(-((image.process_at or now) - now) // 1000)
    return max(RETRY_AFTER_SECONDS, min(ahead_seconds, LONGEST_RETRY_AFTER_SECONDS))


def status_path(image_id: str) -> str:
    """Where an image's status is asked for, relative to the API's root."""
    return f"/images/{image_id}/status"
