"""What is sent to webhooks, for openapi.json: each type of event as it is published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

from darkroom.domain.events.event import EventType
from darkroom.domain.images.image import WorkKind
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.webhooks.delivery import PING
from darkroom.domain.webhooks.endpoint import DisabledBy
from darkroom.http.bulk.batches import BatchId, BatchLinksDocument
from darkroom.http.images.documents import Count, ImageId, Instant, LinksDocument, PlaceholderDocument, WebhookId
from darkroom.http.webhooks.webhooks import WebhookLinksDocument

_FORGOTTEN = "Absent in an event that is published again after the row has forgotten it."


class Event(TypedDict):
    """A CloudEvents 1.0 event that is also a payload of Standard Webhooks."""

    specversion: Literal["1.0"]
    id: Annotated[str, Field(description="The same whenever it is sent: remember the ids that you have handled.")]
    source: Annotated[str, Field(description="The stack.")]
    subject: Annotated[str, Field(description="The id of what it is about.")]
    time: Annotated[Instant, Field(description="When it happened.")]
    timestamp: Instant
    datacontenttype: Literal["application/json"]
    type: Annotated[str, Field(description="What happened. There may be more types in later versions: ignore those.")]
    data: Annotated[dict[str, Any], Field(description="What is told of it, perhaps with more in later versions.")]


class RowEvent(Event):
    """An event of something that has more than one."""

    sequence: Annotated[
        str,
        Field(
            pattern="^[0-9]+$", description="A number. Of two events of a subject, the one with the higher is newer."
        ),
    ]
    sequencetype: Literal["Integer"]


class ImageEvent(RowEvent):
    """An event of an image."""

    notify: NotRequired[Annotated[WebhookId, Field(description="The only webhook that gets the image's events.")]]


class _ImageData(TypedDict):
    """What every event of an image tells of it."""

    id: ImageId
    tenant_id: str
    lane: Annotated[str, Field(json_schema_extra={"enum": list(LANES)})]
    preset: str | None
    run: Annotated[int, Field(ge=1)]
    reference: NotRequired[
        Annotated[str, Field(description="The client's own name for it; absent without one, and once it is deleted.")]
    ]
    batch: NotRequired[Annotated[BatchId, Field(description="The batch that it is in; absent without one.")]]
    links: LinksDocument


class AcceptedData(_ImageData):
    """An image that was accepted."""

    bytes: NotRequired[Annotated[Count, Field(description=f"Of the original. {_FORGOTTEN}")]]
    media_type: NotRequired[str]
    process_at: NotRequired[Instant | None]


class SentVariant(TypedDict):
    """A finished output."""

    name: str
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    format: str
    bytes: Count
    url: Annotated[
        str,
        Field(
            pattern="^(/|https?://)",
            description="Of a public image its permanent URL; of others the path, from the API's root, that redirects "
            "to the variant.",
        ),
    ]


class SentPicture(TypedDict):
    """What a website shows of a public image."""

    url: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    srcset: str


class DoneData(_ImageData):
    """An image that was developed, or got more variants: those that were made."""

    variants: NotRequired[Annotated[list[SentVariant], Field(description=_FORGOTTEN)]]
    picture: NotRequired[Annotated[SentPicture, Field(description=f"Of a public image. {_FORGOTTEN}")]]
    placeholder: NotRequired[Annotated[PlaceholderDocument | None, Field(description=f"As `picture`. {_FORGOTTEN}")]]


class VisibilityData(DoneData):
    """An image that other people may see now: all of its variants, at their new URLs."""

    visibility: NotRequired[Annotated[str, Field(json_schema_extra={"enum": list(Visibility)}, description=_FORGOTTEN)]]


class SentError(TypedDict):
    """Why there are no variants."""

    code: Annotated[str, Field(description="Stable: branch on it.")]
    message: Annotated[str, Field(description="For people.")]


class EndedData(_ImageData):
    """An image that failed or expired."""

    error: NotRequired[Annotated[SentError, Field(description=_FORGOTTEN)]]


class WorkFailedData(EndedData):
    """Work beside an image that failed: the image is as before."""

    work: NotRequired[Annotated[str, Field(json_schema_extra={"enum": list(WorkKind)}, description=_FORGOTTEN)]]


class PlainData(_ImageData):
    """An image that was deleted."""


class FailingData(TypedDict):
    """A webhook at which everything fails."""

    id: WebhookId
    tenant_id: str
    failing_since: Instant | None
    links: WebhookLinksDocument


class DisabledData(FailingData):
    """A webhook that is sent nothing any more."""

    disabled_by: Annotated[str, Field(json_schema_extra={"enum": list(DisabledBy)})]


class BatchEvent(RowEvent):
    """An event of a batch."""

    notify: NotRequired[Annotated[WebhookId, Field(description="The only webhook that hears of the batch's end.")]]


class EndedImages(TypedDict):
    """How many images of a batch have ended, by the way in which they have."""

    done: Count
    failed: Count
    cancelled: Count
    expired: Count


class BatchData(TypedDict):
    """A batch that has ended."""

    id: BatchId
    tenant_id: str
    name: Annotated[str | None, Field(description="The client's own name for it.")]
    images: EndedImages
    links: BatchLinksDocument


class DueData(TypedDict):
    """A time that has come."""

    id: Annotated[str, Field(description="The schedule's id.")]
    tenant_id: str
    name: Annotated[str, Field(description="The operator's own name for it.")]
    planned_for: Instant


class PingData(TypedDict):
    """The webhook that is tried."""

    tenant_id: str
    webhook_id: WebhookId


PAYLOADS: Mapping[str, tuple[type, type]] = {
    EventType.ACCEPTED: (ImageEvent, AcceptedData),
    EventType.DONE: (ImageEvent, DoneData),
    EventType.FAILED: (ImageEvent, EndedData),
    EventType.CANCELLED: (ImageEvent, PlainData),
    EventType.EXPIRED: (ImageEvent, EndedData),
    EventType.DELETED: (ImageEvent, PlainData),
    EventType.VARIANTS_ADDED: (ImageEvent, DoneData),
    EventType.VISIBILITY_CHANGED: (ImageEvent, VisibilityData),
    EventType.REDEVELOPED: (ImageEvent, DoneData),
    EventType.WORK_FAILED: (ImageEvent, WorkFailedData),
    EventType.WEBHOOK_FAILING: (RowEvent, FailingData),
    EventType.WEBHOOK_DISABLED: (RowEvent, DisabledData),
    EventType.BATCH_COMPLETED: (BatchEvent, BatchData),
    EventType.BATCH_FAILED: (BatchEvent, BatchData),
    EventType.BATCH_CANCELLED: (BatchEvent, BatchData),
    EventType.SCHEDULE_DUE: (RowEvent, DueData),
    PING: (Event, PingData),
}
"""What is sent for each type: the event, and its `data`."""
