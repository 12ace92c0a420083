"""The documents that the API answers with: what a client sees of an image, always with all keys but `batch`,
`waits_for` and `paused`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.images.estimates import Outlook
from darkroom.domain.images.image import UNKNOWN_SOURCE, Failure, Image, Status, Variant, WorkKind
from darkroom.domain.images.listing import LISTED_STATUSES, thumb_of
from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls, picture_of, urls_of
from darkroom.domain.images.transitions import may_begin_edit
from darkroom.domain.images.works import EDIT_STATUSES, edit_status, names_of_work
from darkroom.domain.kernel.endpoint_ids import ENDPOINT_ID_PATTERN
from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.paths import image_path, status_path, variant_path
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.recipes import POINT_STEPS
from darkroom.ports.uploads import UploadForm

RETRY_AFTER_SECONDS, LONGEST_RETRY_AFTER_SECONDS = 1, 3600
"""How long a client waits before it asks again for an unfinished image: the usual pause, and the longest for a
scheduled image."""

type WebhookId = Annotated[str, Field(pattern=f"^{ENDPOINT_ID_PATTERN}$", description="A webhook's id.")]
type ImageId = Annotated[str, Field(pattern=f"^{IMAGE_ID_PATTERN}$", description="An image's id.")]
type Instant = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="RFC 3339, in UTC, with milliseconds.")
]
type Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="In hexadecimal.")]
Path = Annotated[str, Field(pattern="^/", description="Relative to the API's root.")]
Count = Annotated[int, Field(ge=0)]


class ProgressDocument(TypedDict):
    """How many of the recipe's variants are finished."""

    done: Count
    total: Count


class _VariantFacts(TypedDict):
    """One finished output."""

    name: str
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    format: Annotated[str, Field(json_schema_extra={"enum": ["jpeg", "png", "webp", "avif", "gif"]})]
    bytes: Count
    sha256: Sha256


class VariantDocument(_VariantFacts):
    """One finished output, with its address."""

    url: Annotated[
        str,
        Field(
            json_schema_extra={"format": "uri"},
            description="Anyone can fetch the variant there: of a public image always, of others for 15 minutes.",
        ),
    ]


class ListedVariantDocument(_VariantFacts):
    """One finished output, with the route to it."""

    url: Annotated[
        str,
        Field(
            pattern="^(/|https?://)",
            description="Of a public image, as in its status; of others the path, from the API's root, that redirects "
            "to the variant.",
        ),
    ]


class PlaceholderDocument(TypedDict):
    """What to paint before the image arrives."""

    thumbhash: Annotated[str, Field(description="Base64 (https://evanw.github.io/thumbhash/).")]
    color: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")]


class PictureDocument(TypedDict):
    """What a website shows: `<img src="url" srcset="srcset" width="width" height="height">`."""

    url: Annotated[
        str,
        Field(json_schema_extra={"format": "uri"}, description="The widest variant that every browser shows."),
    ]
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    srcset: Annotated[str, Field(description="It and the smaller ones of the same format and crop.")]
    expires_at: Annotated[Instant | None, Field(description="When a signed image's URLs end; null for never.")]


class AttentionDocument(TypedDict):
    """The point that crops by attention keep, in fractions of the upright picture from its top left corner."""

    x: Annotated[float, Field(ge=0, le=1)]
    y: Annotated[float, Field(ge=0, le=1)]


class ErrorDocument(TypedDict):
    """Why an image failed or expired."""

    code: Annotated[str, Field(description="Stable: branch on it.")]
    message: Annotated[str, Field(description="For people.")]
    retryable: Annotated[bool, Field(description="Whether the same bytes may still succeed.")]


class LinksDocument(TypedDict):
    """Where to ask about the image."""

    self: Path
    status: Path


class _InBatch(TypedDict):
    """What an image, or work beside it, has to do with a batch."""

    batch: Annotated[NotRequired[str], Field(description="The batch that it is in; absent without one.")]
    waits_for: Annotated[
        NotRequired[Literal["batch"]],
        Field(description="That it begins when it is its turn in its batch. Absent otherwise."),
    ]


class WorkDocument(_InBatch):
    """The latest work beside an image that is done: whatever comes of it, the image stays done."""

    kind: Annotated[str, Field(json_schema_extra={"enum": list(WorkKind)})]
    status: Annotated[str, Field(json_schema_extra={"enum": ["pending", "processing", "done", "failed"]})]
    run: Annotated[int, Field(ge=2)]
    attempt: Annotated[int, Field(ge=0)]
    retry_at: Instant | None
    requested_at: Instant
    ended_at: Instant | None
    variants: Annotated[list[str], Field(description="The names of those that it makes.")]
    error: Annotated[ErrorDocument | None, Field(description="Why it failed.")]


class EditDocument(TypedDict):
    """The last edit that was accepted."""

    number: Annotated[int, Field(ge=1, description="Of the image's edits: the highest is what its variants become.")]
    status: Annotated[
        str,
        Field(
            json_schema_extra={"enum": list(EDIT_STATUSES)},
            description="`accepted` until it is begun; if it has `failed`, the variants are as before it, and the "
            "next edit is made all the same.",
        ),
    ]
    accepted_at: Instant
    overtaken: Annotated[
        list[int],
        Field(description="The numbers of the latest edits that were skipped, because another one came in time."),
    ]


class _ImageFacts(_InBatch):
    """An image in its current state, without its variants."""

    id: ImageId
    status: Annotated[str, Field(json_schema_extra={"enum": list(LISTED_STATUSES)})]
    lane: Annotated[str, Field(json_schema_extra={"enum": list(LANES)})]
    preset: Annotated[str | None, Field(description="null if the client sent its own recipe.")]
    preset_version: Annotated[
        int | None, Field(description="The version of the preset that its variants are of; null without a preset.")
    ]
    run: Annotated[int, Field(ge=1, description="A replay, or work beside the image, starts the next one.")]
    attempt: Annotated[
        int, Field(ge=0, description="Out of five in this run; while it is fetched, out of ten of fetching.")
    ]
    retry_at: Annotated[
        Instant | None,
        Field(description="When the next attempt begins, after one that failed; null if none waits for its time."),
    ]
    created_at: Instant
    process_at: Instant | None
    expires_at: Instant | None
    completed_at: Instant | None
    estimated_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            description="In about how many seconds an image that waits for a worker will be done, as answers to GET "
            "know it. null if it does not wait, or too little was developed in the last minutes to tell.",
        ),
    ]
    paused: Annotated[
        NotRequired[Literal[True]],
        Field(
            description="Whether an operator has paused the work on it, as answers to GET know it: it waits as it is, "
            "and goes on after that. Absent otherwise."
        ),
    ]
    progress: ProgressDocument
    placeholder: PlaceholderDocument | None
    visibility: Annotated[str, Field(json_schema_extra={"enum": list(Visibility)})]
    picture: Annotated[
        PictureDocument | None,
        Field(description="null for a private image, and until it is done; lists have none of signed ones."),
    ]
    attention: Annotated[
        AttentionDocument | None,
        Field(description="null until the image is done, and if no variant has the gravity `attention`."),
    ]
    notices: Annotated[list[str], Field(description="What was left out or reduced, in sentences for the owner.")]
    error: ErrorDocument | None
    reference: Annotated[str | None, Field(description="The client's own words: see the request that made it.")]
    tags: list[str]
    metadata: dict[str, Any] | None
    work: Annotated[WorkDocument | None, Field(description="null if there was none.")]
    edit: Annotated[EditDocument | None, Field(description="null if there was none.")]
    links: LinksDocument


_VARIANTS = Field(
    description="Empty until the image is done. While work beside it makes others, the present ones stay."
)


class StatusDocument(_ImageFacts):
    """An image in its current state: always with all keys but `batch`, `waits_for` and `paused`, perhaps with more in
    later versions."""

    variants: Annotated[list[VariantDocument], _VARIANTS]


class ThumbDocument(TypedDict):
    """An image's smallest variant, with its address."""

    name: str
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    url: Annotated[
        str,
        Field(json_schema_extra={"format": "uri"}, description="Anyone can fetch the variant there for 15 minutes."),
    ]


class ListedDocument(_ImageFacts):
    """An image in its current state, as lists have it: its status document gives the addresses of its variants."""

    variants: Annotated[list[ListedVariantDocument], _VARIANTS]
    thumb: Annotated[
        ThumbDocument | None,
        Field(description="null unless `urls=thumb` asks for it, and while the image has no variant."),
    ]


class FormDocument(TypedDict):
    """A form to post the announced bytes, and no others, to S3."""

    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    fields: Annotated[dict[str, str], Field(description="Send all of them, then `file` as the last field.")]
    expires_at: Instant


class UploadDocument(StatusDocument):
    """An image in its current state, and how to send its bytes."""

    upload: Annotated[FormDocument | None, Field(description="null if the bytes are no longer awaited.")]


class FetchedDocument(TypedDict):
    """What the server said of an original that was fetched."""

    etag: str | None
    last_modified: str | None


class SourceDocument(TypedDict):
    """The original as it was accepted."""

    media_type: str
    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="In hexadecimal.")]
    fetched: Annotated[FetchedDocument | None, Field(description="null if it was not fetched from a URL.")]


class ImageDocument(StatusDocument):
    """An image in its current state, with the facts of its original."""

    source: Annotated[
        SourceDocument | None, Field(description="null for an image from a URL that is not fetched yet, or never was.")
    ]


class PageDocument(TypedDict):
    """Some of the tenant's images, newest first."""

    images: list[ListedDocument]
    next: Annotated[
        str | None,
        Field(description="The `cursor` of the next page; null at the end of the list."),
    ]


def status_document(
    image: Image,
    url_of: Callable[[Variant], str],
    outlook: Outlook = None,
    *,
    edge: EdgeUrls = NO_EDGE,
) -> StatusDocument:
    """Returns the document of `image`; `url_of` gives the address of a finished variant that has none at the edge."""
    total = len(image.variants) if image.works else 0 if image.recipe is None else len(image.recipe.made_names)
    urls = urls_of(image, edge)
    document: StatusDocument = {
        "id": image.image_id,
        "status": image.outcome.value,
        "lane": image.lane,
        "preset": image.preset,
        "preset_version": None if image.preset is None else image.preset_version or 1,
        "run": image.run,
        "attempt": image.attempt,
        "retry_at": rfc3339(image.retry_at if image.work is None else None),
        "created_at": rfc3339(image.created_at),
        "process_at": rfc3339(image.process_at),
        "expires_at": rfc3339(image.expires_at),
        "completed_at": rfc3339(image.completed_at),
        "estimated_seconds": None if outlook == "paused" else outlook,
        "progress": {"done": total if image.outcome is Status.DONE else 0, "total": total},
        "variants": [
            {
                "name": variant.name,
                "width": variant.width,
                "height": variant.height,
                "format": variant.format,
                "bytes": variant.size_bytes,
                "sha256": variant.sha256,
                "url": urls.get(variant.name) or url_of(variant),
            }
            for variant in image.variants
        ],
        "placeholder": _placeholder_document(image.placeholder),
        "visibility": image.visibility.value,
        "picture": _picture_document(image, edge),
        "attention": None
        if image.attention is None
        else {"x": image.attention["x"] / POINT_STEPS, "y": image.attention["y"] / POINT_STEPS},
        "notices": list(image.notices),
        "error": _error_document(image.error),
        "reference": image.reference,
        "tags": list(image.tags),
        "metadata": None if image.metadata is None else json.loads(image.metadata),
        "work": _work_document(image),
        "edit": _edit_document(image),
        "links": {"self": image_path(image.image_id), "status": status_path(image.image_id)},
    }
    if image.batch is not None:
        document["batch"] = image.batch
    if image.awaits_turn and image.outcome is Status.PENDING:
        document["waits_for"] = "batch"
    if outlook == "paused":
        document["paused"] = True
    return document


def _picture_document(image: Image, edge: EdgeUrls) -> PictureDocument | None:
    picture = picture_of(image, edge)
    if picture is None:
        return None
    return {
        "url": picture.url,
        "width": picture.width,
        "height": picture.height,
        "srcset": picture.srcset,
        "expires_at": rfc3339(picture.expires_at),
    }


def _placeholder_document(placeholder: dict[str, str] | None) -> PlaceholderDocument | None:
    return None if placeholder is None else {"thumbhash": placeholder["thumbhash"], "color": placeholder["color"]}


def _error_document(error: Failure | None) -> ErrorDocument | None:
    return None if error is None else {"code": error.code, "message": error.message, "retryable": error.retryable}


def _work_document(image: Image) -> WorkDocument | None:
    if not image.works:
        return None
    work = image.works[-1]
    ended = "failed" if work.failed else "done"
    document: WorkDocument = {
        "kind": work.kind.value,
        "status": image.status.value if image.work is not None else ended,
        "run": work.run,
        "attempt": 0 if image.latest_work is None else image.attempt,
        "retry_at": rfc3339(image.retry_at if image.work is not None else None),
        "requested_at": rfc3339(work.requested_at),
        "ended_at": rfc3339(work.ended_at if image.work is not None else work.ended_at or image.completed_at),
        "variants": names_of_work(image, work),
        "error": _error_document(work.error),
    }
    if work.batch is not None:
        document["batch"] = work.batch
    if image.work is not None and image.awaits_turn:
        document["waits_for"] = "batch"
    return document


def _edit_document(image: Image) -> EditDocument | None:
    if image.edit is None or image.edit_number is None:
        return None
    return {
        "number": image.edit_number,
        "status": edit_status(image),
        "accepted_at": rfc3339(image.edit.accepted_at),
        "overtaken": [earlier.number for earlier in image.edit.earlier if earlier.overtaken],
    }


def listed_document(
    image: Image,
    outlook: Outlook = None,
    *,
    thumb_url_of: Callable[[Variant], str] | None = None,
    edge: EdgeUrls = NO_EDGE,
) -> ListedDocument:
    """Returns the document of `image` in a list. A page of presigned addresses would cost more than its images, since
    each takes half a millisecond to sign: with `thumb_url_of` there is one per image."""
    thumb = None if thumb_url_of is None else thumb_of(image)
    return {
        **status_document(image, lambda variant: variant_path(image.image_id, variant.name), outlook, edge=edge),
        "thumb": None
        if thumb is None or thumb_url_of is None
        else {
            "name": thumb.name,
            "width": thumb.width,
            "height": thumb.height,
            "url": urls_of(image, edge).get(thumb.name) or thumb_url_of(thumb),
        },
    }


def image_document(
    image: Image,
    url_of: Callable[[Variant], str],
    outlook: Outlook = None,
    *,
    edge: EdgeUrls = NO_EDGE,
) -> ImageDocument:
    """Returns the same with the facts of the original."""
    source = image.source
    return {
        **status_document(image, url_of, outlook, edge=edge),
        "source": None
        if source == UNKNOWN_SOURCE  # guard: status-unfetched-source
        else {
            "media_type": source.media_type,
            "bytes": source.size_bytes,
            "sha256": source.sha256,
            "fetched": None
            if image.fetched is None
            else {"etag": image.fetched.etag, "last_modified": image.fetched.last_modified},
        },
    }


def upload_document(
    image: Image, form: UploadForm | None, url_of: Callable[[Variant], str], *, edge: EdgeUrls = NO_EDGE
) -> UploadDocument:
    """Returns the same with the form for sending the image's bytes, while they are awaited."""
    return {**status_document(image, url_of, edge=edge), "upload": None if form is None else form_document(form)}


def form_document(form: UploadForm) -> FormDocument:
    """Returns how to send a form."""
    return {"url": form.url, "fields": dict(form.fields), "expires_at": rfc3339(form.expires_at)}


def retry_after_seconds(image: Image, now: Milliseconds) -> int | None:
    """When to ask for the image again: for a scheduled one not before its time, but within the hour, because it may be
    rescheduled. None once its run has ended, unless an edit waits for that."""
    if image.status.is_terminal:
        return RETRY_AFTER_SECONDS if may_begin_edit(image) else None
    if image.status is Status.AWAITING_UPLOAD:
        return RETRY_AFTER_SECONDS  # the notification of its upload comes within seconds, whenever it is scheduled for
    next_at = image.retry_at if image.status is Status.FETCHING else image.process_at
    ahead_seconds = -(-((next_at or now) - now) // 1000)
    return max(RETRY_AFTER_SECONDS, min(ahead_seconds, LONGEST_RETRY_AFTER_SECONDS))
