"""Policies of CloudFront's signed URLs, and the keys that sign them
(https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-custom-policy.html).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from darkroom.domain.kernel.ids import IMAGE_ID_PATTERN
from darkroom.domain.kernel.visibility import PREFIXES, Visibility

# One image and nothing else: `*` and `?` are wildcards to CloudFront, wherever they stand.
_RESOURCE = re.compile(rf"https?://[a-z0-9.:-]+/{PREFIXES[Visibility.SIGNED]}{IMAGE_ID_PATTERN}/\*")


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """A key pair, whose public half CloudFront knows as `id`: the private half in PEM, unseen in logs. It signs since
    `created_at`."""

    id: str
    created_at: int
    private_key: str

    def __repr__(self) -> str:
        return f"SigningKey(id={self.id!r})"


def is_signable(resource: object) -> bool:
    """Whether a policy may be about that: all variants of one image."""
    return isinstance(resource, str) and _RESOURCE.fullmatch(resource) is not None  # guard: edge-signs-one-image


def keys_in(secret: str) -> tuple[SigningKey, ...]:
    """The keys in the text of the secret."""
    return tuple(
        SigningKey(id=key["id"], created_at=int(key["created_at"]), private_key=key["private_key"])
        for key in json.loads(secret)["keys"]
    )


def newest_of(keys: Collection[SigningKey], trusted: Collection[str]) -> SigningKey | None:
    """The newest of the keys that the distribution trusts; None if it trusts none."""
    known = [key for key in keys if key.id in trusted]  # guard: edge-signs-by-trusted-key
    return max(known, key=lambda key: (key.created_at, key.id), default=None)


def policy_for(resource: str, until_seconds: int) -> bytes:
    """The policy that lets everybody who has it fetch the resource until then."""
    condition = {"DateLessThan": {"AWS:EpochTime": until_seconds}}
    return json.dumps({"Statement": [{"Resource": resource, "Condition": condition}]}, separators=(",", ":")).encode()


def for_a_url(value: bytes) -> str:
    """CloudFront's base64: what a query could not have is replaced."""
    return base64.b64encode(value).decode().translate(str.maketrans("+=/", "-_~"))
