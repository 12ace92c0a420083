"""Which dead letters a command is about, from its options."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DeadLetterFilters:
    """The chosen dead letters: those that match every given option."""

    lane: str | None = None
    cause: str | None = None
    fingerprint: str | None = None
    tenant: str | None = None
    image: str | None = None
    verdict: str | None = None
    older_than: str | None = None
    newer_than: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """The given values, by the names of the options."""
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items() if value is not None}
