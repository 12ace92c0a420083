"""`darkroom differences`: what the nightly reconciliation has seen of buckets and rows that differ."""

from __future__ import annotations

import typer

from darkroom_cli.options import JsonOption
from darkroom_cli.stack.target import RegionOption, StackOption, reach

_HELP = """What the buckets hold and the rows say otherwise.

Every night a thirtieth of all images is compared. What differs counts once
another night has confirmed it; what has gone meanwhile is forgotten.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom differences ls
  ./darkroom differences ls --json --stack darkroom-prod

[bold]Exit status[/bold]

  0    it worked, whatever there is
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def _group() -> None:
    """A group, though it has one command so far."""


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the differences that are recorded, at most 1,000, and what to do about each kind."""
    from darkroom_cli.differences import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    work.list_(reach(stack, region), as_json=as_json)
