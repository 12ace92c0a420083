"""A secret in memory, and what an operator and an outage do to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.kernel import SecretVersion

LONG_AGO: Milliseconds = 1_763_683_200_000


@dataclass
class FakeSecret:
    """The `Secret` port: its versions, the latest last. It knows a new one at once. `is_down` makes it raise
    Retryable."""

    versions: list[SecretVersion] = field(
        default_factory=lambda: [
            SecretVersion(version_id="11111111-aaaa-4aaa-8aaa-111111111111", text="a" * 64, created_at=LONG_AGO)
        ]
    )
    is_down: bool = False

    def current(self) -> SecretVersion:
        self._answer()
        return self.versions[-1]

    def previous(self) -> SecretVersion | None:
        self._answer()
        return self.versions[-2] if len(self.versions) > 1 else None

    def version(self, version_id: str) -> SecretVersion | None:
        known = (self.current(), self.previous())
        return next((version for version in known if version is not None and version.version_id == version_id), None)

    def replace(self, text: str, *, now: Milliseconds) -> SecretVersion:
        """What an operator does who puts a new value."""
        number = len(self.versions) + 1
        version_id = f"{number:08}-aaaa-4aaa-8aaa-111111111111"
        self.versions.append(SecretVersion(version_id=version_id, text=text, created_at=now))
        return self.versions[-1]

    def _answer(self) -> None:
        if self.is_down:
            raise Retryable("reading a secret: it does not answer")
