"""The ids of endpoints: each is made from a place and random bytes."""

from __future__ import annotations

import re

from darkroom.domain.kernel.endpoint_ids import ENDPOINT_ID_PATTERN, PREFIX, RANDOM_DIGITS
from darkroom.domain.kernel.ids import ALPHABET, digits_of

MAX_ENDPOINTS = 10
"""The most endpoints of a tenant. Each has a place of its own, from 0 to 9, so that nobody has to count."""

RANDOM_BYTES = 10
"""How many random bytes an id is made from."""

_ENDPOINT_ID = re.compile(ENDPOINT_ID_PATTERN)


def is_endpoint_id(text: str) -> bool:
    """Whether `text` has the form of an endpoint's id."""
    return _ENDPOINT_ID.fullmatch(text) is not None


def endpoint_id_from(place: int, random_bits: bytes) -> str:
    """The id of an endpoint in that place, from 10 random bytes. Raises ValueError for any other number of them, and
    for a place that there is not."""
    if len(random_bits) != RANDOM_BYTES or not 0 <= place < MAX_ENDPOINTS:
        raise ValueError(f"an endpoint's id is made from a place below {MAX_ENDPOINTS} and {RANDOM_BYTES} bytes")
    return f"{PREFIX}{ALPHABET[place]}{digits_of(int.from_bytes(random_bits), RANDOM_DIGITS)}"


def place_of(endpoint_id: str) -> int:
    """The place, from 0 to 9, that an endpoint's id names."""
    return int(endpoint_id[len(PREFIX)])
