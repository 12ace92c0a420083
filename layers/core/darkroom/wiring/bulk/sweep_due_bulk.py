"""The wiring of `sweep_due_bulk`."""

from __future__ import annotations

from functools import partial

from darkroom.aws.bulk.backfills_table import BackfillsTable, ImagesScan
from darkroom.aws.bulk.imports_table import ImportsTable
from darkroom.aws.bulk.manifests_bucket import ManifestsBucket
from darkroom.aws.bulk.reconciliations_table import ListedImages, ReconciliationsTable
from darkroom.aws.bulk.schedules_table import SchedulesTable
from darkroom.aws.bulk.stored_objects import ListedOriginals, ListedVariants
from darkroom.aws.images.queues import SqsFetchQueue
from darkroom.aws.kernel import clients
from darkroom.aws.tenants.tenants_table import TenantsTable
from darkroom.domain.recipes.presets import PRESETS, VERSIONS
from darkroom.operations.bulk.feed_backfill import FeedBackfillPorts
from darkroom.operations.bulk.jobs import jobs_of
from darkroom.operations.bulk.join_batch import JoinBatchPorts, join_batch
from darkroom.operations.bulk.reconcile import ReconcilePorts, have_night
from darkroom.operations.bulk.run_import import RunImportPorts
from darkroom.operations.bulk.run_schedule import RunSchedulePorts
from darkroom.operations.bulk.settle_batch import SettleBatchPorts
from darkroom.operations.bulk.sweep_due_bulk import SweepDueBulkPorts
from darkroom.wiring.bulk.looks import ports_of
from darkroom.wiring.bulk.settings import SweepDueBulkSettings
from darkroom.wiring.imports.for_core import check_url_by
from darkroom.wiring.kernel.api_dependencies import load_shedder_of, quota_keeper_of, upload_token_uses_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom.wiring.kernel.recipients import has_recipient_of
from darkroom.wiring.kernel.runtime import clock, randomness


def wire() -> SweepDueBulkPorts:
    """The ports of `sweep_due_bulk`, from the function's environment."""
    settings = SweepDueBulkSettings.read()
    ports = ports_of(settings)
    dynamodb = clients.dynamodb_client()
    feeding = FeedBackfillPorts(
        images=ports.images,
        lanes=ports.lanes,
        clock=clock,
        backfills=BackfillsTable(dynamodb, settings.batches_table),
        scan=ImagesScan(dynamodb, settings.images_table),
        presets={name: (recipe, VERSIONS[name]) for name, recipe in PRESETS.items()},
        service=settings.service,
        pauses=known_pauses_of(settings, dynamodb),
    )
    s3 = clients.s3_client()
    reconciling = ReconcilePorts(
        images=ports.images,
        clock=clock,
        reconciliations=ReconciliationsTable(dynamodb, settings.batches_table),
        image_listing=ListedImages(dynamodb, settings.images_table),
        stored_originals=ListedOriginals(s3, settings.originals_bucket),
        stored_variants=ListedVariants(s3, settings.outputs_bucket),
    )
    scheduling = RunSchedulePorts(
        schedules=SchedulesTable(dynamodb, settings.batches_table),
        jobs={**jobs_of(feeding.backfills, clock), "reconcile": partial(have_night, reconciling)},
        clock=clock,
    )
    imports = _import_ports(settings, ports) if settings.fetch_queue_url else None
    return SweepDueBulkPorts(
        **vars(ports), imports=imports, feeding=feeding, scheduling=scheduling, reconciling=reconciling
    )


def _import_ports(settings: SweepDueBulkSettings, ports: SettleBatchPorts) -> RunImportPorts:
    dynamodb, sqs = clients.dynamodb_client(), clients.sqs_client()
    return RunImportPorts(
        **vars(ports),
        imports=ImportsTable(dynamodb, settings.batches_table),
        manifests=ManifestsBucket(clients.s3_client(), settings.uploads_bucket),
        tenants=TenantsTable(dynamodb, settings.tenants_table),
        pauses=known_pauses_of(settings, dynamodb),
        has_recipient=has_recipient_of(settings.endpoints_table, dynamodb),
        join_batch=partial(join_batch, JoinBatchPorts(batches=ports.batches, clock=clock)),
        fetch_queue=SqsFetchQueue(sqs, settings.fetch_queue_url, signer_of(message_keys_of(settings))),
        load_shedder=load_shedder_of(settings, dynamodb, sqs),
        quotas=quota_keeper_of(settings, dynamodb),
        upload_token_uses=upload_token_uses_of(settings, dynamodb),
        check_url=check_url_by(settings),
        randomness=randomness,
        max_bytes=settings.max_file_bytes,
        delivers=bool(settings.edge_url),
    )
