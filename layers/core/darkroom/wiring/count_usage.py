"""The wiring of `count_usage`."""

from __future__ import annotations

from darkroom.aws import clients
from darkroom.aws.usage_table import UsageTable
from darkroom.operations.count_usage import Ports
from darkroom.settings import CountUsageSettings
from darkroom.wiring.runtime import clock


def wire() -> Ports:
    """The ports of `count_usage`, from the function's environment."""
    settings = CountUsageSettings.read()
    return Ports(
        usage=UsageTable(clients.dynamodb_client(), settings.usage_table, settings.counted_events_table), clock=clock
    )
