"""`darkroom operate`: serves the operators' page on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom operate --open                   [dim]the local stack, only to look at[/dim]
  ./darkroom operate --stack darkroom-prod
  ./darkroom operate --stack darkroom-prod --write

[bold]Exit status[/bold]

  0    it was ended with Ctrl-C, as it is meant to be
  1    it failed: standard error says why and what to do
  2    the command was not understood"""


def command(
    *,
    write: Annotated[
        bool,
        typer.Option("--write", help="The page may also change things: replay, drop, reschedule, revoke, …"),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="The port. Default: one that is free.")
    ] = 0,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Serve a page with what operators see and do, on this machine alone, until
    Ctrl-C.

    It has the command line's own reports, and with --write its actions, each of
    which says what it would do before it is done. Nobody else can use it: its
    address has a token of this run.
    """
    from darkroom_cli.operate import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    work.serve(reach(stack, region), write=write, port=port, open_it=open_it)
