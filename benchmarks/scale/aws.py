"""AWS's limits as a load meets them: token buckets, functions that scale at a rate, tables that warm up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.virtual.virtual_time import VirtualTime

SCALING_EVERY_10_SECONDS = 1000
"""How many more environments a function may get, refilled continuously, and never more than these at once
(https://docs.aws.amazon.com/lambda/latest/dg/scaling-behavior.html)."""

_WARMS_EVERY_SECONDS = 1800


@dataclass
class Bites:
    """When each limit first refused something, in milliseconds, and how often each did."""

    time: VirtualTime
    first: dict[str, float] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    def note(self, limit: str) -> None:
        """The limit refused something just now."""
        self.first.setdefault(limit, self.time.elapsed())
        self.times[limit] += 1


class Bucket:
    """A token bucket with `per_second` and `at_once` tokens."""

    def __init__(self, bites: Bites, name: str, *, per_second: float, at_once: float) -> None:
        self.per_second, self.at_once = per_second, at_once
        self._bites, self._name = bites, name
        self._tokens, self._at = at_once, 0.0

    def take(self, count: float = 1.0, *, anyway: bool = False) -> bool:
        """Takes tokens; returns whether there were so many. With `anyway` it goes into debt."""
        now = self._bites.time.elapsed()
        self._tokens = min(self.at_once, self._tokens + (now - self._at) * self.per_second / 1000)
        self._at = now
        if self._tokens < count and not anyway:
            self._bites.note(self._name)
            return False
        self._tokens -= count
        return True


class Table(Bucket):
    """The write units of an on-demand table or index, which doubles what it can take within 30 minutes."""

    def __init__(self, bites: Bites, name: str, *, warm: float) -> None:
        super().__init__(bites, name, per_second=warm, at_once=warm)
        self._taken = self._peak = 0.0
        self._minute = self._warms_at = 0.0

    def write(self, units: float) -> bool:
        """Whether a write of so many units succeeds."""
        now = self._bites.time.elapsed()
        if now - self._minute >= 60_000:
            self._peak = max(self._peak, self._taken * 1000 / (now - self._minute))
            self._minute, self._taken = now, 0.0
        if now - self._warms_at >= _WARMS_EVERY_SECONDS * 1000:
            self.per_second = self.at_once = max(self.per_second, 2 * self._peak)
            self._warms_at = now
        if not self.take(units):
            return False
        self._taken += units
        return True


@dataclass
class Account:
    """The concurrent executions of an account; `others` is what runs besides the functions that are simulated."""

    concurrency: int
    reserved: int = 0
    running: int = 0
    others: float = 0.0

    def has_room(self) -> bool:
        """Whether one more may run without a reservation."""
        return self.running + self.others < self.concurrency - self.reserved


class Function[Environment]:
    """A function's environments, each with what `make` made of it: one that is idle is used again, and a new one takes
    `initialisation` milliseconds. `reserved` is its share of the account's concurrency."""

    def __init__(
        self,
        bites: Bites,
        account: Account,
        make: Callable[[], Environment],
        *,
        initialisation: float,
        reserved: int = 0,
    ) -> None:
        self.running = self.environments = 0
        self._bites, self._account, self._make = bites, account, make
        self._initialisation, self._reserved = initialisation, reserved
        self._idle: list[Environment] = []
        self._scaling = Bucket(
            bites,
            "ramp of the function's environments",
            per_second=SCALING_EVERY_10_SECONDS / 10,
            at_once=SCALING_EVERY_10_SECONDS,
        )

    def begin(self) -> tuple[Environment, float] | None:
        """An environment and the milliseconds until it begins; None if the invocation is throttled."""
        has_room = self.running < self._reserved if self._reserved else self._account.has_room()
        if not has_room:
            self._bites.note("concurrent executions of the account")
            return None
        if self._idle:
            environment, later = self._idle.pop(), 0.0
        elif self._scaling.take():
            environment, later = self._make(), self._initialisation
            self.environments += 1
        else:
            return None
        self.running += 1
        if not self._reserved:
            self._account.running += 1
        return environment, later

    def end(self, environment: Environment) -> None:
        """The invocation has ended."""
        self.running -= 1
        if not self._reserved:
            self._account.running -= 1
        self._idle.append(environment)
