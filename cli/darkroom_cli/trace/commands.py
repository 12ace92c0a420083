"""`darkroom trace`: draws the life of one image."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.images.ids import checked_image_id
from darkroom_cli.options import JsonOption
from darkroom_cli.stack.target import RegionOption, StackOption, reach

EPILOG = """[bold]Examples[/bold]

  ./darkroom trace ID
  ./darkroom trace ID --stack darkroom-prod --json

[bold]Exit status[/bold]

  0    the image was traced
  1    it was not: standard error says why and what to do
  2    the command was not understood
  130  interrupted"""


def command(
    *,
    image_id: Annotated[str, typer.Argument(metavar="ID", help="The image's id.", show_default=False)],
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Draw the life of one image: its request, what it waited for, each attempt,
    its events and their deliveries to webhooks.

    It reads the image's row and searches the logs of all functions from then
    until the image had ended, so for one that waited for weeks it takes a while.
    """
    from darkroom_cli.trace import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    work.trace(reach(stack, region), checked_image_id(image_id), as_json=as_json)
