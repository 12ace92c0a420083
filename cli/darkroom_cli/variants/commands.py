"""`darkroom variants add`: more variants of images that are done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from darkroom_cli.images.commands import ImageIdArgument, WaitTimeoutOption, ask_for_work
from darkroom_cli.options import option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from darkroom_cli.upload.order import NoOrder, order_of

app = typer.Typer(help="Add variants to images that are done.", no_args_is_help=True)

ADD_EPILOG = """[bold]Examples[/bold]

  ./darkroom variants add 01h2xcejqtf2nbrexx3vqjhp41 --recipe hero.json
  ./darkroom variants add 01h2xcejqtf2nbrexx3vqjhp41 --preset avatar --variants small --wait

[bold]Exit status[/bold]

  0    they will be made (with --wait: they are)
  1    they are refused or (with --wait) have failed: standard error says why
  2    the command was not understood, or the recipe is invalid
  130  interrupted; what was accepted will be made"""


@app.command(epilog=ADD_EPILOG)
def add(
    *,
    image_id: ImageIdArgument,
    preset: Annotated[str | None, option("--preset", "P", "Its variants.")] = None,
    variants: Annotated[str | None, option("--variants", "A,B", "Only these variants of the preset.")] = None,
    recipe_file: Annotated[
        Path | None, option("--recipe", "PATH", "Instead of a preset: a JSON file with the variants to make.")
    ] = None,
    key: Annotated[
        str | None, option("--idempotency-key", "K", "The same key and request add the same variants once.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until they are made or have failed.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Make more variants of a done image, or others of the same names.

    All present variants can be fetched meanwhile, and the image stays done
    whatever comes of these. While other work on it is under way, the command
    waits for its turn.
    """
    try:
        order = order_of(preset, variants, recipe_file)
    except NoOrder as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    if not order.fields:
        raise typer.BadParameter("Say which variants to make.", param_hint="--recipe or --preset")
    target = resolve(url, api_key, iam)
    ask_for_work(
        target,
        lambda api: api.add_variants(image_id, order.fields, idempotency_key=key),
        wait_seconds=timeout_seconds if wait else None,
    )
