"""The wiring of `read_image`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OutputsBucket
from darkroom.aws.images.queues import LaneDepths
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.images.url_signer import UrlSigningFunction
from darkroom.aws.kernel import circuits, clients
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.operations.images.estimate import Estimator
from darkroom.operations.images.read_image import ReadImagePorts
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.settings import ReadImageSettings
from darkroom.wiring.kernel.parts import UsageForCore, load_part
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.runtime import clock


@dataclass(frozen=True, kw_only=True)
class Readings:
    """The ports of what the function reads, those of its rate limit, and the parts that are deployed. `usage` has the
    ports that its own route needs, only where it is counted."""

    images: ReadImagePorts
    usage: Any
    rate_limit: TakeTokenPorts
    parts: frozenset[str]


def wire() -> Readings:
    """The ports of `read_image` and `list_images`, and of `read_usage`, from the function's environment."""
    settings = ReadImageSettings.read()
    # guard: variant-store-timeout-short
    dynamodb, s3 = clients.dynamodb_client(), clients.impatient(clients.s3_client())
    circuits.of_dynamodb(dynamodb, settings.images_table)
    circuits.of_s3(s3, settings.outputs_bucket)  # guard: variant-store-circuit
    ports = ReadImagePorts(
        images=ImagesTable(dynamodb, settings.images_table),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        estimator=Estimator(
            depths=LaneDepths(clients.impatient(clients.sqs_client()), settings.queue_urls),
            throughput=ThroughputTable(clients.impatient(dynamodb), settings.throughput_table),
            clock=clock,
            service=settings.service,
            pauses=known_pauses_of(settings, dynamodb),
        ),
        clock=clock,
        edge=EdgeUrls(base=settings.edge_url),
        url_signer=UrlSigningFunction(clients.lambda_client, settings.edge_signer, base=settings.edge_url)
        if settings.edge_signer
        else None,
    )
    usage = None
    if settings.usage_table:  # guard: usage-off-no-route
        for_core: UsageForCore = load_part("wiring.usage.for_core")
        usage = for_core.read_usage_ports(settings.usage_table, dynamodb)
    return Readings(
        images=ports,
        usage=usage,
        rate_limit=rate_limit_of(dynamodb, settings.token_buckets_table),
        parts=settings.parts,
    )
