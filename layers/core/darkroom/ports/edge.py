"""What the edge's functions need."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.edge.forgetting import Bill


class Invalidations(Protocol):
    """The monthly budget of invalidations. Every method raises Retryable if the table cannot answer."""

    def pay(self, bill: Bill, limit: int) -> int:
        """Takes what the bill wants from its month, or what is left of `limit`; returns how much. The bill that was
        paid last is paid."""

    def pay_back(self, bill: Bill) -> None:
        """Gives back what the bill has cost, if it was paid last."""

    def skip(self, bill: Bill, count: int) -> None:
        """Counts tags that the edge is not told to forget."""


class Refused(Exception):
    """CloudFront has certainly not begun an invalidation, which it may do later."""


class Edge(Protocol):
    """The caches."""

    def invalidate(self, image_ids: Collection[str], reference: str) -> None:
        """Has the edge forget these images; again for the same reference does nothing. Raises Refused, or Retryable if
        it may have been done."""


class Sign(Protocol):
    """A signature of ECDSA with SHA-256."""

    def __call__(self, private_key: str, message: bytes) -> bytes:
        """Signs with a P-256 key in PEM; returns DER."""
