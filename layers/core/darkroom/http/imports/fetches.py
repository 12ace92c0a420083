"""Reads a request for an image that is to be fetched from a URL: its JSON, with every problem reported by field."""

from typing import Annotated, TypedDict

from pydantic import Field

from darkroom.domain.imports.fetch import MAX_SOURCE_URL_LENGTH, UrlOrder
from darkroom.http.images.request_models import STRICT, OrderFields, RequestReader, order_in


class _UrlFields(TypedDict):
    __pydantic_config__ = STRICT  # type: ignore[misc]
    url: Annotated[
        str,
        Field(
            json_schema_extra={"format": "uri", "maxLength": MAX_SOURCE_URL_LENGTH},
            description="Where everybody may fetch it by https, without a redirect to anything else.",
        ),
    ]


class FetchOrder(_UrlFields, OrderFields):
    """An image to fetch and how to develop it: `preset` with or without `variants`, or `recipe`; and when."""


_reader = RequestReader(FetchOrder, code="invalid_fetch", sentence="The request is invalid.")


def read_fetch(body: bytes) -> UrlOrder:
    """Returns what a request's JSON asks for; whether its URL may be fetched is for the operation to say.

    Raises Rejected: `invalid_fetch`, by field, and what `order_in` raises.
    """
    written = _reader.read(body)
    return UrlOrder(url=written["url"], order=order_in(written))
