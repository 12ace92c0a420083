"""`darkroom webhooks`: what programs outside the stack hear of its events."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.webhooks.delivery import DeliveryStatus, is_delivery_id
from darkroom.domain.webhooks.endpoint_ids import is_endpoint_id
from darkroom_cli.events.commands import TenantOption, TypesOption
from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, RegionOption, StackOption, UrlOption, reach, resolve
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.terminal.instants import milliseconds
from darkroom_cli.webhooks.forward import problem_with
from darkroom_cli.webhooks.headers import headers_of

_HELP = """Webhooks: events that are sent to a program, signed by Standard Webhooks.

Those of a tenant are managed through the API, with its key. [bold]listen[/bold] is for
developers, and makes none.
"""

_EPILOG = """[bold]A webhook of your program[/bold]

  ./darkroom webhooks add https://example.com/darkroom --type image.done
  ./darkroom webhooks ping ID                [dim]sends it an event to try it[/dim]
  ./darkroom webhooks deliveries ID          [dim]what was sent, what it answered[/dim]

[bold]Trouble[/bold]

  ./darkroom webhooks show ID                [dim]does it fail, since when?[/dim]
  ./darkroom webhooks recover ID --since 6h  [dim]tries again what has failed[/dim]
  ./darkroom webhooks resend ID DELIVERY     [dim]sends one delivery again[/dim]
  ./darkroom webhooks rotate ID --yes        [dim]if its secret is lost or known[/dim]

[bold]While you write it[/bold]

  ./darkroom webhooks listen                 [dim]prints each event[/dim]
  ./darkroom webhooks listen --forward-to http://127.0.0.1:3000/webhooks
  ./darkroom webhooks listen --forward-to URL --type 'image.d*' --stack prod

[bold]Exit status[/bold]

  0    it worked
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done
  130  interrupted; `listen` is meant to end so, and has removed its queue"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _address(text: str | None) -> str | None:
    if text is not None and (problem := problem_with(text)):
        raise typer.BadParameter(problem)
    return text


def webhook_id_named(text: str) -> str:
    if not is_endpoint_id(text.strip()):
        raise typer.BadParameter(
            f"{display.printable(text)!r} is not a webhook's id: we_ and 16 digits and lower-case letters."
        )
    return text.strip()


def _delivery_id(text: str) -> str:
    if not is_delivery_id(text.strip()):
        raise typer.BadParameter(
            f"{display.printable(text)!r} is not a delivery's id: 14 digits, - and the event's id, as "
            "`./darkroom webhooks deliveries --json` shows it."
        )
    return text.strip()


def _since(text: str | None) -> str | None:
    """An instant or a duration as the API takes them. A duration counts from the API's own time."""
    if text is None:
        return None
    try:
        seconds = seconds_of(text)
    except ValueError:
        return rfc3339(milliseconds(text))
    return f"PT{seconds:.0f}S"


IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The webhook's id, as `ls` shows it.", callback=webhook_id_named)
]


HeadersOption = Annotated[
    list[str] | None,
    option(
        "--header",
        "HEADER",
        "'Name: value', sent with each delivery; @FILE or - has one per line. Several are possible.",
    ),
]
SecretHeadersOption = Annotated[
    list[str] | None,
    option("--secret-header", "HEADER", "The same, never shown again. Authorization always is secret."),
]


@app.command("ls")
def list_(
    *, as_json: JsonOption = False, url: UrlOption = None, api_key: ApiKeyOption = None, iam: IamOption = False
) -> None:
    """List the webhooks: which work, fail, rest, are paused or disabled."""
    from darkroom_cli.webhooks import work  # noqa: PLC0415 - what reads the API's documents takes a fifth of a second

    work.list_(resolve(url, api_key, iam), as_json=as_json)


@app.command()
def add(
    *,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Where your program listens: https, to a public host.")
    ],
    events: Annotated[
        list[str] | None,
        option("--type", "TYPE", "Only these, as image.done or 'image.*'; may be given several times."),
    ] = None,
    description: Annotated[str | None, option("--description", "TEXT", "Your note about it.")] = None,
    header: HeadersOption = None,
    secret_header: SecretHeadersOption = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Have events sent to your program. Prints their secret, once.

    docs/webhooks.md has the code with which your program verifies what it is sent.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    target = resolve(url, api_key, iam)
    headers = headers_of(header or (), secret_header or ())
    work.add(target, address, events=events, description=description, headers=headers, as_json=as_json)


@app.command()
def change(
    *,
    webhook_id: IdArgument,
    address: Annotated[str | None, option("--address", "ADDRESS", "Where your program listens from now on.")] = None,
    events: Annotated[list[str] | None, option("--type", "TYPE", "Only these from now on.")] = None,
    description: Annotated[str | None, option("--description", "TEXT", "Your note about it; '' for none.")] = None,
    header: HeadersOption = None,
    secret_header: SecretHeadersOption = None,
    no_header: Annotated[list[str] | None, option("--no-header", "NAME", "Remove this header.")] = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Change a webhook: its address, its events, your note, its headers.

    What is not named stays. Its secret does, too.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    stated = {"url": address, "events": events or None, "description": description}
    changed = {name: value for name, value in stated.items() if value is not None}
    headers = headers_of(header or (), secret_header or ())
    if not (changed or headers or no_header):
        raise typer.BadParameter("Name what is to change: --help lists the options.")
    target = resolve(url, api_key, iam)
    work.change(target, webhook_id, changed, headers=headers, removed=no_header or (), as_json=as_json)


@app.command()
def show(
    *,
    webhook_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Show one webhook: does it work, and if not, since when and why.

    After three deliveries in a row whose first attempts failed, a webhook rests:
    one of them tries it at the times of its own retries, and most others wait for it.
    After three that found no connection, all webhooks at that host wait for one.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.show(resolve(url, api_key, iam), webhook_id, as_json=as_json)


@app.command()
def deliveries(
    *,
    webhook_id: IdArgument,
    status: Annotated[
        DeliveryStatus | None, typer.Option(show_default=False, help="Only deliveries with this status.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most N, those of the newest events.")
    ] = 20,
    after: Annotated[
        str | None, option("--after", "DELIVERY", "Go on after this one, as the end of an earlier list says.")
    ] = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """List what was sent to a webhook, its answers, and what waits.

    Deliveries are kept for 30 days. The newest event comes first.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    target = resolve(url, api_key, iam)
    work.deliveries(target, webhook_id, status=status, limit=limit, after=after, as_json=as_json)


@app.command()
def recover(
    *,
    webhook_id: IdArgument,
    since: Annotated[
        str | None,
        option(
            "--since",
            "TIME",
            "Only events since then: 2h or 3d ago, 2026-11-23T06:00Z, or a day (UTC). Default: 30 days.",
            callback=_since,
        ),
    ] = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Enable a webhook, and try its failed deliveries again.

    It is filled slowly at first. What was delivered is not sent again.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.recover(resolve(url, api_key, iam), webhook_id, since=since, as_json=as_json)


@app.command()
def ping(
    *,
    webhook_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Send a webhook an event that only says hello, to try it.

    A webhook that rests is tried at once.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.ping(resolve(url, api_key, iam), webhook_id, as_json=as_json)


@app.command()
def resend(
    *,
    webhook_id: IdArgument,
    delivery_id: Annotated[
        str,
        typer.Argument(
            metavar="DELIVERY", help="The delivery's id, as `deliveries --json` shows it.", callback=_delivery_id
        ),
    ],
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Send one delivery again, whatever became of it.

    It is the same event, with the same id. A webhook that rests is sent it at once.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.resend(resolve(url, api_key, iam), webhook_id, delivery_id, as_json=as_json)


@app.command()
def rotate(
    *,
    webhook_id: IdArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Replace a webhook's secret. Prints the new one, once.

    For a day the one before it signs too, so that your program can change.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.rotate(resolve(url, api_key, iam), webhook_id, yes=yes, as_json=as_json)


@app.command()
def enable(
    *,
    webhook_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Send a webhook what waits for it.

    It is filled slowly at first. One that rests is tried at once.
    """
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.set_enabled(resolve(url, api_key, iam), webhook_id, True, as_json=as_json)


@app.command()
def disable(
    *,
    webhook_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Let a webhook's events wait, for 30 days."""
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.set_enabled(resolve(url, api_key, iam), webhook_id, False, as_json=as_json)


@app.command("rm")
def remove(
    *,
    webhook_id: IdArgument,
    yes: YesOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Delete a webhook. What waits for it is never sent."""
    from darkroom_cli.webhooks import work  # noqa: PLC0415

    work.remove(resolve(url, api_key, iam), webhook_id, yes=yes)


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
    from darkroom_cli.webhooks import listen  # noqa: PLC0415

    listen.listen(reach(stack, region), forward_to=forward_to, tenant=tenant, types=types or [], as_json=as_json)
