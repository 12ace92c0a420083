"""Reads a request for an image that is to be fetched from a URL: its JSON, with every problem reported by field."""

from __future__ import annotations

from darkroom.domain.imports.fetch import FetchOrder
from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields
from darkroom.http.images.written_orders import WrittenOrder


class InvalidFetch(InvalidFields):
    """The JSON is no request to fetch an image; `body` names the whole document."""

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("invalid_fetch", "The request is invalid.", problems)


class _Written(WrittenOrder):
    url: str


def read_fetch(body: bytes) -> FetchOrder:
    """Returns what a request's JSON asks for; whether its URL may be fetched is for the operation to say.

    Raises Rejected: `invalid_fetch`, by field, and what `order_of` and `read_timetable` raise.
    """
    written = _Written.read(body, InvalidFetch)
    return FetchOrder(url=written.url, order=written.order, timetable=written.timetable)
