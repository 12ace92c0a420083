"""`darkroom restore`: copies the rows of a restored table back into the live one."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom restore                                 [dim]how far back, and how to have AWS make copies[/dim]
  ./darkroom restore --from-stream                   [dim]images that went in the last day: no copy needed[/dim]
  ./darkroom restore darkroom-ImagesTable-X-restored [dim]what that would do[/dim]
  ./darkroom restore darkroom-ImagesTable-X-restored --yes

[bold]Exit status[/bold]

  0    it worked, or there was nothing to do
  1    it failed, or rows are held back: standard error says why and what to do
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""


def command(
    *,
    copies: Annotated[
        list[str] | None, typer.Argument(metavar="[COPY]...", help="Tables that AWS restored.", show_default=False)
    ] = None,
    from_stream: Annotated[
        bool,
        typer.Option("--from-stream", help="Images that the table lost in the last 24 hours, to the last write."),
    ] = False,
    keep_tenant: Annotated[
        list[str] | None,
        option("--keep-tenant", "NAME", "Restore this tenant although somebody began to erase it. May be repeated."),
    ] = None,
    originals_are_whole: Annotated[
        bool,
        typer.Option(
            "--originals-are-whole",
            help="You have checked that the originals' bucket has lost nothing: what has no original was deleted.",
        ),
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Copy the rows that a table has lost back into it.

    A row that is there is never overwritten, no event is published, and nothing
    that was deleted or erased since comes back. It can be interrupted and
    repeated. docs/recovery.md has the steps.
    """
    from darkroom_cli.restore import work  # noqa: PLC0415

    if copies and from_stream:
        raise typer.BadParameter("--from-stream needs no copy: do it first, and alone.")
    where = reach(stack, region)
    if not copies and not from_stream:
        work.tell_how(where, as_json=as_json)
        return
    work.restore(
        where,
        copies or [],
        keep=frozenset(keep_tenant or ()),
        originals_are_whole=originals_are_whole,
        yes=yes,
        as_json=as_json,
    )
