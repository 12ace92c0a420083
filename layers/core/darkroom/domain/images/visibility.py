"""Who may fetch an image's variants from the edge, the caches in front of the store, and where they lie for that."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Visibility(StrEnum):
    """Whom the edge serves an image to: nobody, everybody, or who has a URL that was signed for it."""

    PRIVATE = "private"
    PUBLIC = "public"
    SIGNED = "signed"


PREFIXES: Mapping[Visibility, str] = {
    Visibility.PRIVATE: "outputs/",
    Visibility.PUBLIC: "public/",
    Visibility.SIGNED: "signed/",
}
"""What the keys of variants begin with. The edge can read all of them but those of private images."""


def visibility_of_key(key: str) -> Visibility:
    """The visibility that the variant of that key was stored for. Raises KeyError for what is no variant's key."""
    return _OF_PREFIXES[key[: key.find("/") + 1]]


_OF_PREFIXES = {prefix: visibility for visibility, prefix in PREFIXES.items()}


def folder_of(visibility: Visibility, image_id: str) -> str:
    """What the keys of all variants of an image begin with that were stored for that visibility."""
    return f"{PREFIXES[visibility]}{image_id}/"
