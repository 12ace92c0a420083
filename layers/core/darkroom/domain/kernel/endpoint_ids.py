"""The ids of endpoints, and how many there may be: what others need to know of webhooks."""

from __future__ import annotations

import re

from darkroom.domain.kernel.base32 import ALPHABET, DIGIT, digits_of

MAX_ENDPOINTS = 10
"""The most endpoints of a tenant. Each has a place of its own, from 0 to 9, so that nobody has to count."""

MAX_ENDPOINT_URL_LENGTH = 2048
"""Characters. Every delivery reads its endpoint's row, so it is kept small."""

_RANDOM_DIGITS = 15  # 75 bits: nobody guesses an id, and no two are equal
_PREFIX = "we_"

ENDPOINT_ID_PATTERN = rf"{_PREFIX}[0-9]{DIGIT}{{{_RANDOM_DIGITS}}}"
"""The pattern of every endpoint's id. Its first digit is the endpoint's place."""

_ENDPOINT_ID = re.compile(ENDPOINT_ID_PATTERN)

RANDOM_BYTES = 10
"""How many random bytes an id is made from."""


def is_endpoint_id(text: str) -> bool:
    """Whether `text` has the form of an endpoint's id."""
    return _ENDPOINT_ID.fullmatch(text) is not None


def endpoint_id_from(place: int, random_bits: bytes) -> str:
    """The id of an endpoint in that place, from 10 random bytes. Raises ValueError for any other number of them, and
    for a place that there is not."""
    if len(random_bits) != RANDOM_BYTES or not 0 <= place < MAX_ENDPOINTS:
        raise ValueError(f"an endpoint's id is made from a place below {MAX_ENDPOINTS} and {RANDOM_BYTES} bytes")
    return f"{_PREFIX}{ALPHABET[place]}{digits_of(int.from_bytes(random_bits), _RANDOM_DIGITS)}"


def place_of(endpoint_id: str) -> int:
    """The place, from 0 to 9, that an endpoint's id names."""
    return int(endpoint_id[len(_PREFIX)])
