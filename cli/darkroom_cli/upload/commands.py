"""`darkroom upload`: sends photos, several at a time, and follows them until they are developed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from darkroom.domain.kernel.visibility import Visibility
from darkroom_cli.batches.ids import checked_batch_id
from darkroom_cli.options import option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from darkroom_cli.terminal import display
from darkroom_cli.upload import work
from darkroom_cli.upload.order import NoOrder, UploadOrder, metadata_in, order_of
from darkroom_cli.upload.photos import NoFile, Photo, files_named
from darkroom_cli.upload.sender import KeySource

EPILOG = """[bold]Examples[/bold]

  ./darkroom upload photo.jpg                 [dim]prints the image's id[/dim]
  id=$(./darkroom upload photo.jpg)           [dim]nothing but the id is on standard output[/dim]
  ./darkroom upload photo.jpg --wait          [dim]waits until it is developed, and lists the variants[/dim]
  ./darkroom upload holiday/ 'more/**/*.png'  [dim]a folder and a pattern[/dim]
  ./darkroom upload https://photos.example/harbour.jpg --wait
                                              [dim]the stack fetches it[/dim]
  ./darkroom upload photo.jpg --variants thumb,webp
  ./darkroom upload photo.jpg --recipe card.json
  ./darkroom upload photo.jpg --process-at 2027-03-01T09:00:00+01:00
  ./darkroom upload *.jpg --reference order-17 --tag shoes --tag 'summer 2027'
  ./darkroom upload *.jpg --batch "$(./darkroom batches create --parallelism 20)"
  ./darkroom upload *.jpg --wait --json > report.json
  DARKROOM_URL=https://abc123.execute-api.eu-west-1.amazonaws.com \\
    ./darkroom upload *.jpg --iam             [dim]to a stack deployed with Access=iam[/dim]

[bold]A recipe[/bold]

  {"variants": [{"name": "card", "width": 600, "height": 400, "fit": "cover"},
                {"name": "wide", "width": 1920, "height": 1920, "format": "avif"}]}

[bold]Exit status[/bold]

  0    every file was accepted (with --wait: and developed)
  1    something failed; standard error says what
  2    the command was not understood, or a FILE or the recipe is invalid;
       nothing was sent
  130  interrupted; what was accepted is listed, and will be developed"""


FilesArgument = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Photos, folders (searched for images), quoted patterns, or URLs."),
]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Follow the images until each has ended, then show the drain rate."),
]
PresetOption = Annotated[str | None, option("--preset", "P", "Which variants to make. Default: the stack's preset.")]
VariantsOption = Annotated[str | None, option("--variants", "A,B", "Only these variants of the preset. Default: all.")]
RecipeOption = Annotated[
    Path | None,
    option("--recipe", "PATH", "Instead of a preset: a JSON file with the variants to make (see below)."),
]
ProcessAtOption = Annotated[str | None, option("--process-at", "T", "Not before then: 2027-03-01T09:00:00+01:00.")]
DelayOption = Annotated[str | None, option("--delay", "D", "Not before this much time has passed: PT15M, P2D.")]
ExpiresAtOption = Annotated[
    str | None, option("--expires-at", "T", "Not after then: an image not begun by then expires.")
]
NotifyOption = Annotated[
    str | None, option("--notify", "ID", "Only this webhook hears of the images: we_… . Default: all webhooks.")
]
ReferenceOption = Annotated[
    str | None, option("--reference", "R", "Your own name for the images, by which lists find them: an order's number.")
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="T", help="A word of yours, by which to filter lists; may be given several times."),
]
MetadataOption = Annotated[str | None, option("--metadata", "JSON", "An object of yours, given back with the status.")]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="How many files to send at a time.")
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout-seconds",
        metavar="N",
        min=0,
        help="With --wait: stop waiting N seconds after the last file was sent; 0 waits forever.",
    ),
]
KeySourceOption = Annotated[
    KeySource,
    typer.Option(
        "--idempotency-key-from",
        help="random: every file becomes its own image, even if it was sent before. "
        "content: the same photo with the same preset or recipe is one image, however often you send it.",
    ),
]
ReuseOption = Annotated[
    bool,
    typer.Option(
        "--reuse",
        help="The same photo with the same preset or recipe is the image that --reuse has made of it, until it is "
        "deleted. For files, without --idempotency-key-from.",
    ),
]
VisibilityOption = Annotated[
    Visibility | None,
    option("--visibility", "V", "Who may see it by CloudFront: private, public, signed. Default: the tenant's."),
]
BatchOption = Annotated[
    str | None,
    option(
        "--batch",
        "ID",
        "The open batch that they join, as `batches create` prints it.",
        callback=checked_batch_id,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document at the end, and no ids: files, their images, a summary."),
]


def command(
    *,
    arguments: FilesArgument,
    wait: WaitOption = False,
    preset: PresetOption = None,
    variants: VariantsOption = None,
    recipe_file: RecipeOption = None,
    process_at: ProcessAtOption = None,
    delay: DelayOption = None,
    expires_at: ExpiresAtOption = None,
    notify: NotifyOption = None,
    reference: ReferenceOption = None,
    tags: TagOption = None,
    metadata: MetadataOption = None,
    visibility: VisibilityOption = None,
    batch: BatchOption = None,
    concurrency: ConcurrencyOption = 8,
    timeout_seconds: TimeoutOption = 900,
    key_source: KeySourceOption = KeySource.RANDOM,
    reuse: ReuseOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Send photos to be developed.

    Prints a line for each file: the image's id, then the file. Into a pipe, a
    variable or a file it prints the ids alone, one per line; everything else is
    on standard error. A file that is refused is reported with the reason and
    does not stop the others. A file of more than 4 MB goes straight to the
    stack's storage. A URL is fetched by the stack: with --wait the command says
    what came of it.

    A request that fails or finds a busy stack is retried after growing pauses.
    That never makes a second image: they carry one Idempotency-Key, or reuse it.
    """
    order = replace(
        _what_to_make(preset, variants, recipe_file, metadata),
        process_at=process_at,
        delay=delay,
        expires_at=expires_at,
        notify=notify,
        reference=reference,
        tags=",".join(tags) if tags else None,
        visibility=visibility,
        batch=batch,
        on_duplicate=_on_duplicate(reuse, key_source),
    )
    target = resolve(url, api_key, iam)
    work.upload(
        target,
        _files(arguments),
        order,
        key_source=key_source,
        concurrency=concurrency,
        wait=wait,
        timeout_seconds=timeout_seconds,
        as_json=as_json,
    )


def _on_duplicate(reuse: bool, key_source: KeySource) -> Literal["reuse"] | None:
    if reuse and key_source is KeySource.CONTENT:
        raise typer.BadParameter("leave out --idempotency-key-from: no key is sent.", param_hint="--reuse")
    return "reuse" if reuse else None


def _files(arguments: list[str]) -> list[Photo]:
    try:
        return files_named(arguments)
    except NoFile as error:
        raise typer.BadParameter(display.printable_lines(str(error)), param_hint="FILE") from error


def _what_to_make(
    preset: str | None, variants: str | None, recipe_file: Path | None, metadata: str | None
) -> UploadOrder:
    try:
        return replace(order_of(preset, variants, recipe_file), metadata=metadata_in(metadata))
    except NoOrder as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
