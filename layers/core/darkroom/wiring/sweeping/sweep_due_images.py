"""The wiring of `sweep_due_images`."""

from __future__ import annotations

from darkroom.aws.dead_letters.dead_letters import DeadLetterQueues
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.memory_table import MemoryTable
from darkroom.aws.images.objects import OriginalsBucket, OutputsBucket
from darkroom.aws.images.outcomes_table import OutcomesTable
from darkroom.aws.images.queues import EdgeQueue, LaneQueues, SqsFetchQueue, SqsHoldQueue, SqsUploadQueue
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.aws.kernel import clients
from darkroom.aws.schedules.reservations_table import ReservationsTable
from darkroom.aws.uploads.uploads import UploadsBucket
from darkroom.operations.sweeping.measure_lanes import MeasureLanesPorts
from darkroom.operations.sweeping.sweep_due_images import SweepDueImagesPorts
from darkroom.operations.sweeping.worker_counts import CountOutcomesPorts
from darkroom.settings import SweepDueImagesSettings
from darkroom.wiring.kernel.batches import has_turn_of
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.parts import WebhooksForCore, load_part
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom.wiring.kernel.runtime import at_once, clock


def wire() -> tuple[SweepDueImagesPorts, MeasureLanesPorts, CountOutcomesPorts]:
    """The ports of `sweep_due_images`, from the function's environment, and what its handler measures and counts
    with."""
    settings = SweepDueImagesSettings.read()
    signer = signer_of(message_keys_of(settings))
    dynamodb, s3, sqs = clients.dynamodb_client(), clients.s3_client(), clients.sqs_client()

    def blank_deliveries(image_id: str) -> bool:
        # Also without webhooks: deliveries of before may be kept. Loaded for the first image that was deleted.
        webhooks: WebhooksForCore = load_part("wiring.webhooks.for_core")
        return webhooks.blank_deliveries_of(settings.deliveries_table, dynamodb, image_id)

    ports = SweepDueImagesPorts(
        images=ImagesTable(dynamodb, settings.images_table),
        uploads=UploadsBucket(s3, settings.uploads_bucket),
        originals=OriginalsBucket(s3, settings.originals_bucket),
        outputs=OutputsBucket(s3, settings.outputs_bucket),
        memory=MemoryTable(dynamodb, settings.idempotency_table),
        lanes=LaneQueues(sqs, settings.queue_urls, signer),
        hold_queue=SqsHoldQueue(sqs, settings.hold_queue_url, signer),
        upload_queue=SqsUploadQueue(sqs, settings.upload_queue_url, signer),
        fetch_queue=SqsFetchQueue(sqs, settings.fetch_queue_url, signer),
        reservations=ReservationsTable(dynamodb, settings.reservations_table),
        dead_letters=DeadLetterQueues(sqs, clients.sqs_client_without_retries(), settings.dead_letter_queues, signer),
        clock=clock,
        at_once=at_once,
        service=settings.service,
        cleanups=(blank_deliveries,),
        stale_edge=EdgeQueue(sqs, settings.edge_queue_url) if settings.edge_queue_url else None,
        fetches=settings.imports == "true",
        pauses=known_pauses_of(settings, dynamodb),
        has_turn=has_turn_of(settings.batches_table, dynamodb),
    )
    outcome_counts = OutcomesTable(clients.impatient(dynamodb), settings.throughput_table)
    measuring = MeasureLanesPorts(
        images=ports.images,
        outcome_counts=outcome_counts,
        throughput=ThroughputTable(clients.impatient(dynamodb), settings.throughput_table),
        dead_letters=ports.dead_letters,
        fetch_queue=ports.fetch_queue,
        clock=clock,
        at_once=at_once,
        service=settings.service,
        pauses=ports.pauses,
    )
    return ports, measuring, CountOutcomesPorts(outcome_counts=outcome_counts, clock=clock)
