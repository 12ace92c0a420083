"""`darkroom doctor`: checks whether a stack is sound and changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from console.options import JsonOption
from console.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom doctor
  ./darkroom doctor --all --json

[bold]Exit status[/bold]

  0    the stack is sound
  1    it is not, or could not be checked: the output says why and what to do
  2    the command was not understood
  130  interrupted"""


def command(
    *,
    whole_table: Annotated[
        bool,
        typer.Option("--all", help="Read every row, not only those of unfinished images: half a read unit per 4 KB."),
    ] = False,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Check whether a stack is sound. Nothing is changed.

    It checks what this checkout can read, so check out the version that is
    deployed. It reads the row of every unfinished image: a read unit per 4 KB.
    """
    from console.doctor import work  # noqa: PLC0415

    work.examine(reach(stack, region), whole_table=whole_table, as_json=as_json)
