"""Stores at AWS: how long each call takes, the processor's part in it, and what is billed."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.virtual.latencies import Latency
from tests.support.virtual.processor import Processor
from tests.support.virtual.virtual_time import VirtualTime


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: `processor` are milliseconds of a whole one, `items` how many rows or objects the call has."""

    service: str
    processor: float = 0
    items: int = 1
    billed: Mapping[str, float] = field(default_factory=dict)


type Plan = Callable[..., Sequence[Call]]
"""The calls of a method, one after another, by its arguments."""


def always(*calls: Call) -> Plan:
    """These, whatever the arguments."""
    return lambda *arguments, **options: calls


@dataclass(eq=False)
class Cloud:
    """Lets the time of each call pass, unless its service has no latency, and counts the calls by the method that made
    them and by the units of the price list."""

    time: VirtualTime
    latencies: Mapping[str, Latency]
    chance: random.Random
    processor: Processor | None = None
    calls: Counter[str] = field(default_factory=Counter)
    billed: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def call(self, name: str, plan: Sequence[Call]) -> None:
        """The calls of one method, which has its effect at their end."""
        for request in plan:
            self.calls[name] += 1
            for unit, count in request.billed.items():
                self.billed[unit] += count
            if request.service in self.latencies:
                latency = self.latencies[request.service].draw(self.chance, request.items)
                busy = 0.0 if self.processor is None else self.processor.take(request.processor)
                self.time.pause(busy + latency)


class Remote:
    """A store whose every method is called through AWS; attributes that are no methods are the store's own."""

    def __init__(self, cloud: Cloud, name: str, store: Any, plans: Mapping[str, Plan]) -> None:
        self._cloud, self._name, self._store, self._plans = cloud, name, store, plans

    def __getattr__(self, method: str) -> Any:
        own = getattr(self._store, method)
        if not callable(own):
            return own
        plan, name = self._plans[method], f"{self._name}.{method}"

        def through_aws(*arguments: Any, **options: Any) -> Any:
            self._cloud.call(name, plan(*arguments, **options))
            return own(*arguments, **options)

        # Found at once the next time.
        setattr(self, method, through_aws)
        return through_aws
