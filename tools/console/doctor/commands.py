"""`darkroom doctor`: checks whether a stack is sound and changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from console.options import JsonOption
from console.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom doctor
  ./darkroom doctor --stack darkroom-prod --production
  ./darkroom doctor --all --json

[bold]Marks[/bold]

  ✓  it is so          ✗  it is not: what, and what to do
  –  answered by a decision that is named
  ·  only asked with --production
  ?  it could not be checked: why

[bold]Exit status[/bold]

  0    the stack is sound
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
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Check whether a stack is sound: the production checklist, line by line. Nothing is changed.

    It compares the stack with this checkout, so check out the version that is
    deployed. It only calls operations that read; AWS's policy ReadOnlyAccess
    allows them. It reads the row of every unfinished image: a read unit per 4 KB.
    """
    from console.doctor import work  # noqa: PLC0415

    work.examine(reach(stack, region), whole_table=whole_table, production=production, as_json=as_json)
