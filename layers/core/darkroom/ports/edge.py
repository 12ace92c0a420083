"""What the edge's functions need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from darkroom.domain.edge.forgetting import Bill, Payment
    from darkroom.domain.kernel.instants import Milliseconds


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


@dataclass(frozen=True, kw_only=True)
class MadeVariant:
    """A variant that was made on request, as the edge and its viewers get it."""

    key: str
    image_id: str
    media_type: str
    viewer_seconds: int
    body: bytes = field(repr=False)


class MadeVariants(Protocol):
    """The store of what was made on request: objects that expire. Every method raises Retryable if it cannot answer."""

    def get(self, key: str) -> MadeVariant | None:
        """What has that key, or None."""

    def put_if_absent(self, variant: MadeVariant) -> bool:
        """Stores it unless its key has an object; returns whether it did."""

    def remove(self, key: str) -> None:
        """Removes the object; a missing one is no error."""

    def remove_all(self, image_id: str) -> None:
        """Removes everything that was made of the image."""


class VariantLeases(Protocol):
    """Who makes which variant, and what an image has had made. Every method raises Retryable if the table cannot
    answer."""

    def take(self, key: str, owner: str, *, now: Milliseconds, until: Milliseconds) -> bool:
        """Takes the lease of a key until then, unless another owner has it; returns whether `owner` has it now."""

    def release(self, key: str, owner: str) -> None:
        """Gives the owner's lease back, if it still has it."""

    def count(self, image_id: str, key: str, *, most: int, forget_at: Milliseconds) -> bool:
        """Counts the key as one of the image's, once however often it is told; returns False if the image has had
        `most` others made that were not forgotten. They are forgotten at `forget_at`, unless another follows."""
