"""A hostile file and its acceptable outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom.domain.images.limits import Limits

DEVELOPED = "developed"
KEPT = "-kept-"
"""In the name of a file that is developed into variants that keep its animation."""
POSTER = "-poster-"
"""In the name of one whose poster is sought."""
DAMAGED = ("undecodable", "truncated")
UNSUPPORTED = "unsupported_format"
FLOODED = ("developed", *DAMAGED, UNSUPPORTED)
"""For files that are cut into very many pieces."""
TOO_LARGE = ("too_many_pixels", "side_too_long", "aspect_too_extreme")
WITHIN_MEMORY = (DEVELOPED, "too_many_pixels")
"""For files within every limit that a header shows: refused only for the memory that decoding them would take."""

LIMITS = Limits()
SIDE = 7208
"""The side of a square that is just within the limit of 52 megapixels, and a multiple of eight."""
NEARLY_ALL_BYTES = LIMITS.max_bytes - 100_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A hostile file: its generator, and how developing it may end. `heavy` ones take too long for a test."""

    name: str
    make: Callable[[], bytes]
    outcomes: frozenset[str]
    heavy: bool

    @property
    def format(self) -> str:
        """The format that it has or pretends to have."""
        return self.name.partition("-")[0]


def case(name: str, body: bytes | Callable[[], bytes], *outcomes: str, heavy: bool = False) -> Case:
    """Outcomes are `developed` or codes of refusals; none given means that any of these will do.

    `body` generates the file if that takes a while.
    """
    return Case(
        name=name,
        make=body if callable(body) else lambda: body,
        outcomes=frozenset(outcomes or (DEVELOPED, *DAMAGED, UNSUPPORTED, *TOO_LARGE)),
        heavy=heavy,
    )


def flooded(before: bytes, piece: bytes, after: bytes) -> Callable[[], bytes]:
    """A generator of a file that is filled up with `piece` to nearly the maximum size."""

    def make() -> bytes:
        return before + piece * ((NEARLY_ALL_BYTES - len(before) - len(after)) // len(piece)) + after

    return make
