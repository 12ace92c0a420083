"""`darkroom variants add` and `darkroom edit`: more variants of an image, and others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

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


EDIT_EPILOG = """[bold]Examples[/bold]

  ./darkroom edit 01h2xcejqtf2nbrexx3vqjhp41 --crop 0.1,0,0.8,1 --rotate 90
  ./darkroom edit 01h2xcejqtf2nbrexx3vqjhp41 --focus 0.4,0.3 --wait
  ./darkroom edit 01h2xcejqtf2nbrexx3vqjhp41       [dim]takes all edits back[/dim]

[bold]Exit status[/bold]

  0    it is accepted (with --wait: its variants are made)
  1    it is refused or (with --wait) has failed: standard error says why
  2    the command was not understood, or the recipe is invalid
  130  interrupted; what was accepted will be made"""


def edit(
    *,
    image_id: ImageIdArgument,
    crop: Annotated[
        str | None, option("--crop", "X,Y,W,H", "The part to show, in fractions of the upright picture.")
    ] = None,
    focus: Annotated[str | None, option("--focus", "X,Y", "The point that crops to a shape keep.")] = None,
    rotate: Annotated[int | None, option("--rotate", "DEGREES", "Clockwise: 0, 90, 180 or 270.")] = None,
    flip: Annotated[
        Literal["none", "horizontal", "vertical", "both"] | None, typer.Option("--flip", help="Mirror it.")
    ] = None,
    recipe_file: Annotated[
        Path | None, option("--recipe", "PATH", "A JSON file with other variants than those of the upload.")
    ] = None,
    key: Annotated[str | None, option("--idempotency-key", "K", "The same key and edits are the same edit.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is made or has failed.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Crop, turn or focus an image, in the place of all earlier edits.

    What is left out is as the image was uploaded. All present variants can be
    fetched meanwhile. An edit that is not begun is skipped for this one.
    """
    try:
        recipe = order_of(None, None, recipe_file).fields.get("recipe")
    except NoOrder as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    edits: dict[str, Any] = {
        "crop": _numbers(crop, "--crop", ("x", "y", "width", "height")),
        "focus": _numbers(focus, "--focus", ("x", "y")),
        "rotate": rotate,
        "flip": flip,
        "recipe": recipe,
    }
    ask_for_work(
        resolve(url, api_key, iam),
        lambda api: api.edit(
            image_id, {name: value for name, value in edits.items() if value is not None}, idempotency_key=key
        ),
        wait_seconds=timeout_seconds if wait else None,
    )


def _numbers(text: str | None, name: str, fields: tuple[str, ...]) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        return dict(zip(fields, map(float, text.split(",")), strict=True))
    except ValueError as error:
        message = f"Write {len(fields)} numbers with commas: {','.join(fields)}."
        raise typer.BadParameter(message, param_hint=name) from error
