"""`darkroom import`: has the images fetched that a manifest lists, and shows how far that is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from darkroom.domain.bulk.batches import MAX_PARALLELISM, OnFailure
from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, UrlOption, resolve

EPILOG = """[bold]Examples[/bold]

  ./darkroom import manifest.csv              [dim]prints the import's id, and follows it[/dim]
  ./darkroom import manifest.jsonl --preset avatar --name catalogue
  ./darkroom import manifest.csv --no-wait    [dim]uploads it, and ends[/dim]
  ./darkroom batches wait ID                  [dim]until its images have ended[/dim]
  ./darkroom batches cancel ID --yes

[bold]A manifest[/bold]

  url,key,tags                                [dim]CSV: the first line names the columns[/dim]
  https://photos.example/1.jpg,order-1,shoes|new

  {"url": "https://photos.example/1.jpg", "tags": ["new"]}    [dim]JSON Lines[/dim]

[bold]Exit status[/bold]

  0    every row became an image, or its image was there
  1    a row was rejected, or the import failed or was cancelled: standard
       error says why; the images of other rows are made
  2    the command was not understood; nothing was sent
  130  interrupted; the import goes on once its manifest was uploaded"""


class _Format(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


def command(
    *,
    manifest: Annotated[
        Path, typer.Argument(metavar="MANIFEST", exists=True, dir_okay=False, help="A file with a row for each image.")
    ],
    file_format: Annotated[
        _Format | None, typer.Option("--format", help="Default: csv if the name ends in .csv, otherwise jsonl.")
    ] = None,
    preset: Annotated[str | None, option("--preset", "P", "Of rows that name none. Default: the stack's.")] = None,
    name: Annotated[str | None, option("--name", "TEXT", "Your own name for it.")] = None,
    parallelism: Annotated[
        int | None,
        option("--parallelism", "N", "At most N images are begun and not ended.", min=1, max=MAX_PARALLELISM),
    ] = None,
    on_failure: Annotated[
        OnFailure, typer.Option("--on-failure", help="stop: the first failed image ends the import and its batch.")
    ] = OnFailure.CONTINUE,
    notify: Annotated[
        str | None, option("--notify", "ID", "Only this webhook hears of its end: we_… . Default: all webhooks.")
    ] = None,
    key: Annotated[str | None, option("--idempotency-key", "K", "The same key and request make one import.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow it until all rows were read.")] = True,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Have images fetched from the URLs in a manifest.

    They are those of a batch with the import's id; the same row twice is one image.
    """
    from darkroom_cli.imports import work  # noqa: PLC0415 - what reads the API's documents takes a fifth of a second

    stated: dict[str, Any] = {
        "preset": preset,
        "name": name,
        "parallelism": parallelism,
        "on_failure": None if on_failure is OnFailure.CONTINUE else on_failure.value,
        "notify": notify,
        "file_format": None if file_format is None else file_format.value,
        "idempotency_key": key,
    }
    terms = {field: value for field, value in stated.items() if value is not None}
    work.run(resolve(url, api_key, iam), manifest, terms, wait=wait, as_json=as_json)
