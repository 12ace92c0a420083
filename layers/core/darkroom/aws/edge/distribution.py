"""The edge's caches: a distribution of CloudFront, whose objects have their image's id as their tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from darkroom.aws.kernel.errors import retryable

if TYPE_CHECKING:
    from darkroom.domain.edge.forgetting import Payment


class Distribution:
    """Implements the `Edge` port."""

    def __init__(self, client: Any, distribution_id: str) -> None:
        self._client = client
        self._distribution_id = distribution_id

    def invalidate(self, payment: Payment) -> None:
        tags = [f"#{image_id}" for image_id in payment.image_ids]
        # With a reference that it knows, CloudFront begins no other invalidation of the same tags, and bills none; it
        # refuses that reference for others
        # (https://docs.aws.amazon.com/cloudfront/latest/APIReference/API_InvalidationBatch.html).
        reference = f"{payment.reference}-{len(tags)}"
        with retryable("invalidating"):
            self._client.create_invalidation(
                DistributionId=self._distribution_id,
                InvalidationBatch={
                    "Paths": {"Quantity": len(tags), "Items": tags},
                    "CallerReference": reference,  # guard: edge-invalidation-repeated-once
                },
            )
