"""`darkroom status`, `download`, `ls`, `visibility`, `redo` and `rm`: commands on accepted images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from darkroom.domain.kernel.visibility import Visibility
from darkroom_cli.images import by_id, pages
from darkroom_cli.images.download import save_variants
from darkroom_cli.images.ids import checked_image_id, ids_of
from darkroom_cli.images.watch import followed
from darkroom_cli.options import JsonOption, duration, option
from darkroom_cli.stack.target import (
    ApiKeyOption,
    ApiTarget,
    IamOption,
    RegionOption,
    StackOption,
    UrlOption,
    reach,
    resolve,
)
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, StatusAnswer

STATUS_EPILOG = """[bold]Examples[/bold]

  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --wait
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --json

[bold]Exit status[/bold]

  0    it is done, or on its way
  1    it failed, was deleted, is unknown, or (with --wait) took too long
  2    the command was not understood
  130  interrupted"""

DOWNLOAD_EPILOG = """[bold]Examples[/bold]

  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 -o photos
  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 -o photos --wait
  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 --variant webp

[bold]Exit status[/bold]

  0    every file is saved
  1    the image is not done, or a file differs or could not be fetched
  2    the command was not understood
  130  interrupted"""

VISIBILITY_EPILOG = """[bold]Examples[/bold]

  ./darkroom visibility 01h2xcejqtf2nbrexx3vqjhp41 public --wait
  ./darkroom visibility 01h2xcejqtf2nbrexx3vqjhp41 private

[bold]Exit status[/bold]

  0    it will be so (with --wait: it is)
  1    it is refused or (with --wait) has failed: standard error says why
  2    the command was not understood
  130  interrupted; what was accepted will be done"""

LS_EPILOG = """[bold]Examples[/bold]

  ./darkroom ls                               [dim]the newest fifty of the last day[/dim]
  ./darkroom ls --status failed --status pending --since 2h
  ./darkroom ls --cause KeyError --tenant acme
  ./darkroom ls --reference order-17 --since 90d
  ./darkroom ls --late                        [dim]those that have waited longest first[/dim]
  ./darkroom ls --tenant acme --json | jq -r '.images[].id' | ./darkroom rm -

[bold]Exit status[/bold]

  0    it worked, whether or not there are such images
  1    it failed: standard error says why and what to do
  2    the command was not understood
  130  interrupted"""

RM_EPILOG = """[bold]Examples[/bold]

  ./darkroom rm 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom rm - < ids.txt

[bold]Exit status[/bold]

  0    every image is deleted, or was before
  1    at least one is not: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted; what was deleted is deleted"""

REDO_EPILOG = """[bold]Examples[/bold]

  ./darkroom redo 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom redo - < ids.txt

[bold]Exit status[/bold]

  0    every image has begun its next run
  1    at least one has not: standard error says why
  2    the command was not understood; nothing was done
  130  interrupted; what was done is done"""

ImageIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="An image's id, as `upload` printed it.", callback=checked_image_id)
]
WaitTimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout-seconds", metavar="N", min=0, help="With --wait: stop waiting after N seconds; 0 waits forever."
    ),
]


def status(
    *,
    image_id: ImageIdArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the image is done or has failed.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    as_json: Annotated[bool, typer.Option("--json", help="Print the status document as the API gives it.")] = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Show the status of an image.

    It shows the variants with their sizes, or why the image failed, and what to
    do next.
    """
    target = resolve(url, api_key, iam)
    out = display.output()
    with target.open() as api:
        document = followed(api, image_id, timeout_seconds=timeout_seconds) if wait else api.status(image_id).document
    if as_json:
        display.print_json(document)
    else:
        pages.show_status(out, document, options=target.options)
    if document["status"] in ("failed", "expired"):
        raise typer.Exit(1)


def download(
    *,
    image_id: ImageIdArgument,
    folder: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="The folder for the files; created if it does not exist."),
    ] = Path(),
    names: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="NAME", help="Only this variant; may be given several times."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the image is done.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name that differ.")] = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Save an image's variants as NAME.EXT.

    Every file is checked against the size and SHA-256 in the status document,
    and is saved completely or not at all. An existing file is kept if it is the
    same; a different one is replaced only with --force.
    """
    target = resolve(url, api_key, iam)
    with target.open() as api:
        document = followed(api, image_id, timeout_seconds=timeout_seconds) if wait else api.status(image_id).document
        if document["status"] != "done":
            raise ApiError(pages.why_no_files(document, target.options))
        out = display.output()
        files = save_variants(api, document, folder, names=tuple(names or ()), force=force)
        pages.show_files(out, document, files)


def ls(
    *,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="S", help="Only these: failed, pending, …; may be given several times."),
    ] = None,
    tenant: Annotated[str | None, option("--tenant", "ID", "Only this tenant's.")] = None,
    since: Annotated[
        str | None,
        option(
            "--since",
            "D",
            "Accepted no longer ago than D: 30m, 6h, 7d. Default: 1d; with --late, whenever.",
            callback=duration,
        ),
    ] = None,
    reference: Annotated[str | None, option("--reference", "R", "Only with this reference of their client.")] = None,
    tag: Annotated[str | None, option("--tag", "T", "Only with this tag of their client.")] = None,
    cause: Annotated[
        str | None,
        option("--cause", "C", "Only these: an error's code, or the latest attempt's exception (KeyError)."),
    ] = None,
    late: Annotated[
        bool,
        typer.Option("--late", help="Only those unfinished for longer than their lane's service level, oldest first."),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="At most N images.")] = 50,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List images of all tenants, newest first: their status, attempts and causes.

    It also shows those that failed and are still retried, with the exception of
    the latest attempt. It reads every row that was accepted since then; with
    --late only those that wait.
    """
    from darkroom.domain.images.image import Status  # noqa: PLC0415
    from darkroom_cli.images import listing  # noqa: PLC0415 - what talks to AWS takes half a second to import

    unknown = sorted(set(statuses or ()) - set(Status))
    if unknown:
        raise typer.BadParameter(
            f"{display.printable(unknown[0])!r} is none of {', '.join(Status)}.", param_hint="--status"
        )
    chosen = reach(stack, region)
    seconds = seconds_of(since or (None if late else "1d"))
    filters = listing.ImageFilters(
        since=0 if seconds is None else chosen.clock() - round(1000 * seconds),
        tenant_id=tenant,
        statuses=frozenset(map(Status, statuses or ())),
        reference=reference,
        tag=tag,
        cause=cause,
        late=late,
    )
    listing.ls(chosen, filters, limit=limit, as_json=as_json)


def ask_for_work(target: ApiTarget, ask: Callable[[Darkroom], StatusAnswer], *, wait_seconds: float | None) -> None:
    """Asks for work beside an image, follows it for so long (0: forever; None: not at all) and shows the image; if the
    work has failed, so does the command."""
    with target.open() as api:
        accepted = ask(api)
        document = accepted.document
        if wait_seconds is not None:
            document = followed(api, accepted.image_id, timeout_seconds=wait_seconds)
    pages.show_status(display.output(), document, options=target.options)
    work = document.get("work")
    if work is not None and work["status"] == "failed":
        raise typer.Exit(1)


def visibility(
    *,
    image_id: ImageIdArgument,
    of_whom: Annotated[
        Visibility, typer.Argument(metavar="private|public|signed", help="Who sees it.", show_default=False)
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is so, or has failed.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Let everybody see a done image, those with a signed URL, or nobody.

    Its variants get other URLs; the former ones end. While other work on it
    is under way, the command waits for its turn.
    """
    target = resolve(url, api_key, iam)
    ask_for_work(
        target, lambda api: api.change_visibility(image_id, of_whom), wait_seconds=timeout_seconds if wait else None
    )


def rm(
    *,
    image_ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Images' ids; - reads them from standard input.", show_default=False),
    ],
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Delete images, through the API: what is not done is cancelled.

    Their originals and variants are removed; nothing brings them back.
    """
    by_id.remove(resolve(url, api_key, iam), ids_of(image_ids, sys.stdin))


def redo(
    *,
    image_ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Images' ids; - reads them from standard input.", show_default=False),
    ],
    rate: Annotated[int, typer.Option("--rate", metavar="N", min=1, max=500, help="At most N images per second.")] = 10,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Develop done images again, because a variant's object is gone.

    Each image gets a new run of five attempts. Its remaining variants can be
    fetched until the new run has replaced them, and even if that run fails.
    """
    from darkroom_cli.images import redo as work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    ids = ids_of(image_ids, sys.stdin)
    work.redo(reach(stack, region), ids, rate=rate)
