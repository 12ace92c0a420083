"""`darkroom doctor`: checks whether a stack is sound, and with `--repair --yes` sets back what was changed by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach

_REPAIR = "What was changed by hand"

EPILOG = """[bold]Examples[/bold]

  ./darkroom doctor
  ./darkroom doctor --stack darkroom-prod --production
  ./darkroom doctor --all --json
  ./darkroom doctor --repair         [dim]what was changed by hand, and what it was deployed as[/dim]
  ./darkroom doctor --repair --yes   [dim]sets it back[/dim]

[bold]Marks[/bold]

  ✓  it is so          ✗  it is not: what, and what to do
  –  answered by a decision that is named
  ·  only asked with --production
  ?  it could not be checked: why

[bold]Exit status[/bold]

  0    the stack is sound; with --repair: it is said, or with --yes done
  1    it is not, or something could not be checked: the output says why and what to do
  2    the command was not understood
  130  interrupted"""  # noqa: RUF001 - the marks are printed as they are


def command(
    *,
    production: Annotated[
        bool,
        typer.Option(
            "--production",
            help="Also ask what only a production stack must have: somebody who hears alarms, known callers, "
            "reserved capacity, young keys.",
        ),
    ] = False,
    whole_table: Annotated[
        bool,
        typer.Option("--all", help="Read every row, not only those of unfinished images: half a read unit per 4 KB."),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Instead: say what was changed by hand since the latest deployment, and with --yes set it back.",
            rich_help_panel=_REPAIR,
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="With --repair: do it. Without it: say what would be done.", rich_help_panel=_REPAIR
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        option("--only", "RESOURCE", "With --repair: only this resource; may be repeated.", panel=_REPAIR),
    ] = None,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Check whether a stack is sound: the production checklist, line by line. Nothing is changed without --yes.

    It compares the stack with this checkout, so check out the version that is
    deployed. It only calls operations that read; AWS's policy ReadOnlyAccess
    allows them. It reads the row of every unfinished image: a read unit per 4 KB.
    """
    if not repair and (yes or only):
        raise typer.BadParameter("use it with --repair.", param_hint="--yes" if yes else "--only")
    if repair and (production or whole_table):
        raise typer.BadParameter(
            "it checks nothing but what --repair sets back.", param_hint="--production" if production else "--all"
        )
    if repair:
        from darkroom_cli.doctor import repair as repairing  # noqa: PLC0415

        where, reading = reach(stack, region), reach(stack, region)
        repairing.repair(where, reading, only=only or (), yes=yes, as_json=as_json)
        return
    from darkroom_cli.doctor import work  # noqa: PLC0415

    work.examine(reach(stack, region), whole_table=whole_table, production=production, as_json=as_json)
