"""The document of what a tenant stores, may store, and used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from pydantic import Field

from darkroom.http.images.documents import Count
from darkroom.http.kernel.problems import QuotaDocument, StoredDocument, quota_document, stored_document

if TYPE_CHECKING:
    from darkroom.domain.kernel.tenants import Quota
    from darkroom.operations.usage.read_usage import UsageOfTenant
    from darkroom.ports.usage import DayOfUsage

DAY_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"

Day = Annotated[str, Field(pattern=f"^{DAY_PATTERN}$", description="A day in UTC.")]


class DayDocument(TypedDict):
    """What was used in a day."""

    day: Day
    images: Annotated[Count, Field(description="Images that were accepted.")]
    image_bytes: Annotated[Count, Field(description="The bytes of their files.")]
    runs: Annotated[Count, Field(description="Runs that made variants.")]
    variant_bytes: Count
    variant_pixels: Count


class UsageDocument(TypedDict):
    """What the tenant stores and may store now, and what it used on the days that have anything, the oldest first."""

    stored: StoredDocument
    quota: QuotaDocument
    since: Day
    until: Day
    days: list[DayDocument]


def usage_document(used: UsageOfTenant, quota: Quota) -> UsageDocument:
    """Returns the document."""
    return {
        "stored": stored_document(used.stored),
        "quota": quota_document(quota),
        "since": used.since,
        "until": used.until,
        "days": [_day_document(day) for day in used.days],
    }


def _day_document(day: DayOfUsage) -> DayDocument:
    used = day.usage
    return {
        "day": day.day,
        "images": used.images,
        "image_bytes": used.image_bytes,
        "runs": used.runs,
        "variant_bytes": used.variant_bytes,
        "variant_pixels": used.variant_pixels,
    }
