"""The wiring of `hold_images`."""

from __future__ import annotations

from darkroom.aws import clients
from darkroom.aws.holds import HoldExecutions, HoldsBucket
from darkroom.aws.queues import LaneQueues
from darkroom.operations.hold_images import Ports
from darkroom.settings import HoldImagesSettings
from darkroom.wiring.runtime import clock


def wire() -> Ports:
    """The ports of `hold_images`, from the function's environment."""
    settings = HoldImagesSettings.read()
    return Ports(
        lanes=LaneQueues(clients.sqs_client(), settings.queue_urls),
        holds=HoldsBucket(clients.s3_client(), settings.holds_bucket),
        wake_ups=HoldExecutions(clients.step_functions_client(), settings.hold_state_machine),
        clock=clock,
        known_lanes=settings.queue_urls,
    )
