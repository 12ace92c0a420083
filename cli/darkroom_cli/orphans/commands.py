"""`darkroom orphans`: finds and removes originals without a row."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of

_HELP = """Originals without a row: their request died before it wrote one.

Nobody can ask for them, nothing else removes them, and they cost storage.
Each command lists the whole bucket and reads every row. You can interrupt
both commands and run them again.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom orphans ls
  ./darkroom orphans remove              [dim]what that would do[/dim]
  ./darkroom orphans remove --yes
  ./darkroom orphans remove --older-than 30d --yes

[bold]Exit status[/bold]

  0    it worked, or there was nothing to do
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _age(text: str | None) -> str | None:
    from darkroom_cli.operator.operations.images.list_orphans import LEAST_AGE_SECONDS  # noqa: PLC0415

    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(display.printable(str(error))) from error
    if seconds is not None and seconds < LEAST_AGE_SECONDS:
        raise typer.BadParameter(f"at least {LEAST_AGE_SECONDS // 3600}h: before that the row may still be written.")
    return text


AgeOption = Annotated[
    str | None,
    option(
        "--older-than", "D", "Stored more than D ago, in every version: 30d, at least 1h. Default: 2d.", callback=_age
    ),
]


@app.command("ls")
def list_(
    *,
    older_than: AgeOption = None,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List originals without a row: how many, how large, how old.

    A million originals take some ten minutes and cost 13 cents.
    """
    from darkroom_cli.orphans import work  # noqa: PLC0415

    work.list_(reach(stack, region), older_than=older_than or work.STANDARD_AGE, as_json=as_json)


@app.command()
def remove(
    *,
    older_than: AgeOption = None,
    yes: YesOption = False,
    table_is_whole: Annotated[
        bool,
        typer.Option(
            "--table-is-whole",
            help="You have checked that the table has lost no rows: remove them although it looks as if it had.",
        ),
    ] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Remove originals without a row, with all their versions.

    They are hidden first and removed two minutes later, unless they have a row by
    then: a client may have repeated its request. This cannot be undone.
    """
    from darkroom_cli.orphans import work  # noqa: PLC0415

    where = reach(stack, region)
    if yes:
        work.remove(where, older_than=older_than or work.STANDARD_AGE, table_is_whole=table_is_whole)
    else:
        work.tell_removal(where, older_than=older_than or work.STANDARD_AGE, table_is_whole=table_is_whole)
