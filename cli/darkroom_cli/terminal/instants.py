"""Reads instants as people type them."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.terminal import display


def milliseconds(text: str) -> Milliseconds:
    """The instant that an option names; without an offset it is UTC. Raises typer.BadParameter."""
    try:
        named = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{display.printable(text)!r} is neither a day nor a time: 2026-11-23, 2026-11-23T06:00Z."
        ) from error
    return round((named if named.tzinfo else named.replace(tzinfo=UTC)).timestamp() * 1000)
