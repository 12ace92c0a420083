"""`darkroom usage`: what tenants used, day by day."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display

EPILOG = """[bold]Examples[/bold]

  ./darkroom usage                                   [dim]this month, all tenants[/dim]
  ./darkroom usage --tenant acme --since 2026-10-01 --until 2026-10-31
  ./darkroom usage --json

[bold]Exit status[/bold]

  0    it worked
  1    it failed: standard error says why and what to do
  2    the command was not understood"""


def _day(text: str | None) -> str | None:
    try:
        if text is not None and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is None:
            raise ValueError
        if text is not None:
            date.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{display.printable(text or '')!r} is not a day like 2026-11-23.") from error
    return text


def command(
    *,
    since: Annotated[
        str | None, option("--since", "DAY", "The first day. Default: the first of this month.", callback=_day)
    ] = None,
    until: Annotated[str | None, option("--until", "DAY", "The last day. Default: today.", callback=_day)] = None,
    tenant: Annotated[str | None, option("--tenant", "NAME", "Only that tenant's.")] = None,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Show what each tenant used, by day (UTC).

    Images accepted with the bytes of their files, runs that made variants, with
    the bytes and megapixels of these. It is some seconds behind.
    """
    from darkroom_cli.usage import work  # noqa: PLC0415

    work.show(reach(stack, region), since=since, until=until, tenant=tenant, as_json=as_json)
