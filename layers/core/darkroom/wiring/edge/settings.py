"""The settings of the edge's functions."""

from __future__ import annotations

from darkroom.settings import Settings, setting, some_words, whole_number


class RedirectImageSettings(Settings):
    """What `redirect_image` needs."""

    images_table: str


class InvalidateEdgeSettings(Settings):
    """What `invalidate_edge` needs."""

    token_buckets_table: str
    distribution_id: str
    invalidations_per_month: int = setting(whole_number(0))


class SignImageSettings(Settings):
    """What `sign_image` needs: the secret with the keys, by its ARN, and the ids of those that are trusted."""

    signing_secret: str
    signing_keys: frozenset[str] = setting(some_words)
    signed_seconds: int = setting(whole_number(1))
