"""The settings of the edge's functions."""

from __future__ import annotations

from darkroom.settings import LimitSettings, Settings, setting, some_words, whole_number


class RedirectImageSettings(Settings):
    """What `redirect_image` needs."""

    images_table: str


class InvalidateEdgeSettings(Settings):
    """What `invalidate_edge` needs; no `outputs_bucket` where nothing is made on request."""

    token_buckets_table: str
    outputs_bucket: str
    distribution_id: str
    invalidations_per_month: int = setting(whole_number(0))


class SignImageSettings(Settings):
    """What `sign_image` needs: the secret with the keys, by its ARN, and the ids of those that are trusted."""

    signing_secret: str
    signing_keys: frozenset[str] = setting(some_words)
    signed_seconds: int = setting(whole_number(1))


def _instructions(text: str) -> str:
    # Imported here because it imports pydantic, which other functions of the edge do without.
    from darkroom.domain.edge.instructions import allowed_by  # noqa: PLC0415

    allowed_by(text)
    return text


class MakeVariantSettings(LimitSettings):
    """What `make_variant` needs; `allowed_instructions` is the list of tenants that have none of their own, and
    `variant_key` the secret that signatures come from, by its ARN."""

    images_table: str
    tenants_table: str
    token_buckets_table: str
    originals_bucket: str
    outputs_bucket: str
    variant_key: str
    allowed_instructions: str = setting(_instructions)
