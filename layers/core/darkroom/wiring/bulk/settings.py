"""The settings of the functions of bulk work."""

from __future__ import annotations

from darkroom.settings import SendingSettings, Settings


class ManageBatchesSettings(Settings):
    """What `manage_batches` needs. A stack without webhooks has no `endpoints_table`."""

    batches_table: str
    endpoints_table: str = ""
    token_buckets_table: str


class SweepDueBulkSettings(SendingSettings):
    """What `sweep_due_bulk` and `count_batches` need."""

    batches_table: str
    images_table: str
