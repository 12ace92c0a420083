"""The refusals of files with a broken structure."""

from __future__ import annotations

from darkroom.domain.errors import Rejected


def truncated() -> Rejected:
    """The refusal of a file that ends too early."""
    return Rejected("truncated", "The file ends too early: part of it is missing. Send the whole file again.")


def undecodable(why: str) -> Rejected:
    """The refusal of a damaged file."""
    return Rejected("undecodable", f"The file is damaged: {why}. Send the original file again.")
