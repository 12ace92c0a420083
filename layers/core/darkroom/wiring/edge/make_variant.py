"""The wiring of `make_variant`."""

from __future__ import annotations

import random
import time

from darkroom.aws.edge.made_variants import MadeVariantsBucket
from darkroom.aws.edge.variant_leases import VariantLeasesTable
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.objects import OriginalsBucket
from darkroom.aws.kernel import clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.aws.tenants.token_buckets_table import TokenBucketsTable
from darkroom.domain.kernel.lanes import LANES
from darkroom.operations.edge.make_variant import MakeVariantPorts
from darkroom.wiring.edge.settings import MakeVariantSettings
from darkroom.wiring.kernel.runtime import clock


def wire() -> MakeVariantPorts:
    """The ports of `make_variant`, from the function's environment."""
    settings = MakeVariantSettings.read()
    dynamodb, s3 = clients.dynamodb_client(), clients.s3_client()
    return MakeVariantPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        tenants=TenantsTable(dynamodb, settings.tenants_table),
        made=MadeVariantsBucket(s3, settings.outputs_bucket),
        leases=VariantLeasesTable(dynamodb, settings.token_buckets_table),
        token_buckets=TokenBucketsTable(dynamodb, settings.token_buckets_table),
        signing_secret=StoredSecret(clients.secrets_manager_client, settings.variant_key, clock=clock),
        clock=clock,
        pause=time.sleep,
        jitter=random.random,
        limits=settings.limits,
        service=LANES,
        allowed=settings.allowed_instructions,
    )
