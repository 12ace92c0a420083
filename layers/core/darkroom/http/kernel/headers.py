"""The headers of answers, for the tables of routes and of problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from darkroom.domain.tenants.rate_limits import Policy

_POLICIES = "|".join(Policy)

EXAMPLE_ID = "1kyvb60cwewgmgxx48pc1nwmdc"
"""The image in all examples."""

EXAMPLE_WEBHOOK_ID = "we_01kyvb60cwewgmgx"
EXAMPLE_BATCH_ID = "ba_0c4r9h8m2k5x7t1w3y6z0b9d4f"
"""The webhook in all examples."""


@dataclass(frozen=True)
class Header:
    """A header of an answer; without `always` it is present only when it makes sense."""

    name: str
    kind: Any
    description: str
    example: Any
    always: bool = field(default=True, kw_only=True)


NO_SNIFFING = Header(
    "X-Content-Type-Options", Literal["nosniff"], "The answer's media type is the stated one.", "nosniff"
)
LOCATION_OF_STATUS = Header(
    "Location", str, "The image's status, relative to the API's root.", f"/images/{EXAMPLE_ID}/status"
)
LOCATION_OF_VARIANT = Header(
    "Location",
    Annotated[str, Field(json_schema_extra={"format": "uri"})],
    "The variant's address, open to anyone for 15 minutes.",
    f"https://darkroom-outputs.s3.us-east-1.amazonaws.com/outputs/{EXAMPLE_ID}/1/thumb?X-Amz-Signature=0a1b2c",
)
ACCEPT = Header("Accept", str, "The media types that the body may have.", "application/json")
ALLOW = Header("Allow", str, "The methods that this path allows.", "GET, PATCH, DELETE")
RETRY_AFTER = Header("Retry-After", Annotated[int, Field(ge=1)], "In how many seconds to ask again.", 1)
RETRY_AFTER_WHILE_UNFINISHED = Header(
    "Retry-After",
    Annotated[int, Field(ge=1)],
    "In how many seconds to ask again; absent once the image is finished.",
    1,
    always=False,
)
ENTITY_TAG = Header(
    "ETag",
    Annotated[str, Field(pattern='^W/"[0-9]+-[0-9]+(-([0-9]+|paused))?"$')],
    "For If-None-Match. It changes with the image, and every five minutes so that no URL in a cached copy expires.",
    'W/"3-5984172"',
)
PAGE_TAG = Header(
    "ETag",
    Annotated[str, Field(pattern='^W/"[0-9a-f]{16}-[0-9]+"$')],
    "For If-None-Match. It changes with each image of the page, and every five minutes so that no URL in a cached copy "
    "expires.",
    'W/"9f2c6b7e41d05a83-5984172"',
)
RETRY_AFTER_OF_PAGE = Header(
    "Retry-After",
    Annotated[int, Field(ge=1)],
    "In how many seconds to ask again; absent while every image of the page is finished.",
    1,
    always=False,
)
REPLAYED = Header(
    "Idempotent-Replayed",
    Literal["true"],
    "Present if an earlier request, with this key or of what `on_duplicate` reuses, made the image.",
    "true",
    always=False,
)

EDGE_UNTIL = Header(
    "Darkroom-Edge-Until",
    Annotated[str, Field(json_schema_extra={"format": "date-time"})],
    "Until when the edge may still serve variants of an image that was not private; browsers may keep what they have "
    "for as long as its Cache-Control says.",
    "2026-11-21T10:00:00.000Z",
    always=False,
)

WWW_AUTHENTICATE = Header(
    "WWW-Authenticate",
    Annotated[str, Field(pattern='^Bearer error="insufficient_scope", scope="[a-z:]+"$')],
    "Which scope the key lacks (RFC 6750, section 3.1).",
    'Bearer error="insufficient_scope", scope="images:write"',
)

ALLOWANCE_HEADERS = (
    Header(
        "RateLimit-Policy",
        Annotated[str, Field(pattern=f'^"({_POLICIES})";q=[0-9]+;w=[0-9]+(;cost=[0-9]+)?$')],
        "How many requests the tenant may send at once (q), and in how many seconds that refills (w), as in "
        "draft-ietf-httpapi-ratelimit-headers, and as how many this one counts (cost, if it is not 1): `tenant` counts "
        "uploads, changes and deletions, `reads` everything else. Absent if the stack does not tell callers apart.",
        '"reads";q=50;w=5;cost=5',
        always=False,
    ),
    Header(
        "RateLimit",
        Annotated[str, Field(pattern=f'^"({_POLICIES})";r=[0-9]+;t=[0-9]+$')],
        "How many requests the tenant has left (r), to spread over that many seconds (t).",
        '"reads";r=45;t=5',
        always=False,
    ),
)
"""What answers say about the tenant's allowance, if the request costs some of it."""
