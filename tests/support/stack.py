"""A deployed stack, as the command line sees it, over the fakes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.support.fakes import World
from tests.support.fakes.audit import trail_of
from tests.support.fakes.events import FakeTopic, FakeUsage
from tests.support.fakes.tenants import FakeTenants


@dataclass
class FakeStack:
    """The stores of `world` are its own. It is Saturday, 21 November 2026, 09:00 UTC."""

    world: World = field(default_factory=World)
    audit: Any = field(default_factory=trail_of)
    tenants: Any = field(default_factory=FakeTenants)
    topic: Any = field(default_factory=FakeTopic)
    usage: Any = field(default_factory=FakeUsage)
    explained: Callable[[], AbstractContextManager[None]] = nullcontext
    name: str = "shop"
    region: str = "eu-west-1"
    options: str = " --stack shop --region eu-west-1"
    is_local: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)
