"""Which dead letters a command is about, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Filters:
    """The dead letters that were asked for: those that fit all that was given."""

    lane: str | None = None
    cause: str | None = None
    tenant: str | None = None
    image: str | None = None
    verdict: str | None = None
    older_than: str | None = None
    newer_than: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """What was given, by the names of the options."""
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items() if value is not None}
