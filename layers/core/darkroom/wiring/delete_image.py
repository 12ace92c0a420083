"""The wiring of `delete_image`."""

from __future__ import annotations

from darkroom.aws import circuits, clients
from darkroom.aws.images_table import ImagesTable
from darkroom.operations.delete_image import Ports
from darkroom.settings import DeleteImageSettings
from darkroom.wiring.runtime import clock


def wire() -> Ports:
    """The ports of `delete_image`, from the function's environment."""
    settings = DeleteImageSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    return Ports(images=ImagesTable(dynamodb, settings.images_table), clock=clock)
