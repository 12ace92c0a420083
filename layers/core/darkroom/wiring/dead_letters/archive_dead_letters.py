"""The wiring of `archive_dead_letters`."""

from __future__ import annotations

from darkroom.aws.dead_letters.dead_letters import DeadLetterArchive, DeadLetterQueues
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.kernel import clients
from darkroom.operations.dead_letters.archive_dead_letters import ArchiveDeadLettersPorts
from darkroom.settings import ArchiveDeadLettersSettings
from darkroom.wiring.kernel.runtime import clock


def wire() -> ArchiveDeadLettersPorts:
    """The ports of `archive_dead_letters`, from the function's environment."""
    settings = ArchiveDeadLettersSettings.read()
    return ArchiveDeadLettersPorts(
        images=ImagesTable(clients.dynamodb_client(), settings.images_table),
        dead_letters=DeadLetterQueues(
            clients.sqs_client(), clients.sqs_client_without_retries(), settings.dead_letter_queues
        ),
        archive=DeadLetterArchive(clients.s3_client(), settings.archive_bucket),
        clock=clock,
    )
