"""What the edge's functions need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.edge.forgetting import Bill, Payment


class Invalidations(Protocol):
    """The monthly budget of invalidations. Every method raises Retryable if the table cannot answer."""

    def pay(self, bill: Bill, limit: int) -> Payment:
        """Takes a unit for each of the bill's images, or for as many as are left of `limit`, and opens their payment.

        The bill that was paid last is paid. While another's payment is open, that one is returned instead: nobody knows
        whether the edge was told.
        """

    def settle(self, payment: Payment) -> None:
        """Closes the payment, if it is open: the edge was told."""

    def skip(self, bill: Bill, count: int) -> None:
        """Counts images that the edge is not told to forget."""


class Edge(Protocol):
    """The caches."""

    def invalidate(self, payment: Payment) -> None:
        """Has the edge forget these images; the same payment again does nothing. Raises Retryable, or what refuses
        it."""


class Sign(Protocol):
    """A signature of ECDSA with SHA-256."""

    def __call__(self, private_key: str, message: bytes) -> bytes:
        """Signs with a P-256 key in PEM; returns DER."""
