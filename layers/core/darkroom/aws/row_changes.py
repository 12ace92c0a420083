"""The writes of the Images and Endpoints tables as their streams hand them to a function
(https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darkroom.aws.endpoints_table import ENDPOINTS
from darkroom.aws.images_table import from_item
from darkroom.domain.endpoint import Endpoint
from darkroom.domain.image import Image
from darkroom.ports import RowChange, UnreadableRow


def read_changes(event: Mapping[str, Any]) -> list[RowChange]:
    """The writes in a stream's event, in their order. Raises ValueError for anything else, so that no write is taken
    for told."""
    try:
        return [_change_of(record["dynamodb"]) for record in event["Records"]]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the function handles events of a table's stream only, this one lacks: {error}") from error


def _change_of(written: Mapping[str, Any]) -> RowChange:
    old: Any = written.get("OldImage")
    new: Any = written.get("NewImage")
    version = "" if new is None else str(new.get("version", {}).get("N", ""))
    try:
        before, after = _row(old), _row(new)
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
    """The attribute with the id of what the row is about: an image's is its key, an endpoint's key is its place."""
    return "image_id" if "image_id" in item else "endpoint_id"


def _text_of(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """What an endpoint's row is called whose id a newer version keeps elsewhere."""
    return "/".join(str(value) for key in keys.values() for value in key.values())


def _row(item: Any) -> Image | Endpoint | None:
    if item is None:
        return None
    return from_item(item) if _id_of(item) == "image_id" else ENDPOINTS.row_of(item)
