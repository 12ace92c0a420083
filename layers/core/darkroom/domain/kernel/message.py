"""The queue message, version 1: a reference to an image row, never a payload."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
)

from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN


class Message(BaseModel):
    """What a lane's queue carries: far under 4 KB, and meaningless unless it matches its image row.

    `run` and `schedule` are the run and schedule of the image that it was sent for: a message with an older one is
    stale. `process_at` is when the image is due, if it must be held until then: messages in a lane have none. `beside`
    is set for an image with work beside it: a version that knows of none cannot read the message, and leaves it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    v: Literal[1] = 1
    image_id: Annotated[str, StringConstraints(pattern=rf"^{IMAGE_ID_PATTERN}$")]
    # guard: hold-tenant-message-group
    tenant_id: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,128}$")]  # its MessageGroupId: SQS accepts no others
    lane: Annotated[str, StringConstraints(min_length=1, max_length=32)]
    run: Annotated[int, Field(ge=1)]
    schedule: Annotated[int, Field(ge=0)]
    process_at: Annotated[int, Field(ge=0)] | None = None
    beside: Literal[True] | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Versions that do not know process_at or beside read the lanes' messages too.
        return {name: value for name, value in dump(self).items() if value is not None}


class UnreadableMessage(ValueError):
    """A queue message that is not a version 1 message; it stays in the queue until it becomes a dead letter."""


def read_message(body: str) -> Message:
    """The message in a queue record's body. Raises UnreadableMessage, naming the invalid field."""
    try:
        return Message.model_validate_json(body)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in error.errors()[:5])
        raise UnreadableMessage(f"not a version 1 message: {problems}") from error
