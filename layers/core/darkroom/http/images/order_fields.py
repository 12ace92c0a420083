"""What the routes of every order have: its fields, its key, and the problems that it may meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from darkroom.domain.images.annotations import (
    MAX_METADATA_BYTES,
    MAX_REFERENCE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    REFERENCE_PATTERN,
    TAG_PATTERN,
)
from darkroom.domain.images.order import ON_DUPLICATE
from darkroom.domain.kernel.sizes import limit_in_words
from darkroom.domain.kernel.visibility import Visibility
from darkroom.domain.recipes.presets import PRESETS
from darkroom.domain.schedules.schedule import MAX_DELAY_SECONDS
from darkroom.http.kernel.route import Parameter, one_of
from darkroom.http.kernel.timetables import DURATION_PATTERN, INSTANT_PATTERN


def some_of(words: Iterable[str]) -> Any:
    """A list of some of the words, comma-separated in a query."""
    item_schema: Any = {"type": "string", "enum": list(dict.fromkeys(words))}
    return Annotated[list[str], Field(min_length=1, json_schema_extra={"items": item_schema})]


WrittenInstant = Annotated[str, Field(json_schema_extra={"format": "date-time", "pattern": f"^{INSTANT_PATTERN}$"})]
WrittenDuration = Annotated[str, Field(json_schema_extra={"pattern": f"^{DURATION_PATTERN}$"})]

# What the domain refuses in its own words is only checked for its kind here.
_TAG_SCHEMA: Any = {"type": "string", "pattern": f"^{TAG_PATTERN}$", "maxLength": MAX_TAG_CHARACTERS}
Reference = Annotated[
    str,
    Field(
        json_schema_extra={"pattern": f"^{REFERENCE_PATTERN}$", "maxLength": MAX_REFERENCE_CHARACTERS},
        description="The client's own name for the image, which others may have, too.",
    ),
]
Tag = Annotated[str, Field(json_schema_extra=_TAG_SCHEMA)]
Tags = Annotated[
    list[str],
    Field(
        json_schema_extra={"items": _TAG_SCHEMA, "maxItems": MAX_TAGS, "uniqueItems": True},
        description="The client's own words, by which lists can be filtered.",
    ),
]
TagsInQuery = Annotated[Tags, Field(min_length=1)]
Metadata = Annotated[
    dict[str, Any],
    Field(
        description="The client's own JSON object, given back as it is; at most "
        f"{limit_in_words(MAX_METADATA_BYTES)} without spaces between its parts."
    ),
]

BatchId = Annotated[str, Field(description="An open batch's id.")]

PresetName: Any = one_of(PRESETS)
OnDuplicate: Any = one_of(ON_DUPLICATE)
VisibilityName: Any = Annotated[
    one_of(Visibility),
    Field(
        description="Whom the edge serves the image to: nobody, everybody, or who has a URL of its status document. "
        "Without it, whom the tenant usually wants; private unless the operator was told otherwise."
    ),
]
PresetVariants: Any = some_of(spec.name for preset in PRESETS.values() for spec in preset.variants)


IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    # Spaces around a header's value are not part of it (RFC 9110, section 5.5).
    kind=Annotated[str, Field(pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$", max_length=255)],
    description="The same key and request always mean the same image, however often they are sent.",
    example="order-17",
)


IN_SCHEDULE = f"at most {MAX_DELAY_SECONDS // 86_400} days ahead"


OF_EVERY_ORDER = (
    "unknown_preset",
    "unknown_variants",
    "invalid_recipe",
    "conflicting_parameters",
    "invalid_process_at",
    "invalid_delay",
    "invalid_expires_at",
    "unknown_notify",
    "unknown_batch",
    "batch_closed",
    "invalid_reference",
    "invalid_tags",
    "invalid_metadata",
    "unknown_visibility",
    "quota_exceeded",
    "invalid_idempotency_key",
    "idempotency_key_reused",
    "image_deleted",
    "part_not_deployed",
    "too_many_requests",
    "too_many_unfinished",
    "overloaded",
    "unavailable",
)
"""The problems of every request that asks for an image to be developed, large or small."""
