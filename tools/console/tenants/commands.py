"""`darkroom tenants`: who may call the API, in which lane, and how much they may ask for."""

from __future__ import annotations

from typing import Annotated

import typer

from console.options import JsonOption, YesOption, option
from console.stack.target import RegionOption, StackOption, reach
from console.terminal import display
from darkroom.domain.api_keys import key_id_of
from darkroom.domain.lanes import lane_for
from darkroom.domain.tenants import (
    MAX_BURST,
    MAX_REQUESTS_PER_SECOND,
    TenantState,
    Tier,
    is_tenant_id,
)

_HELP = """Tenants: who may call the API, in which lane, and how much they may ask for.

They call it with [bold]API keys[/bold]: see [bold]darkroom keys[/bold]. A change takes
effect within 60 seconds, also for keys that already exist.
"""

_EPILOG = """[bold]A new customer[/bold]

  ./darkroom tenants add acme --tier paid --stack darkroom-prod
  ./darkroom keys create acme --stack darkroom-prod  [dim]prints the key, once[/dim]

[bold]Trouble[/bold]

  ./darkroom tenants suspend acme --stack darkroom-prod
  ./darkroom tenants resume acme --stack darkroom-prod

[bold]A customer who leaves[/bold]

  ./darkroom tenants erase acme --stack darkroom-prod  [dim]says what it would do; --yes does it[/dim]"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def tenant_named(text: str | None) -> str | None:
    """The named tenant, or None for all. Raises typer.BadParameter."""
    if text is None:
        return None
    if key_id_of(text.strip()) is not None:
        raise typer.BadParameter("that is a key, not a tenant.")
    if not is_tenant_id(text.strip()):
        raise typer.BadParameter(
            f"{display.printable(text)!r} cannot name a tenant: a name has 1 to 128 letters, digits and . _ : | @ -, "
            "and starts with a letter or digit."
        )
    return text.strip()


TenantArgument = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.", callback=tenant_named)]
RateOption = Annotated[
    int | None,
    option(
        "--requests-per-second",
        "N",
        "How many requests it may send on average. Default: its tier's: "
        + ", ".join(f"{tier} {tier.allowance.requests_per_second}" for tier in Tier)
        + ".",
        min=1,
        max=MAX_REQUESTS_PER_SECOND,
    ),
]
BurstOption = Annotated[
    int | None,
    option(
        "--burst",
        "N",
        "How many requests at once. Default: its tier's: "
        + ", ".join(f"{tier} {tier.allowance.burst}" for tier in Tier)
        + ".",
        min=1,
        max=MAX_BURST,
    ),
]
_LANES_HELP = " ".join(f"{tier}: the {lane_for(tier).name} lane." for tier in Tier)


@app.command()
def add(
    *,
    tenant: TenantArgument,
    tier: Annotated[Tier, typer.Option(help=_LANES_HELP)] = Tier.FREE,
    requests_per_second: RateOption = None,
    burst: BurstOption = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Add a tenant. It has no key yet."""
    from console.tenants import work  # noqa: PLC0415

    work.add(reach(stack, region), tenant, tier=tier, requests_per_second=requests_per_second, burst=burst)


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the tenants, with their tiers, limits and keys."""
    from console.tenants import work  # noqa: PLC0415

    work.list_tenants(reach(stack, region), as_json=as_json)


@app.command()
def change(
    *,
    tenant: TenantArgument,
    tier: Annotated[
        Tier | None, typer.Option(show_default=False, help="For images that are accepted from now on.")
    ] = None,
    requests_per_second: RateOption = None,
    burst: BurstOption = None,
    usual_limits: Annotated[
        bool, typer.Option("--usual-limits", help="Remove its own limits: its tier's apply again.")
    ] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Change a tenant's tier or limits."""
    from console.tenants import work  # noqa: PLC0415

    if usual_limits and (requests_per_second or burst):
        raise typer.BadParameter("it removes what the other options set.", param_hint="--usual-limits")
    if not (tier or requests_per_second or burst or usual_limits):
        raise typer.BadParameter("say what to change: --tier, --requests-per-second, --burst or --usual-limits.")
    where = reach(stack, region)
    work.change(
        where, tenant, tier=tier, requests_per_second=requests_per_second, burst=burst, usual_limits=usual_limits
    )


@app.command()
def erase(
    *,
    tenant: TenantArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Erase a tenant with all its images and keys, and tell what is left until when.

    Its requests are refused from the beginning. It may be interrupted and
    repeated. [bold]docs/privacy.md[/bold] says what is stored where.
    """
    from console.tenants import erase as erasing  # noqa: PLC0415

    where = reach(stack, region)
    if yes:
        erasing.erase(where, tenant, as_json=as_json)
    else:
        erasing.tell(where, tenant)


@app.command()
def suspend(*, tenant: TenantArgument, stack: StackOption = None, region: RegionOption = None) -> None:
    """Refuse all requests of a tenant. What it sent before is still developed."""
    from console.tenants import work  # noqa: PLC0415

    work.set_state(reach(stack, region), tenant, TenantState.SUSPENDED)


@app.command()
def resume(*, tenant: TenantArgument, stack: StackOption = None, region: RegionOption = None) -> None:
    """Answer a suspended tenant's requests again."""
    from console.tenants import work  # noqa: PLC0415

    work.set_state(reach(stack, region), tenant, TenantState.ACTIVE)
