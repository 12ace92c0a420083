"""The wiring of `count_usage`."""

from __future__ import annotations

from darkroom.aws.kernel import clients
from darkroom.aws.usage.usage_table import UsageTable
from darkroom.operations.kernel.check_message import CheckPorts
from darkroom.operations.usage.count_usage import CountUsagePorts
from darkroom.wiring.kernel.message_keys import checking_of, message_keys_of
from darkroom.wiring.kernel.runtime import clock
from darkroom.wiring.usage.settings import CountUsageSettings


def wire() -> tuple[CountUsagePorts, CheckPorts]:
    """The ports of `count_usage`, from the function's environment, and what checks its messages."""
    settings = CountUsageSettings.read()
    ports = CountUsagePorts(
        usage=UsageTable(clients.dynamodb_client(), settings.usage_table, settings.counted_events_table), clock=clock
    )
    return ports, checking_of(message_keys_of(settings), settings)
