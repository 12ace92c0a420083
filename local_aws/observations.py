"""What an execution environment tells of an invocation besides its result, for the logs that Lambda writes."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Observation:
    """What is seen of one invocation; whoever sees something notes it down."""

    request_id: str
    started_at: float
    """Seconds since 1970, as all moments here."""
    seconds: float = 0
    result: dict[str, Any] = field(default_factory=dict)
    initialised_at: float | None = None
    """When an initialisation began, if the invocation had to wait for one."""
    initialisation_seconds: float = 0
    initialisation_error: str | None = None
    """The type of the error with which it failed."""
    peak_memory_mb: int | None = None


current: ContextVar[Observation | None] = ContextVar("observation", default=None)
"""The invocation that runs in this context, or the last one."""
