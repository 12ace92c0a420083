"""The wiring of `invalidate_edge`."""

from __future__ import annotations

from darkroom.aws.edge.distribution import Distribution
from darkroom.aws.edge.invalidations_table import InvalidationsTable
from darkroom.aws.edge.made_variants import MadeVariantsBucket
from darkroom.aws.kernel import clients
from darkroom.operations.edge.invalidate_edge import InvalidateEdgePorts
from darkroom.wiring.edge.settings import InvalidateEdgeSettings
from darkroom.wiring.kernel.runtime import clock


def wire() -> InvalidateEdgePorts:
    """The ports of `invalidate_edge`, from the function's environment."""
    settings = InvalidateEdgeSettings.read()
    return InvalidateEdgePorts(
        distribution=Distribution(clients.cloudfront_client(), settings.distribution_id),
        invalidations=InvalidationsTable(clients.dynamodb_client(), settings.token_buckets_table),
        clock=clock,
        limit=settings.invalidations_per_month,
        made=MadeVariantsBucket(clients.s3_client(), settings.outputs_bucket) if settings.outputs_bucket else None,
    )
