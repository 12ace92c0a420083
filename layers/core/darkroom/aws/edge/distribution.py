"""The edge's caches: a distribution of CloudFront, whose objects have their image's id as their tag."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, is_passing, retryable
from darkroom.ports.edge import Refused


class Distribution:
    """Implements the `Edge` port."""

    def __init__(self, client: Any, distribution_id: str) -> None:
        self._client = client
        self._distribution_id = distribution_id

    def invalidate(self, image_ids: Collection[str], reference: str) -> None:
        tags = [f"#{image_id}" for image_id in image_ids]
        try:
            with retryable("invalidating"):
                self._client.create_invalidation(
                    DistributionId=self._distribution_id,
                    InvalidationBatch={
                        "Paths": {"Quantity": len(tags), "Items": tags},
                        "CallerReference": reference,  # guard: edge-invalidation-repeated-once
                    },
                )
        except ClientError as error:
            if code_of(error) != "TooManyInvalidationsInProgress" or is_passing(error):
                raise
            raise Refused(f"invalidating: {code_of(error)}") from error
