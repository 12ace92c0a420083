"""`darkroom dlq`: lists what was given up and why, and replays it after the fix."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.dlq.filters import DeadLetterFilters
from darkroom_cli.options import JsonOption, YesOption, duration, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_client.client import IMAGE_ID_PATTERN

_HELP = """Dead letters: see what was given up and why; replay it after the fix.

Commands that change something only say what they would do until you add
[bold]--yes[/bold]. You can interrupt all of them and run them again.
"""

_EPILOG = """[bold]At three in the morning[/bold]

  ./darkroom dlq ls                        [dim]what was given up, and why[/dim]
  ./darkroom dlq show ID                   [dim]stacks, requests, the log to read[/dim]
  ./darkroom dlq replay --cause KeyError   [dim]what a replay would do[/dim]
  ./darkroom dlq replay --cause KeyError --yes
  ./darkroom dlq replay --all --lane slow --rate 50 --yes
  ./darkroom dlq drop --yes                [dim]every settled one[/dim]

[bold]Exit status[/bold]

  0    it worked, or there was nothing to do
  1    it failed: standard error says why and what to do
  2    the command was not understood
  130  interrupted; what was done is done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")

_VERDICTS = ("failed", "working", "settled", "unknown", "batch", "rejected", "unreadable", "unreadable_row")
_WHICH = "Which dead letters (default: all)"


def _image_id(text: str | None) -> str | None:
    if text is not None and IMAGE_ID_PATTERN.fullmatch(text.strip()) is None:
        raise typer.BadParameter(
            f"{display.printable(text)!r} is not an image id: an id is 26 digits and lower-case letters."
        )
    return text and text.strip()


def _verdict(text: str | None) -> str | None:
    if text is not None and text not in _VERDICTS:
        raise typer.BadParameter(f"{display.printable(text)!r} is not one of: {', '.join(_VERDICTS)}.")
    return text


LaneOption = Annotated[str | None, option("--lane", "L", "Only one lane: fast, slow, …", panel=_WHICH)]
CauseOption = Annotated[
    str | None,
    option(
        "--cause", "C", "An exception's type, as `ls` shows it, or an error code: internal, worker_lost.", panel=_WHICH
    ),
]
FingerprintOption = Annotated[
    str | None,
    option("--fingerprint", "F", "Only one defect: exception and place, as `ls` and `show` name it.", panel=_WHICH),
]
TenantOption = Annotated[str | None, option("--tenant", "T", "Only one tenant.", panel=_WHICH)]
ImageOption = Annotated[str | None, option("--image", "ID", "Only one image.", panel=_WHICH, callback=_image_id)]
VerdictOption = Annotated[
    str | None,
    option(
        "--verdict",
        "S",
        "failed, working, settled, unknown, batch, unreadable or rejected.",
        panel=_WHICH,
        callback=_verdict,
    ),
]
OlderOption = Annotated[
    str | None,
    option("--older-than", "D", "Sent more than D ago: 90s, 30m, 6h, 12d.", panel=_WHICH, callback=duration),
]
NewerOption = Annotated[
    str | None, option("--newer-than", "D", "Sent less than D ago.", panel=_WHICH, callback=duration)
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Read at most N dead letters per lane.")]

# Each command imports its work when it is called: the AWS code takes half a second to import, and other commands do not
# need it.


@app.command("ls")
def list_(
    *,
    lane: LaneOption = None,
    cause: CauseOption = None,
    fingerprint: FingerprintOption = None,
    tenant: TenantOption = None,
    image: ImageOption = None,
    verdict: VerdictOption = None,
    older_than: OlderOption = None,
    newer_than: NewerOption = None,
    limit: LimitOption = 1000,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List what was given up, and why, and what is still retried after a failure.

    It prints one line per run of an image; the last column counts the run's
    dead letters. Verdicts: failed can be replayed, settled can be dropped,
    working needs nothing, a batch of scheduled images can be woken again;
    unknown, unreadable and rejected do not belong to this stack.
    """
    from darkroom_cli.dlq import work  # noqa: PLC0415

    filters = DeadLetterFilters(
        lane=lane,
        cause=cause,
        fingerprint=fingerprint,
        tenant=tenant,
        image=image,
        verdict=verdict,
        older_than=older_than,
        newer_than=newer_than,
    )
    work.list_(reach(stack, region), filters, limit=limit, as_json=as_json)


@app.command()
def show(
    *,
    name: Annotated[str, typer.Argument(metavar="ID", help="An image's id, or a message's, as `ls` shows it.")],
    limit: LimitOption = 10_000,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Show everything about one failure: each attempt's stack, the log to read.

    An image that is still retried has no dead letter yet: its row tells of the
    attempts that failed, and when the next one begins.
    """
    from darkroom_cli.dlq import work  # noqa: PLC0415

    work.show(reach(stack, region), name.strip(), limit=limit, as_json=as_json)


@app.command()
def replay(
    *,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Let SQS move whole lanes: fastest for many. Takes no filter except --lane."),
    ] = False,
    rate: Annotated[
        int, typer.Option("--rate", metavar="N", min=1, max=500, help="Replay at most N images per second.")
    ] = 10,
    yes: YesOption = False,
    lane: LaneOption = None,
    cause: CauseOption = None,
    fingerprint: FingerprintOption = None,
    tenant: TenantOption = None,
    image: ImageOption = None,
    older_than: OlderOption = None,
    newer_than: NewerOption = None,
    limit: LimitOption = 1000,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Develop again what was given up, after the fix.

    Each image gets a new run of five attempts, once, even if you interrupt this
    and run it again. With --image it works even if the dead letter is gone. An
    image that was rejected because of its file cannot be replayed.
    """
    from darkroom_cli.dlq import work  # noqa: PLC0415

    if everything and any((cause, fingerprint, tenant, image, older_than, newer_than)):
        raise typer.BadParameter("it moves all dead letters of a lane: no filter except --lane.", param_hint="--all")
    filters = DeadLetterFilters(
        lane=lane,
        cause=cause,
        fingerprint=fingerprint,
        tenant=tenant,
        image=image,
        older_than=older_than,
        newer_than=newer_than,
    )
    where = reach(stack, region)
    if not yes:
        work.preview_replay(where, filters, everything=everything, rate=rate, limit=limit)
    elif everything:
        work.replay_all(where, filters, rate=rate)
    else:
        work.replay(where, filters, rate=rate)


@app.command()
def drop(
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Also those not settled. A failed image can still be replayed by its id.")
    ] = False,
    yes: YesOption = False,
    lane: LaneOption = None,
    cause: CauseOption = None,
    fingerprint: FingerprintOption = None,
    tenant: TenantOption = None,
    image: ImageOption = None,
    verdict: VerdictOption = None,
    older_than: OlderOption = None,
    newer_than: NewerOption = None,
    limit: LimitOption = 1000,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Remove dead letters that are no longer needed.

    It removes only settled ones: done, deleted, rejected or replayed since.
    """
    from darkroom_cli.dlq import work  # noqa: PLC0415

    filters = DeadLetterFilters(
        lane=lane,
        cause=cause,
        fingerprint=fingerprint,
        tenant=tenant,
        image=image,
        verdict=verdict,
        older_than=older_than,
        newer_than=newer_than,
    )
    where = reach(stack, region)
    if yes:
        work.drop(where, filters, force=force)
    else:
        work.tell_drop(where, filters, force=force, limit=limit)


@app.command()
def archive(
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="D", help="Sent more than D ago.", callback=duration)
    ] = "12d",
    yes: YesOption = False,
    lane: LaneOption = None,
    limit: LimitOption = 10_000,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Copy dead letters to the archive bucket before SQS deletes them.

    A function of the stack does the same every six hours. Nothing is removed,
    and no dead letter is copied twice.
    """
    from darkroom_cli.dlq import work  # noqa: PLC0415

    filters = DeadLetterFilters(lane=lane, older_than=older_than)
    where = reach(stack, region)
    if yes:
        work.archive(where, filters)
    else:
        work.tell_archive(where, filters, limit=limit)
