"""Who may fetch an image's variants from the edge, the caches in front of the store, and where they lie for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.instants import Milliseconds

VIEWER_SECONDS = 86_400
"""How long whoever fetches a variant from the edge may keep it, unless its tenant has asked for longer."""

FORGETTING_SECONDS = 3600
"""How long after a deletion the edge has certainly been told to forget the image for the second time: the sweeper's
second look, with a sweep that is late, and the edge's queue."""


class Visibility(StrEnum):
    """Whom the edge serves an image to: nobody, everybody, or who has a URL that was signed for it."""

    PRIVATE = "private"
    PUBLIC = "public"
    SIGNED = "signed"


def visibility_named(name: str) -> Visibility:
    """The visibility of that name. Raises Rejected (`unknown_visibility`)."""
    try:
        return Visibility(name)
    except ValueError as error:
        names = ", ".join(Visibility)
        raise Rejected("unknown_visibility", f"visibility is {names}, or left out.") from error


PREFIXES: Mapping[Visibility, str] = {
    Visibility.PRIVATE: "outputs/",
    Visibility.PUBLIC: "public/",
    Visibility.SIGNED: "signed/",
}
"""What the keys of variants begin with. The edge can read all of them but those of private images."""


def visibility_of_key(key: str) -> Visibility:
    """The visibility that the variant of that key was stored for: private, where no edge can read it."""
    return _OF_PREFIXES.get(key[: key.find("/") + 1], Visibility.PRIVATE)


_OF_PREFIXES = {prefix: visibility for visibility, prefix in PREFIXES.items()}


def folder_of(visibility: Visibility, image_id: str) -> str:
    """What the keys of all variants of an image begin with that were stored for that visibility."""
    return f"{PREFIXES[visibility]}{image_id}/"


def moved_key(key: str, visibility: Visibility) -> str:
    """Where the variant of that key lies for another visibility."""
    return PREFIXES[visibility] + key[key.find("/") + 1 :]


def with_prospect(visibilities: Sequence[Visibility], wanted: Visibility) -> tuple[Visibility, ...]:
    """The visibilities of an image with one that it is about to get: from then on there may be objects for it."""
    if wanted in visibilities or (not visibilities and wanted is Visibility.PRIVATE):
        return tuple(visibilities)
    return (wanted, *(visibilities or (Visibility.PRIVATE,)))


def with_present(visibilities: Sequence[Visibility], present: Visibility) -> tuple[Visibility, ...]:
    """The visibilities of an image that has got one of them."""
    return (*(each for each in visibilities if each is not present), present)


def to_remove(visibilities: Sequence[Visibility]) -> tuple[Visibility, ...]:
    """The visibilities for which an image that had these may have objects."""
    return tuple(dict.fromkeys((Visibility.PRIVATE, *visibilities)))  # guard: removal-every-prefix


def edge_until(removed_at: Milliseconds, *, edge_seconds: int, is_told: bool) -> Milliseconds:
    """Until when the edge may have something of an image that was deleted: it is told to forget it, or else keeps it
    as long as it keeps anything."""
    return removed_at + (FORGETTING_SECONDS + (0 if is_told else edge_seconds)) * 1000  # guard: edge-until-untold
