"""The event source mappings through which Lambda takes the messages of the lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.domain.kernel.errors import Retryable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LaneEventSources:
    """Implements the `LaneSources` port; `mappings` are the ids of the mappings, by their lanes. A lane without one
    belongs to a part that is not deployed: another lane's workers serve it, and nothing can stop them."""

    def __init__(self, client: LambdaClient, mappings: Mapping[str, str]) -> None:
        self._client = client
        self._mappings = mappings

    @property
    def lanes(self) -> tuple[str, ...]:
        return tuple(self._mappings)

    def is_on(self, lane: str) -> bool:
        if lane not in self._mappings:
            return True
        with retryable("reading a lane's event source"):
            state = self._client.get_event_source_mapping(UUID=self._mappings[lane])["State"]
        return state not in ("Disabled", "Disabling")

    def switch(self, lane: str, on: bool) -> None:
        with retryable("switching a lane's event source"):
            try:
                self._client.update_event_source_mapping(UUID=self._mappings[lane], Enabled=on)
            except ClientError as error:
                if code_of(error) == "ResourceInUseException":  # what was asked of it before is not done yet
                    raise Retryable("the lane's event source is being changed") from error
                raise
