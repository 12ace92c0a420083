"""`darkroom top`: shows live what a stack does now."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption
from darkroom_cli.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom top                              [dim]live, until Ctrl-C[/dim]
  ./darkroom top --stack darkroom-prod --interval 10
  ./darkroom top --once --json | jq '.lanes[] | {lane, oldest_seconds}'

[bold]Exit status[/bold]

  0    with --once: everything was read
  1    it failed, or (with --once) a part could not be read: the output says why
  2    the command was not understood
  130  interrupted, as a live display ends"""


def command(
    *,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and exit; so it is without a terminal.")] = False,
    as_json: JsonOption = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=1,
            help="How often to look. Default: 2 for the local stack, 5 for a deployed one.",
            show_default=False,
        ),
    ] = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Show live what a stack does now, and what is wrong with it.

    Alarms, lanes, images that fail and why, dead letters, who works on what,
    scheduled images, webhooks. It only reads, and reads little: an hour of it
    costs a few cents (docs/command-line.md). --json shows it once.
    """
    from darkroom_cli.top import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    chosen = reach(stack, region)
    if once or as_json:
        work.show_once(chosen, as_json=as_json)
    else:
        work.show_live(chosen, interval_seconds=interval)
