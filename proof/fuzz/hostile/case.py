"""What a hostile file is, and the outcomes that are right for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.limits import Limits

DEVELOPED = "developed"
DAMAGED = ("undecodable", "truncated")
UNSUPPORTED = "unsupported_format"
TOO_LARGE = ("too_many_pixels", "side_too_long", "aspect_too_extreme")
WITHIN_MEMORY = (DEVELOPED, "too_many_pixels")
"""For what keeps to every limit that a header shows: refused only for the memory that decoding it would take."""

LIMITS = Limits()
SIDE = 7064
"""Of a square that is just within the limit of 50 megapixels."""
NEARLY_ALL_BYTES = LIMITS.max_bytes - 100_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A hostile file: what makes it, and how developing it may end. `heavy` ones take too long for a test."""

    name: str
    make: Callable[[], bytes]
    outcomes: frozenset[str]
    heavy: bool

    @property
    def format(self) -> str:
        """What it is or pretends to be."""
        return self.name.partition("-")[0]


def case(name: str, body: bytes | Callable[[], bytes], *outcomes: str, heavy: bool = False) -> Case:
    """Outcomes are `developed` or codes of refusals; none means that any will do, as long as it is one of them.

    `body` is what makes the file where that takes a while.
    """
    return Case(
        name=name,
        make=body if callable(body) else lambda: body,
        outcomes=frozenset(outcomes or (DEVELOPED, *DAMAGED, UNSUPPORTED, *TOO_LARGE)),
        heavy=heavy,
    )


def flooded(before: bytes, piece: bytes, after: bytes) -> Callable[[], bytes]:
    """What makes a file that is filled up with `piece` to nearly all the bytes that are allowed."""

    def make() -> bytes:
        return before + piece * ((NEARLY_ALL_BYTES - len(before) - len(after)) // len(piece)) + after

    return make
