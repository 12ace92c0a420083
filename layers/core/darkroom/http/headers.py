"""The headers of answers, for the tables of routes and of problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from darkroom.http.rate_limit import POLICY

EXAMPLE_ID = "1kyvb60cwewgmgxx48pc1nwmdc"
"""The image of all examples."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """A header of an answer; one that is not in `always` is there where it makes sense."""

    name: str
    kind: Any
    description: str
    example: Any
    always: bool = True


def _header(name: str, kind: Any, description: str, example: Any, *, always: bool = True) -> Header:
    return Header(name=name, kind=kind, description=description, example=example, always=always)


CACHE_CONTROL = _header("Cache-Control", str, "Whether the answer may be kept.", "no-store")
NO_SNIFFING = _header(
    "X-Content-Type-Options", Literal["nosniff"], "The answer is of the type that it says.", "nosniff"
)
LOCATION_OF_STATUS = _header(
    "Location", str, "Where to ask how the image is doing, relative to the API's root.", f"/images/{EXAMPLE_ID}/status"
)
LOCATION_OF_VARIANT = _header(
    "Location",
    Annotated[str, Field(json_schema_extra={"format": "uri"})],
    "Where the variant lies, for anyone, for 15 minutes.",
    f"https://darkroom-outputs.s3.us-east-1.amazonaws.com/outputs/{EXAMPLE_ID}/1/thumb?X-Amz-Signature=0a1b2c",
)
ACCEPT = _header("Accept", str, "What the body may be.", "application/json")
ALLOW = _header("Allow", str, "The methods that this path takes.", "GET, PATCH, DELETE")
RETRY_AFTER = _header("Retry-After", Annotated[int, Field(ge=1)], "When to ask again, in seconds.", 1)
RETRY_AFTER_WHILE_UNFINISHED = _header(
    "Retry-After",
    Annotated[int, Field(ge=1)],
    "When to ask again, in seconds; absent once the image has ended.",
    1,
    always=False,
)
ENTITY_TAG = _header(
    "ETag",
    Annotated[str, Field(pattern='^W/"[0-9]+-[0-9]+"$')],
    "For If-None-Match. It changes with the image, and every five minutes so that no address in the document dies.",
    'W/"3-5984172"',
)
REPLAYED = _header(
    "Idempotent-Replayed",
    Literal["true"],
    "Present where an earlier request with this key made the image.",
    "true",
    always=False,
)

ALLOWANCE_HEADERS = (
    _header(
        "RateLimit-Policy",
        Annotated[str, Field(pattern=f'^"{POLICY}";q=[0-9]+;w=[0-9]+$')],
        "How many requests the tenant may send at once (q), and in how many seconds they come back (w), as in "
        "draft-ietf-httpapi-ratelimit-headers; absent where callers are not told apart.",
        f'"{POLICY}";q=50;w=5',
        always=False,
    ),
    _header(
        "RateLimit",
        Annotated[str, Field(pattern=f'^"{POLICY}";r=[0-9]+;t=[0-9]+$')],
        "How many requests are left to the tenant (r), to be spent over that many seconds (t).",
        f'"{POLICY}";r=42;t=5',
        always=False,
    ),
)
"""What answers say of the tenant's allowance where a request costs some of it."""

ALWAYS_HEADERS = (CACHE_CONTROL, NO_SNIFFING)
"""What every answer of a function has."""
