"""A world with what operators are shown of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.domain.images.image import Attempt, Cause, message_for
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom.domain.webhooks.endpoint_ids import endpoint_id_from
from darkroom.parts import PARTS
from darkroom_cli.operator.operations.observation.observe_stack import (
    Observation,
    ObserveStackPorts,
    observe_stack,
)
from tests.support.dead_letters import given_up
from tests.support.fakes import World
from tests.support.fakes.observation import FakeMeasurements, FakeQueueCounts, FakeRaisedAlarms, count, counts
from tests.support.fakes.pauses import FakeLaneSources
from tests.support.fakes.rows import accepted_image

STACK = '  File "/opt/python/darkroom/operations/images/transcode_image.py", line 12, in _develop\n'


@dataclass
class Observed(World):
    """A world with what operators are shown of it."""

    queues: Any = field(default_factory=FakeQueueCounts)
    given_up: Any = field(default_factory=lambda: FakeQueueCounts(counts=dict(counts(fast=0, slow=0, usage=0))))
    measurements: Any = field(default_factory=FakeMeasurements)
    alarms: Any = field(default_factory=FakeRaisedAlarms)
    parts: Collection[str] = PARTS
    sources: Any = field(default_factory=FakeLaneSources)

    def look(self, before: Observation | None = None) -> Observation:
        return observe_stack(self.ports(ObserveStackPorts), before)

    def put(self, number: int, *, seconds_ago: float = 1, lane: str = "slow", **changes: Any) -> str:
        """An unfinished image whose id ends with that number."""
        row = accepted_image(now=self.now - round(seconds_ago * 1000), image_id=f"{number:026d}", lane=lane)
        self.images.rows[row.image_id] = replace(row, **changes)
        return row.image_id

    def fail(self, number: int, error_type: str = "KeyError", **changes: Any) -> str:
        """An image whose first attempt has failed."""
        cause = Cause(error_type=error_type, message="'gamma'", stack=STACK)
        attempt = Attempt(run=1, number=1, request_id="r", started_at=1, ended_at=2, cause=cause)
        return self.put(number, attempt=1, attempts=(attempt,), **changes)

    def give_up(self, number: int, bug: str = "KeyError") -> str:
        row = given_up(number, bug=bug)
        self.images.rows[row.image_id] = row
        self.dead_letters.put("slow", message_for(row), {})
        self.given_up.counts["slow"] = count(waiting=len(self.dead_letters.messages["slow"]))
        return row.image_id

    def endpoint(self, place: int, **changes: Any) -> Endpoint:
        row = Endpoint(
            tenant_id="shop",
            endpoint_id=endpoint_id_from(place, bytes(10)),
            url="https://shop.example/hook",
            events=("*",),
            created_at=1,
        )
        self.endpoints.rows["shop", place] = row = replace(row, **changes)
        return row
