"""`darkroom logs`: shows what the functions and the API's gateway log."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.logs.lines import LEVELS
from darkroom_cli.options import option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.terminal.instants import milliseconds

EPILOG = """[bold]Examples[/bold]

  ./darkroom logs --follow                          [dim]all functions and the gateway, until Ctrl-C[/dim]
  ./darkroom logs transcode_image --since 1h --text 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom logs api --level ERROR --stack darkroom-prod          [dim]answers with 5xx[/dim]
  ./darkroom logs --since 2026-11-23T06:00Z --level WARNING --json | jq .line

[bold]Exit status[/bold]

  0    it worked, whether or not there is anything
  1    it failed: standard error says why and what to do
  2    the command was not understood
  130  interrupted"""


def _since(text: str) -> str:
    try:
        seconds_of(text)
    except ValueError:
        milliseconds(text)
    return text


def _level(text: str | None) -> str | None:
    if text is not None and text.upper() not in LEVELS:
        raise typer.BadParameter(f"{display.printable(text)!r} is none of {', '.join(LEVELS)}.")
    return text and text.upper()


def command(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...", help="Only these: submit_image, transcode_image, …, and api, the gateway."
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option("--since", metavar="D|TIME", help="How far back: 10m, 6h; or 2026-11-23T06:00Z.", callback=_since),
    ] = "10m",
    text: Annotated[
        str | None, option("--text", "TEXT", "Only lines with this text: an image's, request's or key's id, or words.")
    ] = None,
    level: Annotated[
        str | None,
        option("--level", "L", "At least INFO, WARNING or ERROR. Of the gateway: 4xx and 5xx.", callback=_level),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing what is logged, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as a JSON object.")] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Show what the functions and the API's gateway log, oldest first.

    It reads CloudWatch Logs, and needs neither the AWS command line nor the names
    of log groups. Addresses of clients are left out. `trace ID` draws the life of
    one image from the same lines.
    """
    from darkroom_cli.logs import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    wanted = work.LineFilters(sources=tuple(sources or ()), since=since, text=text, level=level)
    work.show(reach(stack, region), wanted, follow=follow, as_json=as_json)
