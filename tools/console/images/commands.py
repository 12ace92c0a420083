"""`darkroom status`, `download` and `redo`: commands on accepted images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from console.api.client import ApiError
from console.images import pages
from console.images.download import save_variants
from console.images.ids import checked_image_id, ids_of
from console.images.watch import followed
from console.stack.target import ApiKeyOption, IamOption, RegionOption, StackOption, UrlOption, reach, resolve
from console.terminal import display

STATUS_EPILOG = """[bold]Examples[/bold]

  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --wait
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --json

[bold]Exit status[/bold]

  0    it is done, or on its way
  1    it failed, was withdrawn, is unknown, or (with --wait) took too long
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
    from console.images import redo as work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    ids = ids_of(image_ids, sys.stdin)
    work.redo(reach(stack, region), ids, rate=rate)
