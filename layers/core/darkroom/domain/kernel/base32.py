"""Crockford's base32 in lower case: digits that can be read aloud, and that sort like the numbers they represent."""

from __future__ import annotations

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u (https://www.crockford.com/base32.html)

DIGIT = "[0-9a-hjkmnp-tv-z]"
"""The pattern of one digit, which holds five bits."""


def digits_of(number: int, count: int) -> str:
    """The number in `count` digits, most significant first; excess digits are cut off."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
