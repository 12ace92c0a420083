"""The settings of the functions of bulk work."""

from __future__ import annotations

from typing import Literal

from darkroom.settings import (
    EdgeSettings,
    FileSettings,
    QuotaSettings,
    ReachSettings,
    SendingSettings,
    Settings,
    one_of,
    setting,
)


class ManageBatchesSettings(Settings):
    """What `manage_batches` needs. A stack without webhooks has no `endpoints_table`; `imports` is whether it fetches
    images."""

    batches_table: str
    endpoints_table: str = ""
    token_buckets_table: str
    uploads_bucket: str
    imports: Literal["true", "false"] = setting(one_of("true", "false"), default="true")


class CountBatchesSettings(SendingSettings):
    """What `count_batches` needs."""

    batches_table: str
    images_table: str


class SweepDueBulkSettings(CountBatchesSettings, QuotaSettings, FileSettings, ReachSettings, EdgeSettings):
    """What `sweep_due_bulk` needs. A stack without imports has no `fetch_queue_url`, and one without webhooks no
    `endpoints_table`."""

    endpoints_table: str = ""
    fetch_queue_url: str = ""
    originals_bucket: str
    outputs_bucket: str
    tenants_table: str
    uploads_bucket: str
