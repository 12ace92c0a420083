"""Reads a request for an image that is to be fetched from a URL: its JSON, with every problem reported by field."""

from __future__ import annotations

from pydantic import ValidationError

from darkroom.domain.fetch import FetchOrder
from darkroom.domain.field_problems import FieldProblem, InvalidFields, problems_of
from darkroom.http.written_orders import WrittenOrder

MAX_FETCH_ORDER_BYTES = 16_384
"""Four times the longest recipe, so that an indented one fits beside the longest URL."""


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
    if len(body) > MAX_FETCH_ORDER_BYTES:
        told = f"has {len(body)} bytes; at most {MAX_FETCH_ORDER_BYTES} are allowed"
        raise InvalidFetch((FieldProblem(field="body", message=told),))
    try:
        written = _Written.model_validate_json(body)
    except ValidationError as error:
        raise InvalidFetch(problems_of(error, known=_Written.names())) from error
    return FetchOrder(url=written.url, order=written.order, timetable=written.timetable)
