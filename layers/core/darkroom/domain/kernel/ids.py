"""Image ids: 128 bits, random or derived: from a tenant and an Idempotency-Key, or from a tenant, a photo and a recipe.

Ids are written in Crockford's base32 in lower case: digits that can be read aloud, and that sort like the numbers they
represent."""

from __future__ import annotations

import hashlib
import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u (https://www.crockford.com/base32.html)

DIGIT = "[0-9a-hjkmnp-tv-z]"
"""The pattern of one digit, which holds five bits."""

_LENGTH = 26  # 26 digits of 5 bits hold 128 bits; the first digit carries 3 bits, so it is 0-7.

IMAGE_ID_PATTERN = rf"[0-7]{DIGIT}{{{_LENGTH - 1}}}"
"""The pattern of every image id. An id is checked against it before it is used in a key or an expression."""

_IMAGE_ID = re.compile(IMAGE_ID_PATTERN)

IDEMPOTENCY_KEY_PATTERN = r"[\x20-\x7e]{1,255}"
"""1 to 255 printable ASCII characters, as `Idempotency-Key` may carry."""

GENERATIONS = 8
"""How many ids a tenant's photo and recipe have: one that was deleted, or failed, has used its id up."""

_IDEMPOTENCY_KEY = re.compile(IDEMPOTENCY_KEY_PATTERN)


def digits_of(number: int, count: int) -> str:
    """The number in `count` digits, most significant first; excess digits are cut off."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def is_image_id(text: str) -> bool:
    """Whether `text` has the form of an image id."""
    return _IMAGE_ID.fullmatch(text) is not None


def is_idempotency_key(text: str) -> bool:
    """Whether `text` is a valid `Idempotency-Key`."""
    return _IDEMPOTENCY_KEY.fullmatch(text) is not None


def image_id_from_bits(random_bits: bytes) -> str:
    """The id that 16 bytes encode.

    Raises ValueError for any other number of bytes.
    """
    if len(random_bits) != 16:
        raise ValueError(f"an image id has 16 bytes, not {len(random_bits)}")
    return digits_of(int.from_bytes(random_bits), _LENGTH)


def image_id_for_key(tenant_id: str, idempotency_key: str) -> str:
    """The one id of a tenant's `Idempotency-Key`: the first 128 bits of a SHA-256 over both.

    The tenant's length is hashed too, so that no other pair of tenant and key gives the same input.
    """
    tenant = tenant_id.encode()
    digest = hashlib.sha256(b"darkroom image id v1\0" + len(tenant).to_bytes(4) + tenant + idempotency_key.encode())
    return image_id_from_bits(digest.digest()[:16])


def image_ids_for_photo(tenant_id: str, sha256: str, recipe_digest: str) -> tuple[str, ...]:
    """The ids of a tenant's photo, by its SHA-256, and recipe, the first one first."""
    # guard: reuse-own-tenant, reuse-same-bytes, reuse-same-recipe
    names = (tenant_id, sha256, recipe_digest)
    digests = (
        hashlib.sha256("\0".join(("darkroom image id of a photo v1", *names, str(generation))).encode())
        for generation in range(GENERATIONS)
    )
    return tuple(image_id_from_bits(digest.digest()[:16]) for digest in digests)
