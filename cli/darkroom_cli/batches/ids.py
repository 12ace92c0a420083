"""Reads a batch's id from the command line."""

from __future__ import annotations

import typer

from darkroom.domain.bulk.batches import is_batch_id
from darkroom_cli.terminal import display


def checked_batch_id(text: str | None) -> str | None:
    """A batch's id from the command line, if there is one."""
    if text is None or is_batch_id(text.strip()):
        return text and text.strip()
    raise typer.BadParameter(
        f"{display.printable(text)!r} is not a batch's id: ba_ and 26 digits and lower-case letters."
    )
