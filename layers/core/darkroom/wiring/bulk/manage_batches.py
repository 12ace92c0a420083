"""The wiring of `manage_batches`."""

from __future__ import annotations

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.imports_table import ImportsTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.bulk.manage_imports import ManageImportsPorts
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.wiring.bulk.settings import ManageBatchesSettings
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> tuple[ManageImportsPorts, TakeTokenPorts]:
    """The ports of `manage_batches` and of what it does with imports, from the function's environment, and those of its
    rate limit."""
    settings = ManageBatchesSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.batches_table, key="place")
    ports = ManageImportsPorts(
        batches=BatchesTable(dynamodb, settings.batches_table),
        imports=ImportsTable(dynamodb, settings.batches_table),
        manifests=ManifestsBucket(clients.s3_client(), settings.uploads_bucket),
        fetches=settings.imports == "true",
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        clock=clock,
        randomness=randomness,
    )
    return ports, rate_limit_of(dynamodb, settings.token_buckets_table)
