"""`darkroom audit`: lists what operators did to a stack."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, duration, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal.durations import seconds_of

EPILOG = """[bold]Examples[/bold]

  ./darkroom audit --stack darkroom-prod          [dim]the last seven days[/dim]
  ./darkroom audit --since 90d --action replay
  ./darkroom audit --about 01h2xcejqtf2nbrexx3vqjhp41 --since 30d
  ./darkroom audit --json | jq '.actions[] | select(.state == "begun")'

[bold]Exit status[/bold]

  0    it worked, whether or not there is anything
  1    it failed: standard error says why and what to do
  2    the command was not understood"""


def command(
    *,
    since: Annotated[str, typer.Option("--since", metavar="D", help="How far back.", callback=duration)] = "7d",
    action: Annotated[
        str | None, option("--action", "NAME", "Only these: replay, drop, revoke_key, change_tenant, …")
    ] = None,
    about: Annotated[
        str | None, option("--about", "ID", "Only those that name this id: an image's, a key's, a tenant's, …")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most N actions, the newest.")] = 100,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List what operators did: when, who, what, to how many, and how it ended.

    An action that only has `begun` was killed, or is still going on. The log
    has ids, no contents, and is kept for three years.
    """
    from darkroom_cli.audit import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    wanted = work.ActionFilters(seconds=seconds_of(since) or 0, action=action, about=about)
    work.show(reach(stack, region), wanted, limit=limit, as_json=as_json)
