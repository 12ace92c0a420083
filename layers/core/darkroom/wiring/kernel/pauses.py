"""What is paused, for functions that look at it: only where it is deployed that something may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.aws.kernel import clients
from darkroom.aws.pauses.pauses_table import PausesTable, RememberedPauses
from darkroom.ports.pauses import KnownPauses, nothing_paused
from darkroom.settings import PauseSettings
from darkroom.wiring.kernel.runtime import clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def known_pauses_of(settings: PauseSettings, dynamodb: DynamoDBClient) -> KnownPauses:
    """What is paused. Its client is unseen by the circuits: a pause that cannot be read stops nothing."""
    if not settings.pauses_table:  # guard: bulk-off-nothing-paused
        return nothing_paused
    return RememberedPauses(PausesTable(clients.impatient(dynamodb), settings.pauses_table), clock)
