"""Random damage to stored bytes."""

from __future__ import annotations

import random


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """The bytes after one to three accidents: they differ, though their meaning may be the same."""
    altered = bytearray(whole)
    while altered == whole:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            _strike(altered, chance)
    return bytes(altered)


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
