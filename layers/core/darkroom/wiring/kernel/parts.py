"""What optional parts add to the core's functions: loaded by its name, where the part is deployed and nowhere else.

No function of the core imports it, so that a stack without the part needs none of its modules: they are in a layer of
their own. The protocols say what is loaded; `tests/unit/test_core_alone.py` has mypy compare the modules with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from darkroom.ports.images import FetchQueue, HasRecipient, HasTurn, JoinBatch
from darkroom.ports.tenants import StoredSums

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from darkroom.operations.images.submit_image import SubmitImagePorts
    from darkroom.settings import SubmitImageSettings


class WebhooksForCore(Protocol):
    """`wiring.webhooks.for_core`."""

    def has_recipient_of(self, endpoints_table: str, dynamodb: DynamoDBClient) -> HasRecipient:
        """Whether a webhook of that id can be told, by the table of endpoints."""

    def blank_deliveries_of(self, deliveries_table: str, dynamodb: DynamoDBClient, image_id: str) -> bool:
        """Takes out of deliveries what they say of a deleted image; returns whether these are all."""


class UsageForCore(Protocol):
    """`wiring.usage.for_core`."""

    def sums_of(self, usage_table: str, dynamodb: DynamoDBClient) -> StoredSums:
        """What tenants store."""

    def read_usage_ports(self, usage_table: str, dynamodb: DynamoDBClient) -> Any:
        """The ports of the operation to which `http.usage.for_core` leads."""


class ImportsForCore(Protocol):
    """`wiring.imports.for_core`."""

    def begin_fetch_ports(self, settings: SubmitImageSettings, ports: SubmitImagePorts, fetch_queue: FetchQueue) -> Any:
        """The ports of the operation to which `http.imports.for_core` leads."""


class BulkForCore(Protocol):
    """`wiring.bulk.for_core`."""

    def join_batch_of(self, batches_table: str, dynamodb: DynamoDBClient) -> JoinBatch:
        """Has images join batches."""

    def has_turn_of(self, batches_table: str, dynamodb: DynamoDBClient) -> HasTurn:
        """Whether it is an image's turn in its batch."""


def load_part(module: str) -> Any:
    """That module of a part: `wiring.usage.for_core`. Raises ModuleNotFoundError in a function without its layer."""
    return import_module(f"darkroom.{module}")
