"""Reads image ids from the command line and from standard input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import typer

from darkroom_cli.terminal import display
from darkroom_client.client import IMAGE_ID_PATTERN


def checked_image_id(text: str) -> str:
    """An image id from the command line."""
    image_id = text.strip()
    if IMAGE_ID_PATTERN.fullmatch(image_id) is None:
        raise typer.BadParameter(
            f"{display.printable(text)!r} is not an image id: an id is 26 digits and lower-case letters."
        )
    return image_id


def ids_of(arguments: Sequence[str], stdin: IO[str]) -> list[str]:
    """The ids that were typed, each once; for "-" the first word of each line of standard input. Raises
    typer.BadParameter."""
    return list(dict.fromkeys(checked_image_id(text) for text in _texts(arguments, stdin)))


def _texts(arguments: Sequence[str], stdin: IO[str]) -> Iterator[str]:
    for argument in arguments:
        if argument == "-":
            yield from (words[0] for words in map(str.split, stdin) if words)
        else:
            yield argument
