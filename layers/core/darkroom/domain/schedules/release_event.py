"""The event of one window of a release: what an execution of `hold_batch` carries from one window to the next."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from darkroom.domain.kernel.instants import Milliseconds


class ReleaseEvent(BaseModel):
    """The batch's key, the position to continue from, and since when the batch is being released (None: not yet)."""

    model_config = ConfigDict(frozen=True, strict=True)

    key: str
    position: Annotated[int, Field(ge=0)]
    begins_at: Milliseconds | None
