"""`darkroom parts`: says what a stack is deployed without, and removes what is left of it."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach

_HELP = """The optional parts: what is deployed, and what is left of the others.

A part whose functions are gone keeps its rows, messages and secret, and finds
them when it comes back: docs/parts.md.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom parts ls
  ./darkroom parts purge usage                        [dim]what that would remove[/dim]
  ./darkroom parts purge usage --confirm darkroom-prod --stack darkroom-prod

[bold]Exit status[/bold]

  0    it worked, or there was nothing to do
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _part(text: str) -> str:
    from darkroom.parts import PARTS  # noqa: PLC0415

    if text not in PARTS:
        raise typer.BadParameter(f"there are these: {', '.join(PARTS)}.")
    return text


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the parts: deployed, or what is left of them.

    It reads every row of a part that is off.
    """
    from darkroom_cli.parts import work  # noqa: PLC0415

    work.list_(reach(stack, region), as_json=as_json)


@app.command()
def purge(
    part: Annotated[str, typer.Argument(metavar="PART", callback=_part, help="webhooks, usage, imports or page.")],
    *,
    confirm: Annotated[
        str | None, option("--confirm", "NAME", "Do it: the stack's name. Without it: say what would be done.")
    ] = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Remove what a part has left in the stack: its rows and messages.

    The part must be off. Tables, queues and secrets stay, and nothing of the core
    is touched. This cannot be undone. Interrupted, it can be run again.
    """
    from darkroom_cli.parts import work  # noqa: PLC0415

    where = reach(stack, region)
    if confirm is None:
        work.tell_purge(where, part)
    elif confirm != where.name:  # guard: parts-purge-consent
        raise typer.BadParameter(f"This stack is {where.name}. Nothing was done.", param_hint="--confirm")
    else:
        work.purge(where, part)
