"""The wiring of `hold_images`."""

from __future__ import annotations

from darkroom.aws.dead_letters.dead_letters import RejectedMessageQueues
from darkroom.aws.images.queues import LaneQueues
from darkroom.aws.kernel import clients
from darkroom.aws.schedules.holds import HoldExecutions, HoldsBucket
from darkroom.operations.schedules.hold_images import HoldImagesPorts
from darkroom.settings import HoldImagesSettings
from darkroom.wiring.kernel.message_keys import message_keys_of, signer_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> HoldImagesPorts:
    """The ports of `hold_images`, from the function's environment."""
    settings = HoldImagesSettings.read()
    message_keys = message_keys_of(settings)
    return HoldImagesPorts(
        lanes=LaneQueues(clients.sqs_client(), settings.queue_urls, signer_of(message_keys)),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        wake_ups=HoldExecutions(clients.step_functions_client(), settings.hold_state_machine),
        clock=clock,
        known_lanes=settings.queue_urls,
        message_keys=message_keys,
        rejected_messages=RejectedMessageQueues(clients.sqs_client_without_retries, settings.dead_letter_queues),
    )
