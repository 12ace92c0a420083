"""`darkroom delay`: lists, reschedules and deletes scheduled images, one by one or a whole day."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, RegionOption, StackOption, UrlOption, reach, resolve

_HELP = """Scheduled images: list them, reschedule them or delete them.

Commands on single images use the API and act at once. Commands on a whole
day use the stack's own table, and only say what they would do until you add
[bold]--yes[/bold]. You can interrupt all of them and run them again.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom delay ls                          [dim]day by day[/dim]
  ./darkroom delay ls --day 2026-12-24 --zone Europe/Berlin
  ./darkroom delay ls --day 2026-12-24 --hour 9 --images
  ./darkroom delay reschedule ID --to 2026-12-27T09:00:00+01:00
  ./darkroom delay cancel ID ID
  ./darkroom delay reschedule --day 2026-12-24 --by 3d   [dim]what that would do[/dim]
  ./darkroom delay reschedule --day 2026-12-24 --by 3d --yes
  ./darkroom delay cancel --day 2026-12-24 --lane slow --yes
  ./darkroom delay stop                        [dim]before a stack is removed[/dim]

[bold]Exit status[/bold]

  0    it worked, or there was nothing to do
  1    it failed for at least one image: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")

_WHICH = "Which images (default: all that wait)"
_SINGLE = "Single images, through the API"
_DAY = "A whole day, in the stack itself"

_LANE_HELP = f"Only one lane: {', '.join(LANES)}."
_ZONE_HELP = "The time zone of days and hours, as Europe/Berlin. Default: UTC."
_HOUR_HELP = "With --day: one of its hours, 0 to 23."

IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Images' ids, as `upload` printed them; - reads them from standard input."),
]
DayOption = Annotated[str | None, option("--day", "D", "All images of that day.", panel=_DAY)]
HourOption = Annotated[str | None, option("--hour", "H", _HOUR_HELP, panel=_DAY)]
LaneOption = Annotated[str | None, option("--lane", "L", _LANE_HELP, panel=_DAY)]
TenantOption = Annotated[str | None, option("--tenant", "T", "Only one tenant.", panel=_DAY)]
ImageOption = Annotated[
    list[str] | None, option("--image", "ID", "Only this image of the day; may be repeated.", panel=_DAY)
]
ZoneOption = Annotated[str | None, option("--zone", "Z", _ZONE_HELP, panel=_DAY)]
RateOption = Annotated[
    int | None, option("--rate", "N", "At most N images per second. Default: 50.", min=1, max=500, panel=_DAY)
]


YesOption = Annotated[
    bool, typer.Option("--yes", rich_help_panel=_DAY, help="Do it. Without it: say what would be done.")
]


@app.command("ls")
def list_(
    *,
    day: Annotated[str | None, option("--day", "D", "One day, hour by hour.", panel=_WHICH)] = None,
    hour: Annotated[str | None, option("--hour", "H", _HOUR_HELP, panel=_WHICH)] = None,
    from_: Annotated[
        str | None, option("--from", "T", "From that day or time on: 2026-12-24, 2026-12-24T18:00.", panel=_WHICH)
    ] = None,
    to: Annotated[
        str | None, option("--to", "T", "Until the end of that day, or until that time.", panel=_WHICH)
    ] = None,
    lane: Annotated[str | None, option("--lane", "L", _LANE_HELP, panel=_WHICH)] = None,
    tenant: Annotated[
        str | None,
        option(
            "--tenant",
            "T",
            "With --day: only one tenant. The index has no tenants, so this reads every image's row.",
            panel=_WHICH,
        ),
    ] = None,
    zone: Annotated[str | None, option("--zone", "Z", _ZONE_HELP, panel=_WHICH)] = None,
    with_images: Annotated[
        bool, typer.Option("--images", help="Also list the images: the first 100; with --json up to --limit.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Read at most N images, the earliest.")
    ] = 1_000_000,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List what waits for its time, by day or by the hours of one day.

    It counts an index that is seconds behind the table: an image that was just
    scheduled or rescheduled may be missing or be counted twice. --images reads
    the rows themselves. A million images take half a minute and cost 0.1 cent.
    """
    from darkroom_cli.delay import work  # noqa: PLC0415
    from darkroom_cli.delay.choice import Choice  # noqa: PLC0415

    if tenant is not None and day is None:
        raise typer.BadParameter("it reads every image's row: name a --day.", param_hint="--tenant")
    choice = Choice(day=day, hour=hour, from_=from_, to=to, lane=lane, tenant=tenant, zone=zone)
    work.list_(reach(stack, region), choice, limit=limit, with_images=with_images, as_json=as_json)


@app.command()
def reschedule(
    *,
    arguments: IdsArgument = None,
    to: Annotated[str | None, option("--to", "T", "The new time: 2027-03-01T09:00:00+01:00.", panel=_SINGLE)] = None,
    delay: Annotated[
        str | None, option("--delay", "D", "The new time, from now: PT15M, P2D; PT0S is now.", panel=_SINGLE)
    ] = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
    day: DayOption = None,
    hour: HourOption = None,
    lane: LaneOption = None,
    tenant: TenantOption = None,
    image: ImageOption = None,
    zone: ZoneOption = None,
    by: Annotated[
        str | None,
        option("--by", "Nd", "How many days later, at the same time of day: 1d, 7d; -1d is earlier.", panel=_DAY),
    ] = None,
    rate: RateOption = None,
    yes: YesOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Move scheduled images to another time.

    Use ID... with --to or --delay; or --day with --by, which moves every image
    of that day that has not been begun, each once, even if you run it again. An
    image whose expires_at is before its new time stays where it is.
    """
    ids = arguments or []
    if not _is_a_day(
        day,
        ids,
        of_single_images={"--to": to, "--delay": delay, "--url": url, "--api-key": api_key, "--iam": iam},
        of_a_day={"--hour": hour, "--lane": lane, "--tenant": tenant, "--image": image, "--zone": zone, "--by": by}
        | {"--rate": rate, "--yes": yes, "--stack": stack, "--region": region},
    ):
        from darkroom_cli.images import by_id  # noqa: PLC0415
        from darkroom_cli.images.ids import ids_of  # noqa: PLC0415

        when = _new_time(to, delay)
        by_id.reschedule(resolve(url, api_key, iam), ids_of(ids, sys.stdin), when)
        return
    from darkroom_cli.delay import work  # noqa: PLC0415
    from darkroom_cli.delay.choice import Choice, days_of  # noqa: PLC0415
    from darkroom_cli.terminal.many import IMAGES_PER_SECOND  # noqa: PLC0415

    if by is None:
        raise typer.BadParameter("by how many days?", param_hint="--by")
    days, choice = (
        days_of(by),
        Choice(day=day, hour=hour, lane=lane, tenant=tenant, image=tuple(image or ()), zone=zone),
    )
    work.reschedule(reach(stack, region), choice, days=days, rate=rate or IMAGES_PER_SECOND, yes=yes)


def _new_time(to: str | None, delay: str | None) -> dict[str, str]:
    """The field of a request that says when, by the one option of the two that is given."""
    if to is not None and delay is None:
        return {"process_at": to}
    if delay is not None and to is None:
        return {"delay": delay}
    raise typer.BadParameter("say when, by one of the two.", param_hint="--to, --delay")


@app.command()
def cancel(
    *,
    arguments: IdsArgument = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
    day: DayOption = None,
    hour: HourOption = None,
    lane: LaneOption = None,
    tenant: TenantOption = None,
    image: ImageOption = None,
    zone: ZoneOption = None,
    rate: RateOption = None,
    yes: YesOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Delete scheduled images. This cannot be undone.

    Use ID...; or --day, which deletes every image of that day that has not been
    begun. Images that are being developed or done are left alone.
    """
    ids = arguments or []
    if not _is_a_day(
        day,
        ids,
        of_single_images={"--url": url, "--api-key": api_key, "--iam": iam},
        of_a_day={"--hour": hour, "--lane": lane, "--tenant": tenant, "--image": image, "--zone": zone}
        | {"--rate": rate, "--yes": yes, "--stack": stack, "--region": region},
    ):
        from darkroom_cli.images import by_id  # noqa: PLC0415
        from darkroom_cli.images.ids import ids_of  # noqa: PLC0415

        by_id.cancel(resolve(url, api_key, iam), ids_of(ids, sys.stdin))
        return
    from darkroom_cli.delay import work  # noqa: PLC0415
    from darkroom_cli.delay.choice import Choice  # noqa: PLC0415
    from darkroom_cli.terminal.many import IMAGES_PER_SECOND  # noqa: PLC0415

    choice = Choice(day=day, hour=hour, lane=lane, tenant=tenant, image=tuple(image or ()), zone=zone)
    work.cancel(reach(stack, region), choice, rate=rate or IMAGES_PER_SECOND, yes=yes)


def _is_a_day(
    day: str | None, ids: Sequence[str], *, of_single_images: Mapping[str, object], of_a_day: Mapping[str, object]
) -> bool:
    """Whether a whole day is meant, and not single images. An option of one that is given with the other is refused:
    the two may be about different stacks."""
    if (day is None) == (not ids):
        raise typer.BadParameter("give the ids of images, or a whole day with --day.", param_hint="ID, --day")
    wrong, why = (of_a_day, "it goes with --day.") if day is None else (of_single_images, "it goes with ids.")
    for flag, value in wrong.items():
        if value not in (None, False):
            raise typer.BadParameter(why, param_hint=flag)
    return day is not None


@app.command()
def stop(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without it: say what would be lost.")] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Stop all releases, before the stack is removed.

    A stack whose batches still wait cannot be removed, for up to a year. This
    takes two minutes and more. If you keep the stack after all, the sweeper
    sends what was held.
    """
    from darkroom_cli.delay import stopping  # noqa: PLC0415

    (stopping.stop if yes else stopping.tell)(reach(stack, region))
