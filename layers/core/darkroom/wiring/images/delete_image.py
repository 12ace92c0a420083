"""The wiring of `delete_image`."""

from __future__ import annotations

from darkroom.aws.images.edge_budget import EdgeBudgetTable
from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.kernel import circuits, clients
from darkroom.operations.images.delete_image import DeleteImagePorts, EdgePorts
from darkroom.operations.tenants.take_token import TakeTokenPorts
from darkroom.settings import DeleteImageSettings
from darkroom.wiring.kernel.rate_limit import rate_limit_of
from darkroom.wiring.kernel.runtime import clock


def wire() -> tuple[DeleteImagePorts, EdgePorts, TakeTokenPorts]:
    """The ports of `delete_image`, from the function's environment, and those of what the edge keeps and of its rate
    limit."""
    settings = DeleteImageSettings.read()
    dynamodb = clients.dynamodb_client()
    circuits.of_dynamodb(dynamodb, settings.images_table)
    ports = DeleteImagePorts(images=ImagesTable(dynamodb, settings.images_table), clock=clock)
    edge_budget = EdgeBudgetTable(clients.impatient(dynamodb), settings.token_buckets_table)
    edge = EdgePorts(edge_budget=edge_budget, edge_seconds=settings.edge_seconds)
    return ports, edge, rate_limit_of(dynamodb, settings.token_buckets_table)
