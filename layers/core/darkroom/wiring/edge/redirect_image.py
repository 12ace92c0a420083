"""The wiring of `redirect_image`."""

from __future__ import annotations

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.edge.redirect_image import RedirectImagePorts
from darkroom.wiring.edge.settings import RedirectImageSettings


def wire() -> RedirectImagePorts:
    """The ports of `redirect_image`, from the function's environment."""
    settings = RedirectImageSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    return RedirectImagePorts(images=ImagesTable(dynamodb, settings.images_table))
