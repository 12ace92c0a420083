"""Options that several commands share, and the usual form of the others."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of


def option(flag: str, metavar: str, help: str, *, panel: str | None = None, **more: Any) -> Any:  # noqa: A002
    """An option with a value and no default. `panel` is its heading in the help."""
    return typer.Option(flag, metavar=metavar, help=help, show_default=False, rich_help_panel=panel, **more)


def duration(text: str | None) -> str | None:
    """Checks an option's duration, 6h or 12d, as its callback; what is none is a usage error."""
    try:
        seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(display.printable(str(error))) from error
    return text


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do it. Without it: say what would be done.")]
