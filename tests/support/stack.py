"""A deployed stack, as the command line sees it, over the fakes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from darkroom.parts import PARTS
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.stack.operators import explained
from tests.support.fakes import World
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.fakes.dead_letters import FakeRedrives
from tests.support.fakes.events import FakeTopic, FakeUsage
from tests.support.fakes.load_shedding import FakeTokenBuckets
from tests.support.fakes.logs import FakeLogLines
from tests.support.fakes.stores import FakeReleases
from tests.support.fakes.tenants import FakeTenants

OPTIONS = " --stack shop --region eu-west-1"
"""What a command that is to be typed next says of the stack."""
NAMED_OTHERWISE = {
    "queue_counts": "queues",
    "given_up_counts": "given_up",
    "dead_letters_of_images": "dead_letters",
    "original_versions": "originals",
    "lane_sources": "sources",
}
"""The stack's name for a store, and the world's."""


@dataclass
class FakeStack:
    """The stores of `world` are its own, and so is its clock. It is Saturday, 21 November 2026, 09:00 UTC."""

    world: Any = field(default_factory=World)
    audit_log: FakeAudit = field(default_factory=FakeAudit)
    tenants: FakeTenants = field(default_factory=FakeTenants)
    topic: FakeTopic = field(default_factory=FakeTopic)
    usage: FakeUsage = field(default_factory=FakeUsage)
    token_buckets: FakeTokenBuckets = field(default_factory=FakeTokenBuckets)
    log_lines: FakeLogLines = field(default_factory=FakeLogLines)
    releases: FakeReleases = field(default_factory=lambda: FakeReleases(batches=["one", "two"]))
    facts: Any = None
    name: str = "shop"
    region: str = "eu-west-1"
    options: str = OPTIONS
    is_local: bool = False
    access: str = "keys"
    archive_bucket: str = "archive"
    parameters: Mapping[str, str] = field(default_factory=lambda: {"Environment": "prod"})
    parts: Collection[str] = PARTS

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, NAMED_OTHERWISE.get(name, name))

    @cached_property
    def audit(self) -> Trail:
        return trail_of(self.audit_log, clock=self.world.clock)

    @cached_property
    def redrives(self) -> FakeRedrives:
        return FakeRedrives(self.world.dead_letters, self.world.lanes, per_look=100)

    def chosen(self, queue: str | None) -> tuple[str, ...]:
        queues: tuple[str, ...] = self.world.dead_letters.queues
        return queues if queue is None else (queue,)

    def explained(self) -> AbstractContextManager[None]:
        return explained(self.name, self.region, is_local=self.is_local)
