"""`darkroom tenants`: who may call the API, in which lane, and how much they may ask for and store."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from darkroom.domain.kernel.lanes import LANES, lane_for
from darkroom.domain.kernel.sizes import size_in_words
from darkroom.domain.kernel.tenants import (
    MAX_BURST,
    MAX_REQUESTS_PER_SECOND,
    MOST_ERASED_AT_ONCE,
    UNLIMITED,
    TenantState,
    Tier,
    is_tenant_id,
)
from darkroom.domain.kernel.visibility import VIEWER_SECONDS, Visibility
from darkroom.domain.tenants.api_keys import key_id_of
from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display


class ViewerCache(StrEnum):
    """How long browsers may keep pictures."""

    DAY = "day"
    YEAR = "year"

    @property
    def seconds(self) -> int:
        """The time in seconds."""
        return VIEWER_SECONDS if self is ViewerCache.DAY else 365 * 86_400


_HELP = """Tenants: who may call the API, in which lane, how much they may ask for and store.

They call it with [bold]API keys[/bold]: see [bold]darkroom keys[/bold]. A change takes
effect within 60 seconds, also for keys that already exist.
"""

_EPILOG = """[bold]A new customer[/bold]

  ./darkroom tenants add acme --tier paid --stack darkroom-prod
  ./darkroom keys create acme --stack darkroom-prod  [dim]prints the key, once[/dim]

[bold]Trouble[/bold]

  ./darkroom tenants suspend acme --stack darkroom-prod
  ./darkroom tenants resume acme --stack darkroom-prod
  ./darkroom tenants change acme --max-stored 50GB --max-images unlimited
  ./darkroom tenants move acme bulk --stack darkroom-prod  [dim]it takes more of its lane than others[/dim]

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


def _tenants_named(texts: list[str]) -> list[str]:
    """The named tenants, each once. Raises typer.BadParameter."""
    named = [*dict.fromkeys(tenant for text in texts if (tenant := tenant_named(text)) is not None)]
    if len(named) > MOST_ERASED_AT_ONCE:  # guard: tenant-erasure-batch-bound
        raise typer.BadParameter(f"at most {MOST_ERASED_AT_ONCE} tenants can be erased together.")
    return named


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
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _size(text: str) -> int:
    """A number of bytes: 10GB, 1.5 TB, 500000000, unlimited."""
    return _whole(text, r"(\d+(?:\.\d+)?) ?([KMGT]?B|)", "a size like 500MB, 10GB or 1.5TB")


def _images(text: str) -> int:
    """A number of images."""
    return _whole(text, r"(\d+)()", "a number of images")


def _whole(text: str, pattern: str, what: str) -> int:
    if text.strip().lower() == "unlimited":
        return UNLIMITED
    amount = re.fullmatch(pattern, text.strip().upper(), re.ASCII)
    number = -1 if amount is None else round(float(amount[1]) * _UNITS[amount[2]])
    if not 0 <= number <= UNLIMITED:
        raise typer.BadParameter(f"{display.printable(text)!r} is not {what}, or unlimited.")
    return number


StoredOption = Annotated[
    int | None,
    option(
        "--max-stored",
        "SIZE",
        "How many bytes of originals and variants it may store: 10GB, 1.5TB, unlimited. Default: its tier's: "
        + ", ".join(f"{tier} {size_in_words(tier.quota.stored_bytes)}" for tier in Tier)
        + ".",
        parser=_size,
    ),
]
ImagesOption = Annotated[
    int | None,
    option(
        "--max-images",
        "N",
        "How many images it may store, or unlimited. Default: its tier's: "
        + ", ".join(f"{tier} {tier.quota.images:,}" for tier in Tier)
        + ".",
        parser=_images,
    ),
]
UnfinishedOption = Annotated[
    int | None,
    option(
        "--max-unfinished",
        "N",
        "How many of its images may be unfinished while its lane has as many, or unlimited. Default: unlimited.",
        parser=_images,
    ),
]
VisibilityOption = Annotated[
    Visibility | None,
    option("--visibility", "V", "Who may see its images by CloudFront, unless an upload says otherwise."),
]
ViewerOption = Annotated[
    ViewerCache | None,
    option("--viewer-cache", "TIME", "How long browsers may keep its pictures, also after a deletion: day or year."),
]
_LANES_HELP = " ".join(f"{tier}: the {lane_for(tier).name} lane." for tier in Tier)


@app.command()
def add(
    *,
    tenant: TenantArgument,
    tier: Annotated[Tier, typer.Option(help=_LANES_HELP)] = Tier.FREE,
    requests_per_second: RateOption = None,
    burst: BurstOption = None,
    max_stored: StoredOption = None,
    max_images: ImagesOption = None,
    visibility: VisibilityOption = None,
    viewer_cache: ViewerOption = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Add a tenant. It has no key yet."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.add(
        reach(stack, region),
        tenant,
        tier=tier,
        requests_per_second=requests_per_second,
        burst=burst,
        max_stored_bytes=max_stored,
        max_images=max_images,
        visibility=visibility,
        viewer_seconds=None if viewer_cache is None else viewer_cache.seconds,
    )


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the tenants, with their tiers, limits and keys, and what they store of what they may."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

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
    max_stored: StoredOption = None,
    max_images: ImagesOption = None,
    max_unfinished: UnfinishedOption = None,
    visibility: VisibilityOption = None,
    viewer_cache: ViewerOption = None,
    usual_limits: Annotated[
        bool, typer.Option("--usual-limits", help="Remove its own limits: its tier's apply again.")
    ] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Change a tenant's tier or limits, or who sees its images."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    is_given = any(limit is not None for limit in (requests_per_second, burst, max_stored, max_images, max_unfinished))
    if usual_limits and is_given:
        raise typer.BadParameter("it removes what the other options set.", param_hint="--usual-limits")
    if not (tier or is_given or usual_limits or visibility or viewer_cache):
        raise typer.BadParameter("say what to change: --tier, a limit, --usual-limits, --visibility or --viewer-cache.")
    work.change(
        reach(stack, region),
        tenant,
        tier=tier,
        requests_per_second=requests_per_second,
        burst=burst,
        max_stored_bytes=max_stored,
        max_images=max_images,
        max_unfinished=max_unfinished,
        visibility=visibility,
        viewer_seconds=None if viewer_cache is None else viewer_cache.seconds,
        usual_limits=usual_limits,
    )


def lane_named(text: str) -> str:
    """The named lane. Raises typer.BadParameter."""
    if text not in LANES:
        raise typer.BadParameter(f"{display.printable(text)!r} is not one of: {', '.join(LANES)}.")
    return text


@app.command()
def move(
    *,
    tenant: TenantArgument,
    lane: Annotated[str, typer.Argument(metavar="LANE", help=f"{', '.join(LANES)}.", callback=lane_named)],
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Move a tenant to another lane, whatever its tier; its tier's lane ends that.

    What it asks for from now on goes there. Images that are in work stay where
    they are, and its limits remain its tier's.
    """
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.move(reach(stack, region), tenant, lane)


@app.command()
def recount(*, yes: YesOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """Count what all tenants store from their images, and correct what is counted.

    It reads every row. Needed once after an update from a version that did not
    count, and after events were lost.
    """
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.recount(reach(stack, region), yes=yes)


@app.command()
def enlist(*, yes: YesOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """Add images that an earlier version accepted to the index by which images are listed.

    It reads every row. Needed once after an update from a version without that
    index, before a deployment with NewestIndex=removed.
    """
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.enlist(reach(stack, region), yes=yes)


@app.command()
def erase(
    *,
    tenants: Annotated[
        list[str], typer.Argument(metavar="TENANT", help="The tenants' names.", callback=_tenants_named)
    ],
    yes: YesOption = False,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Erase tenants with all their images and keys, and tell what is left until when.

    Their requests are refused from the beginning. It may be interrupted and
    repeated. [bold]docs/privacy.md[/bold] says what is stored where.
    """
    from darkroom_cli.tenants import erase as erasing  # noqa: PLC0415

    where = reach(stack, region)
    if yes:
        erasing.erase(where, tenants, as_json=as_json)
    else:
        erasing.tell(where, tenants)


@app.command("on-request")
def on_request(
    *,
    tenant: TenantArgument,
    instructions: Annotated[
        str, typer.Argument(help='w_320,w_640,card=w_400-h_300-f_cover. A name left out is given up; "" allows none.')
    ],
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Allow the variants of its public images that viewers may have made."""
    from darkroom.domain.edge.instructions import allowed_by  # noqa: PLC0415
    from darkroom_cli.tenants import work  # noqa: PLC0415

    try:
        allowed_by(instructions)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    work.set_on_request(reach(stack, region), tenant, instructions)


@app.command("import-from")
def import_from(
    *,
    tenant: TenantArgument,
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PLACE]...", help="s3://bucket/ or s3://bucket/folder/. Those left out are given up."),
    ] = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Register the places in buckets whose files a tenant's imports may name.

    The stack's parameter [bold]ImportBuckets[/bold] lets it read them.
    """
    from darkroom.domain.imports.bucket_files import place_of  # noqa: PLC0415
    from darkroom_cli.tenants import work  # noqa: PLC0415

    try:
        registered = tuple(dict.fromkeys(place_of(place) for place in places or ()))
    except ValueError as error:
        raise typer.BadParameter(display.printable(str(error))) from error
    work.set_import_from(reach(stack, region), tenant, registered)


@app.command("variant-key")
def variant_key(
    *,
    tenant: TenantArgument,
    secret: Annotated[str, typer.Argument(help="The output VariantKey of the stack of extensions/delivery.yaml.")],
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Print the key with which a tenant's servers sign other variants of its public images."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.print_variant_key(reach(stack, region), tenant, secret)


@app.command()
def suspend(*, tenant: TenantArgument, stack: StackOption = None, region: RegionOption = None) -> None:
    """Refuse all requests of a tenant. What it sent before is still developed."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.set_state(reach(stack, region), tenant, TenantState.SUSPENDED)


@app.command()
def resume(*, tenant: TenantArgument, stack: StackOption = None, region: RegionOption = None) -> None:
    """Answer a suspended tenant's requests again."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.set_state(reach(stack, region), tenant, TenantState.ACTIVE)
