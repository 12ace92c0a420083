"""`darkroom upload-tokens create`: a token with which one browser uploads."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from darkroom_cli.terminal import display
from darkroom_cli.upload.commands import (
    MetadataOption,
    NotifyOption,
    PresetOption,
    RecipeOption,
    ReferenceOption,
    TagOption,
    VariantsOption,
    VisibilityOption,
)
from darkroom_cli.upload.order import NoOrder, metadata_in, order_of

app = typer.Typer(help="Make tokens with which browsers upload.", no_args_is_help=True)

CREATE_EPILOG = """[bold]Examples[/bold]

  ./darkroom upload-tokens create --preset avatar --expires-in PT15M
  ./darkroom upload-tokens create --count 20 --tag album --origin https://shop.example.com

[bold]Exit status[/bold]

  0    the token is on standard output
  1    it was refused: standard error says why
  2    the command was not understood, or the recipe is invalid"""


@app.command(epilog=CREATE_EPILOG)
def create(
    *,
    expires_in: Annotated[
        str | None, option("--expires-in", "D", "How long it is valid: PT15M, at most P1D. Default: PT1H.")
    ] = None,
    count: Annotated[int | None, option("--count", "N", "For so many images. Default: one.")] = None,
    max_bytes: Annotated[
        int | None, option("--max-bytes", "N", "The most bytes of each. Default: what the stack takes.")
    ] = None,
    origins: Annotated[
        list[str] | None,
        option("--origin", "URL", "Only for scripts of this website; may be repeated. No security boundary."),
    ] = None,
    preset: PresetOption = None,
    variants: VariantsOption = None,
    recipe_file: RecipeOption = None,
    notify: NotifyOption = None,
    reference: ReferenceOption = None,
    tag: TagOption = None,
    metadata: MetadataOption = None,
    visibility: VisibilityOption = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Make a token with which one browser uploads images.

    They are developed as these options say, and the browser can ask for
    their status and nothing else. The token ends with the API key.
    """
    try:
        order = replace(
            order_of(preset, variants, recipe_file),
            notify=notify,
            reference=reference,
            tags=",".join(tag) if tag else None,
            metadata=metadata_in(metadata),
            visibility=visibility,
        )
    except NoOrder as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    terms = {"expires_in": expires_in, "count": count, "max_bytes": max_bytes, "origins": origins or None}
    stated: dict[str, Any] = {name: value for name, value in terms.items() if value is not None}
    with resolve(url, api_key, iam).open() as api:
        made = api.create_upload_token(**stated, **order.fields)
    display.print_json(made) if as_json else typer.echo(made["token"])
