"""The settings of the function that counts usage."""

from __future__ import annotations

from darkroom.settings import ConsumerSettings


class CountUsageSettings(ConsumerSettings):
    """What `count_usage` needs."""

    usage_table: str
    counted_events_table: str
