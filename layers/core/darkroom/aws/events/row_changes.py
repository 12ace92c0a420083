"""The writes of the Images, Endpoints and Batches tables as their streams hand them to a function
(https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from darkroom.ports.events import RowChange
from darkroom.ports.kernel import UnreadableRow

if TYPE_CHECKING:
    from darkroom.domain.bulk.batches import Batch
    from darkroom.domain.bulk.schedules import Schedule
    from darkroom.domain.images.image import Image
    from darkroom.domain.webhooks.endpoint import Endpoint


type Readers = Mapping[str, Callable[[Any], Image | Endpoint | Batch | Schedule]]
"""What reads a table's items, by the attribute with the id of what they are about."""


def changes_in(event: Mapping[str, Any], readers: Readers) -> list[RowChange]:
    """The writes in a stream's event, in their order. Raises ValueError for anything else, so that no write is taken
    for told."""
    try:
        return [_change_of(record["dynamodb"], readers) for record in event["Records"]]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the function handles events of a table's stream only, this one lacks: {error}") from error


def _change_of(written: Mapping[str, Any], readers: Readers) -> RowChange:
    old: Any = written.get("OldImage")
    new: Any = written.get("NewImage")
    version = "" if new is None else str(new.get("version", {}).get("N", ""))
    try:
        before, after = _row(old, readers), _row(new, readers)
        unreadable = None
    except UnreadableRow as error:
        before = after = None
        unreadable = error
    return RowChange(
        place=written["SequenceNumber"],
        # guard: isolated-stream-record-id
        subject=(new or old).get(_id_of(written["Keys"]), {}).get("S") or _text_of(written["Keys"]),
        version=int(version) if version.isdecimal() else None,  # a later version may count otherwise
        before=before,
        after=after,
        unreadable=unreadable,
    )


def _id_of(item: Any) -> str:
    """The attribute with the id of what the row is about: an image's is its key, an endpoint's key is its place,
    and a batch's is a place and a part, as a schedule's is."""
    if "part" in item:
        return "schedule_id" if item["part"].get("S") == "schedule" else "batch_id"
    return "image_id" if "image_id" in item else "endpoint_id"


def _text_of(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """What an endpoint's row is called whose id a newer version keeps elsewhere."""
    return "/".join(str(value) for key in keys.values() for value in key.values())


def _row(item: Any, readers: Readers) -> Image | Endpoint | Batch | Schedule | None:
    if item is None:
        return None
    return readers[_id_of(item)](item)
