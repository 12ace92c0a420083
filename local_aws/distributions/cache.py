"""Keeps the answers of origins: one cache for all distributions, as one edge location has."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAXIMUM_BYTES = 256 * 2**20
_TAGS = 50
"""CloudFront takes so many tags of an object, and ignores the others."""


class Answer(NamedTuple):
    """What an origin answered; the names of the headers are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, Any]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An answer, or how the origin failed, with what decides when it goes. `address` is the path and the part of the
    query that the cache's key has."""

    answer: Answer | Exception
    distribution_id: str
    address: str
    tags: frozenset[str]
    stored_at: float
    expires_at: float

    @property
    def size(self) -> int:
        return len(self.answer.body) if isinstance(self.answer, Answer) else 0

    def is_named_by(self, items: Iterable[str]) -> bool:
        """Whether an invalidation of these paths and tags removes it."""
        for item in items:
            if item.startswith("#"):
                if item[1:].lower() in self.tags:
                    return True
            elif item == self.address or (item.endswith("*") and self.address.startswith(item[:-1])):
                return True
        return False


def tags_of(value: str) -> frozenset[str]:
    """The tags in a header."""
    return frozenset([tag.strip().lower() for tag in value.split(",") if tag.strip()][:_TAGS])


class EdgeCache:
    """The answers by their keys; those that were not asked for longest go first where there are too many."""

    def __init__(self, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self._kept = OrderedDict[Hashable, Kept]()
        self._bytes, self._maximum_bytes = 0, maximum_bytes
        self._invalidations = Counter[str]()

    def get(self, key: Hashable) -> Kept | None:
        """What is kept under a key, fresh or not."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def invalidations(self, distribution_id: str) -> int:
        """How many there have been: what was asked for before the latest may be older than it."""
        return self._invalidations[distribution_id]

    def put(self, key: Hashable, kept: Kept) -> None:
        """Keep it in place of what was there."""
        self.drop(key)
        self._kept[key] = kept
        self._bytes += kept.size
        while self._bytes > self._maximum_bytes:
            self.drop(next(iter(self._kept)))

    def drop(self, key: Hashable) -> None:
        """Keep nothing under a key."""
        if (kept := self._kept.pop(key, None)) is not None:
            self._bytes -= kept.size

    def invalidate(self, distribution_id: str, items: Iterable[str]) -> None:
        """Remove what these paths and tags name of a distribution."""
        self._invalidations[distribution_id] += 1
        named = [
            key
            for key, kept in list(self._kept.items())
            if kept.distribution_id == distribution_id and kept.is_named_by(items)
        ]
        for key in named:
            self.drop(key)


CACHE = EdgeCache()
