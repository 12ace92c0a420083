"""The headers that a command line names for a webhook: as they are, in a file, or on standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from darkroom_cli.terminal import display


def headers_of(shown: Sequence[str], secret: Sequence[str]) -> list[dict[str, Any]]:
    """The headers as the API takes them. `Authorization` is secret however it is named, and no message repeats a value.
    Raises BadParameter."""
    # guard: cli-authorization-header-secret
    visible = [(name, value, name.lower() == "authorization") for name, value in _read(shown)]
    hidden = [(name, value, True) for name, value in _read(secret)]
    return [{"name": name, "value": value, "secret": is_secret} for name, value, is_secret in (*visible, *hidden)]


def _read(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        for line in _lines(text):
            name, colon, value = line.partition(":")
            if not colon:
                raise typer.BadParameter("A header is written as 'Name: value', or is in a file: @FILE, - for stdin.")
            yield name.strip(), value.strip()


def _lines(text: str) -> list[str]:
    if text in ("-", "@-"):
        return [line for line in sys.stdin.read().splitlines() if line.strip()]
    if not text.startswith("@"):
        return [text]
    try:
        content = Path(text[1:]).expanduser().read_text()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise typer.BadParameter(f"{display.printable(text[1:])} cannot be read: {reason}") from error
    return [line for line in content.splitlines() if line.strip()]
