"""Damage to bytes: random, or the least that there is; in the store, or once on the way from it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any


def damaged(body: bytes, chance: random.Random) -> bytes:
    """The bytes after one to three accidents: they differ, though their meaning may be the same."""
    altered = bytearray(body)
    while altered == body:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            _strike(altered, chance)
    return bytes(altered)


def flipped(body: bytes) -> bytes:
    """The bytes with one bit of their middle turned."""
    at = len(body) // 2
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def damage_once(store: Any, method: str, harm: Callable[[Any], Any]) -> None:
    """The next answer of the store's method is what `harm` makes of it; all later ones are as they should be."""
    original = getattr(store, method)

    def struck(*arguments: Any, **options: Any) -> Any:
        setattr(store, method, original)
        return harm(original(*arguments, **options))

    setattr(store, method, struck)


def _strike(altered: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(altered) + 1)
    some = chance.randbytes(chance.choice((1, 1, 2, 16)))
    match chance.choice(("bit", "bit", "overwrite", "insert", "delete", "cut", "append", "repeat", "turn")):
        case "bit" if at < len(altered):
            altered[at] ^= 1 << chance.randrange(8)
        case "overwrite":
            altered[at : at + len(some)] = some
        case "insert":
            altered[at:at] = some
        case "delete":
            del altered[at : at + len(some)]
        case "cut":
            del altered[at:]
        case "append":
            altered += some
        case "repeat":
            altered[at:at] = altered[at : at + 32]
        case "turn":
            altered[at : at + 8] = altered[at : at + 8][::-1]
