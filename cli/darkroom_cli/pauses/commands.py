"""`darkroom pause` and `darkroom resume`: stop a lane, a tenant's work or a webhook for a while, and go on."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.pauses.pauses import REASON_CHARACTERS
from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.tenants.commands import TenantArgument, tenant_named
from darkroom_cli.terminal import display
from darkroom_cli.webhooks.commands import IdArgument, webhook_id_named

_STATUS = """[bold]Exit status[/bold]

  0    it worked, or it was so already
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done"""

_PAUSE_HELP = """Stop a lane, a tenant's work or a webhook for a while.

What comes is accepted and waits, and nothing of it is lost or late by alarm.
What a worker has begun is finished. [bold]darkroom resume[/bold] lets it go on.
"""

_PAUSE_EPILOG = f"""[bold]Examples[/bold]

  ./darkroom pause lane slow --reason "waiting for the new preset"
  ./darkroom pause tenant acme --stack darkroom-prod
  ./darkroom pause ls                   [dim]what is paused, and how much waits[/dim]

{_STATUS}"""

_RESUME_HELP = """Let a lane, a tenant's work or a webhook that was paused go on.

A paused tenant in a paused lane waits for both.
"""

_RESUME_EPILOG = f"""[bold]Examples[/bold]

  ./darkroom resume lane slow
  ./darkroom resume tenant acme --stack darkroom-prod

{_STATUS}
  130  interrupted: it goes on, and what waits besides begins within an hour"""

pausing = typer.Typer(help=_PAUSE_HELP, epilog=_PAUSE_EPILOG, no_args_is_help=True, rich_markup_mode="rich")
resuming = typer.Typer(help=_RESUME_HELP, epilog=_RESUME_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def lane_named(text: str) -> str:
    """That lane. Raises typer.BadParameter."""
    if text not in LANES:
        raise typer.BadParameter(f"{display.printable(text)!r} is no lane: {', '.join(LANES)}.")
    return text


def subject_named(kind: str, name: str) -> str:
    """The lane, tenant or webhook of that name. Raises typer.BadParameter."""
    if kind == "lane":
        return lane_named(name)
    return webhook_id_named(name) if kind == "webhook" else tenant_named(name) or ""


def reason_of(text: str) -> str:
    """The reason in one line. Raises typer.BadParameter if it is too long."""
    if len(text.strip()) > REASON_CHARACTERS:
        raise typer.BadParameter(f"a reason has at most {REASON_CHARACTERS} characters.")
    return display.printable(text.strip())


LaneArgument = Annotated[
    str, typer.Argument(metavar="LANE", help=f"{' or '.join(LANES)}.", callback=lane_named, show_default=False)
]
ReasonOption = Annotated[str, option("--reason", "TEXT", "Why, for the others who operate it.", callback=reason_of)]


@pausing.command("lane")
def pause_lane(
    lane: LaneArgument, *, reason: ReasonOption = "", stack: StackOption = None, region: RegionOption = None
) -> None:
    """Stop a lane: its images wait in its queue."""
    from darkroom_cli.pauses import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    work.pause(reach(stack, region), "lane", lane, reason=reason)


@pausing.command("tenant")
def pause_tenant(
    tenant: TenantArgument, *, reason: ReasonOption = "", stack: StackOption = None, region: RegionOption = None
) -> None:
    """Stop a tenant's work: its images wait, and its requests are answered.

    To refuse its requests, too:  ./darkroom tenants suspend
    """
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.pause(reach(stack, region), "tenant", tenant, reason=reason)


@pausing.command("webhook")
def pause_webhook(webhook_id: IdArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Stop what is sent to a webhook: its events wait, for 30 days."""
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.pause(reach(stack, region), "webhook", webhook_id)


@pausing.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List what is paused: since when, why, and how much waits."""
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.list_(reach(stack, region), as_json=as_json)


@resuming.command("lane")
def resume_lane(lane: LaneArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Let a lane's workers take its images again."""
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.resume(reach(stack, region), "lane", lane)


@resuming.command("tenant")
def resume_tenant(tenant: TenantArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Let a tenant's images be developed again."""
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.resume(reach(stack, region), "tenant", tenant)


@resuming.command("webhook")
def resume_webhook(webhook_id: IdArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Have a webhook sent what waits for it."""
    from darkroom_cli.pauses import work  # noqa: PLC0415

    work.resume(reach(stack, region), "webhook", webhook_id)
