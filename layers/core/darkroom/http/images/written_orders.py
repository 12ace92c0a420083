"""What every order in JSON has: how to develop an image, and when."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from darkroom.domain.images.order import Order, order_of
from darkroom.domain.kernel.field_problems import FieldProblem, InvalidFields, problems_of
from darkroom.domain.kernel.sizes import excess_in_words
from darkroom.domain.schedules.schedule import Timetable
from darkroom.http.kernel.timetables import read_timetable

MAX_ORDER_BYTES = 24_576
"""Four times the longest recipe, so that an indented one fits, and the longest URL beside it."""


class WrittenOrder(BaseModel):
    """An order as a client has written it; what it is about is in the fields of its subclasses."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    preset: str | None = None
    variants: tuple[str, ...] | None = None
    recipe: dict[str, Any] | None = None
    process_at: str | None = None
    delay: str | None = None
    expires_at: str | None = None
    notify: str | None = None

    @classmethod
    def read(
        cls,
        body: bytes,
        refusal: Callable[[tuple[FieldProblem, ...]], InvalidFields],
        *,
        patterns: Mapping[str, str] | None = None,
    ) -> Self:
        """The order in a request's JSON. Raises the `refusal` of its problems by field, in which `body` names the whole
        document; `patterns` say in words what a field's pattern asks for."""
        if len(body) > MAX_ORDER_BYTES:
            told = f"has {excess_in_words(len(body), MAX_ORDER_BYTES)} are allowed"
            raise refusal((FieldProblem(field="body", message=told),))
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            raise refusal(problems_of(error, known=cls._names(), patterns=patterns)) from error

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        """The names of all fields, as clients write them: those of the subject first."""
        own = {name: one for name, one in cls.model_fields.items() if name not in WrittenOrder.model_fields}
        return tuple(one.alias or name for name, one in (own | WrittenOrder.model_fields).items())

    @property
    def order(self) -> Order:
        """What to make. Raises Rejected, as `order_of` does."""
        return order_of(
            preset=self.preset,
            variants=None if self.variants is None else ",".join(self.variants),
            recipe=None if self.recipe is None else json.dumps(self.recipe, separators=(",", ":")),
            notify=self.notify,
        )

    @property
    def timetable(self) -> Timetable:
        """When to make it. Raises Rejected, as `read_timetable` does."""
        return read_timetable(process_at=self.process_at, delay=self.delay, expires_at=self.expires_at)
