"""The settings of the function that fetches images."""

from __future__ import annotations

from darkroom.settings import DeadLetterSettings, FileSettings, InputSettings, QueueSettings, ReachSettings


class FetchOriginalSettings(QueueSettings, InputSettings, DeadLetterSettings, FileSettings, ReachSettings):
    """What `fetch_original` needs."""

    images_table: str
    originals_bucket: str
    tenants_table: str
