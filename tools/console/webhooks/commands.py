"""`darkroom webhooks`: what programs outside the stack hear of its events."""

from __future__ import annotations

from typing import Annotated

import typer

from console.events.commands import TenantOption, TypesOption
from console.options import option
from console.stack.target import RegionOption, StackOption, reach
from console.webhooks.forward import problem_with

_HELP = """Webhooks: events that are sent to a program, signed by Standard Webhooks."""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom webhooks listen                      [dim]prints each event[/dim]
  ./darkroom webhooks listen --forward-to http://127.0.0.1:3000/webhooks
  ./darkroom webhooks listen --forward-to URL --type 'image.d*' --stack prod

[bold]Exit status[/bold]

  1    it failed: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted, as it is meant to end: its queue is removed"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _address(text: str | None) -> str | None:
    if text is not None and (problem := problem_with(text)):
        raise typer.BadParameter(problem)
    return text


@app.command()
def listen(
    *,
    forward_to: Annotated[
        str | None,
        option("--forward-to", "URL", "Where your program listens. Without it, events are printed.", callback=_address),
    ] = None,
    tenant: TenantOption = None,
    types: TypesOption = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print each event as it is, one per line; everything else on standard error."),
    ] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Print each event, and send it to your program as a webhook, until Ctrl-C.

    Each request is signed with a secret of this session, which is printed first.
    Your program is sent each event once, whatever it answers. The events come by
    a queue that is removed at the end; if one was left behind, by the next listener.
    """
    from console.webhooks import listen  # noqa: PLC0415

    listen.listen(reach(stack, region), forward_to=forward_to, tenant=tenant, types=types or [], as_json=as_json)
