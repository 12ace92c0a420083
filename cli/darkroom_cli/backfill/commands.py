"""`darkroom backfill`: have images that an earlier version of a preset made developed again by its present one."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.instants import milliseconds

_HELP = """Have images that an earlier version of a preset made developed again by its present one.

They stay done meanwhile, and their work is in the lane bulk, which takes what live traffic leaves.
Deploy the preset's new version first.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom backfill start --preset standard@2          [dim]what that would do[/dim]
  ./darkroom backfill start --preset standard@2 --tenant acme --rate 20 --yes
  ./darkroom backfill show ID                            [dim]how far it is, and what it waits for[/dim]
  ./darkroom backfill pause ID

[bold]Exit status[/bold]

  0    it worked, or it was so already
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def preset_of(text: str) -> str:
    """A preset and a version of it, `standard@2`. Raises typer.BadParameter."""
    # Only here: a preset that is edited wrongly fails the import, and no other command.
    from darkroom.domain.recipes.presets import VERSIONS  # noqa: PLC0415

    match = re.fullmatch(r"(\w+)@([1-9][0-9]{0,8})", text, re.ASCII)
    if match is None or match[1] not in VERSIONS:
        known = ", ".join(f"{name}@{version}" for name, version in VERSIONS.items())
        raise typer.BadParameter(f"{display.printable(text)!r} is no preset with its version, as {known}.")
    if not 1 < int(match[2]) <= VERSIONS[match[1]]:
        raise typer.BadParameter(
            f"{match[1]} has version {VERSIONS[match[1]]} in this checkout, and nothing is older than version 1: "
            "raise the version, deploy it, and name it here."
        )
    return text


def _done(status: str) -> str:
    if status != "done":  # guard: bulk-backfill-done-alone
        raise typer.BadParameter(
            "only what is done can be backfilled. Replay what failed: ./darkroom dlq replay --help."
        )
    return status


PresetOption = Annotated[
    str, option("--preset", "NAME@VERSION", "Images of an earlier version of this preset.", callback=preset_of)
]
StatusOption = Annotated[str, option("--status", "STATUS", "done, which is all that can be chosen.", callback=_done)]
SinceOption = Annotated[
    int | None, option("--since", "TIME", "Only images accepted from then on.", parser=milliseconds)
]
UntilOption = Annotated[int | None, option("--until", "TIME", "Only images accepted before then.", parser=milliseconds)]
TagOption = Annotated[str | None, option("--tag", "TAG", "Only images with this tag.")]
TenantOption = Annotated[str | None, option("--tenant", "TENANT", "Only images of this tenant.")]
RateOption = Annotated[
    int | None, option("--rate", "N", "At most so many images per second; by default what the lane takes.", min=1)
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The backfill's id.", show_default=False)]


@app.command("start")
def start(
    *,
    preset: PresetOption,
    status: StatusOption = "done",
    since: SinceOption = None,
    until: UntilOption = None,
    tag: TagOption = None,
    tenant: TenantOption = None,
    rate: RateOption = None,
    yes: YesOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Start a backfill of the images that are done; those that failed are replayed: darkroom dlq replay."""
    from darkroom_cli.backfill import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    selection = work.selection_of(preset, since=since, until=until, tag=tag, tenant=tenant)
    work.start(reach(stack, region), selection, rate=rate, yes=yes)


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List all backfills, the newest first."""
    from darkroom_cli.backfill import work  # noqa: PLC0415

    work.list_(reach(stack, region), as_json=as_json)


@app.command("show")
def show(
    backfill_id: IdArgument, *, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None
) -> None:
    """Show how far a backfill is, and what it waits for."""
    from darkroom_cli.backfill import work  # noqa: PLC0415

    work.show(reach(stack, region), backfill_id, as_json=as_json)


@app.command("pause")
def pause(backfill_id: IdArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Have it begin nothing more for a while; what is begun ends."""
    from darkroom_cli.backfill import work  # noqa: PLC0415

    work.decide(reach(stack, region), backfill_id, "paused")


@app.command("resume")
def resume(backfill_id: IdArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Let it go on."""
    from darkroom_cli.backfill import work  # noqa: PLC0415

    work.decide(reach(stack, region), backfill_id, "running")


@app.command("cancel")
def cancel(backfill_id: IdArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """End it: nothing more is begun, and what is begun or done stays."""
    from darkroom_cli.backfill import work  # noqa: PLC0415

    work.decide(reach(stack, region), backfill_id, "cancelled")
