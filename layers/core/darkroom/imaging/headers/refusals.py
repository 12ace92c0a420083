"""The refusals of files that are not developed as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darkroom.domain.kernel.errors import Rejected


def truncated() -> Rejected:
    """The refusal of a file that ends too early."""
    return Rejected("truncated", "The file ends too early: part of it is missing. Send the whole file again.")


def undecodable(why: str) -> Rejected:
    """The refusal of a damaged file."""
    return Rejected("undecodable", f"The file is damaged: {why}. Send the original file again.")


def unsupported(why: str) -> Rejected:
    """The refusal of a file that may be sound, but is of a kind that is not developed."""
    return Rejected("unsupported_format", f"The file cannot be developed: {why}. Save it as an ordinary JPEG or PNG.")


class InPieces(Rejected):
    """The refusal of a file whose structure has too many parts, which may be sound."""

    def __init__(self) -> None:
        refusal = unsupported("it is cut into more pieces than cameras and editors make")
        super().__init__(refusal.code, refusal.message)


def walked[Piece](pieces: Iterator[Piece], *, has_enough: Callable[[], bool]) -> Iterator[Piece]:
    """The pieces, up to the limit of a walk: beyond it a file is refused only if what is needed has not been found."""
    try:
        yield from pieces
    except InPieces:
        if not has_enough():  # guard: animation-still-pieces-tolerated
            raise
