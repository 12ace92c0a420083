"""`darkroom events`: what happened to images, told again."""

from __future__ import annotations

import fnmatch
from typing import Annotated

import typer

from darkroom.domain.events.event import EventType
from darkroom_cli.options import YesOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.instants import milliseconds

_HELP = """Events: what happened to images, as consumers hear of it.

Each is made of what a row says, and has the same id however often it is
published: consumers ignore what they know.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom events tail                                       [dim]until Ctrl-C[/dim]
  ./darkroom events tail --type image.failed --json | jq .data.error
  ./darkroom events republish --since 2026-11-23T06:00Z        [dim]what that would publish[/dim]
  ./darkroom events republish --since 2026-11-23T06:00Z --yes
  ./darkroom events republish --since 2026-11-01 --tenant acme --type image.done --yes

[bold]Exit status[/bold]

  0    it worked, or there was nothing to publish
  1    it failed, or not all could be published: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted; what was published is published, and `tail` has removed its queue"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _instant(text: str | None) -> str | None:
    if text is not None:
        milliseconds(text)
    return text


def _types(names: list[str] | None) -> list[str] | None:
    known = [kind.value for kind in EventType]
    chosen = {name: fnmatch.filter(known, name) for name in names or []}
    for name, kinds in chosen.items():
        if not kinds:
            raise typer.BadParameter(f"{display.printable(name)!r} is no type of event: {', '.join(known)}.")
    return list(dict.fromkeys(kind for kinds in chosen.values() for kind in kinds))


TypesOption = Annotated[
    list[str] | None,
    option("--type", "TYPE", "Only these, as image.done or 'image.*'; may be given several times.", callback=_types),
]
TenantOption = Annotated[str | None, option("--tenant", "NAME", "Only that tenant's.")]


@app.command()
def tail(
    *,
    tenant: TenantOption = None,
    types: TypesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as it is, one per line.")] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Print each event as it is published, until Ctrl-C.

    It makes a queue of its own and removes it at the end; one that was left behind
    is removed by the next tail of the stack.
    """
    from darkroom_cli.events import work  # noqa: PLC0415

    work.tail(reach(stack, region), tenant=tenant, types=types or [], as_json=as_json)


@app.command()
def republish(
    *,
    since: Annotated[
        str, option("--since", "TIME", "Happened then or later: 2026-11-23T06:00Z, or a day (UTC).", callback=_instant)
    ],
    until: Annotated[str | None, option("--until", "TIME", "Happened before that.", callback=_instant)] = None,
    tenant: TenantOption = None,
    types: TypesOption = None,
    rate: Annotated[
        int, typer.Option("--rate", metavar="N", min=100, max=10_000, help="The most events per second.")
    ] = 500,
    yes: YesOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Publish events again, with the ids that they had.

    It reads every row: half a read unit per 4 KB. You can interrupt it and run it
    again. Events of deleted images come without details.
    """
    from darkroom_cli.events import work  # noqa: PLC0415
    from darkroom_cli.operator.operations.events.republish_events import RepublishSelection  # noqa: PLC0415

    wanted = RepublishSelection(
        since=milliseconds(since),
        until=None if until is None else milliseconds(until),
        tenant_id=tenant,
        types=frozenset(types) if types else None,
    )
    work.republish(reach(stack, region), wanted, rate=rate if yes else None)
