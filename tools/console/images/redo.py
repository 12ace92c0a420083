"""`darkroom redo`: images that are done, developed once more."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from console.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom redo 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom redo - < ids.txt

[bold]Exit status[/bold]

  0    every image has begun anew
  1    one at least has not: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""


def command(
    *,
    image_ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Images' ids; - reads them from standard input.", show_default=False),
    ],
    rate: Annotated[int, typer.Option("--rate", metavar="N", min=1, max=500, help="At most N images a second.")] = 10,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Develop images once more that are done: a variant's object is gone.

    Each gets a new run of five attempts. What there is of its variants can be
    fetched until the new run has made others, and also should it fail.
    """
    from console.delay.by_id import ids_of  # noqa: PLC0415
    from console.images import redo_work as work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    ids = ids_of(image_ids, sys.stdin)
    work.redo(reach(stack, region), ids, rate=rate)
