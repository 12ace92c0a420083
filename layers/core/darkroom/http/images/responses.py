"""The answers that show images."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from darkroom.domain.images.pictures import NO_EDGE, EdgeUrls
from darkroom.domain.kernel.paths import status_path
from darkroom.http.images.documents import (
    RETRY_AFTER_SECONDS,
    image_document,
    listed_document,
    retry_after_seconds,
    status_document,
)
from darkroom.http.images.entity_tags import entity_tag, matches_entity_tag, page_tag
from darkroom.http.images.list_queries import cursor_text
from darkroom.http.kernel.responses import NOT_STORED, json_response
from darkroom.http.kernel.router import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from darkroom.domain.images.estimates import Outlook
    from darkroom.domain.images.image import Image, Variant
    from darkroom.domain.kernel.instants import Milliseconds
    from darkroom.operations.images.list_images import ImagePage


def headers_of_accepted(image: Image, *, replayed: bool, now: Milliseconds) -> dict[str, str]:
    """The headers of an answer to a request that made an image, or whose image an earlier one has made (`replayed`)."""
    return {
        "Location": status_path(image.image_id),
        "Retry-After": str(retry_after_seconds(image, now) or RETRY_AFTER_SECONDS),
        **NOT_STORED,
        **({"Idempotent-Replayed": "true"} if replayed else {}),
    }


def image_response(
    image: Image,
    url_of: Callable[[Variant], str],
    *,
    with_source: bool,
    if_none_match: str | None,
    now: Milliseconds,
    outlook: Outlook = None,
    edge: Callable[[], EdgeUrls] = lambda: NO_EDGE,
) -> Response:
    """The image in its current state, with the facts of its original if `with_source`; without a document if the
    client's copy is current, and then nothing is signed, by `edge` neither."""
    headers = _revalidated(entity_tag(image, now, outlook), retry_after_seconds(image, now))
    if matches_entity_tag(if_none_match, headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED.value, headers=dict(headers))
    document_of = image_document if with_source else status_document
    return json_response(HTTPStatus.OK, document_of(image, url_of, outlook, edge=edge()), headers)


def page_response(
    page: ImagePage,
    outlook_of: Callable[[Image], Outlook],
    *,
    thumb_url_of: Callable[[Variant], str] | None,
    if_none_match: str | None,
    now: Milliseconds,
    edge: EdgeUrls = NO_EDGE,
) -> Response:
    """A page of the list, whose images have a `thumb` with `thumb_url_of`; without a document if the client's copy is
    current, and then nothing is signed."""
    entries = [(image, outlook_of(image)) for image in page.images]
    following = None if page.next is None else cursor_text(page.next)
    pauses = [again for image in page.images if (again := retry_after_seconds(image, now)) is not None]
    headers = _revalidated(page_tag(entries, following, now), min(pauses, default=None))
    if matches_entity_tag(if_none_match, headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED.value, headers=dict(headers))
    images = [listed_document(image, outlook, thumb_url_of=thumb_url_of, edge=edge) for image, outlook in entries]
    return json_response(HTTPStatus.OK, {"images": images, "next": following}, headers)


def _revalidated(tag: str, again: int | None) -> dict[str, str]:
    # `no-cache` lets a client keep the document but makes it revalidate, so that the entity tag is useful.
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    return headers if again is None else headers | {"Retry-After": str(again)}
