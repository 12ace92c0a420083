"""Finds the files that the arguments of `upload` name, and takes URLs for what they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

# What to look for in a folder. A file that is named directly is sent whatever its name.
IMAGE_SUFFIXES = (".avif", ".gif", ".heic", ".heif", ".jfif", ".jpe", ".jpeg", ".jpg", ".png", ".webp")


type Photo = Path | str
"""A file, or the URL from which the stack fetches it."""

_SCHEMES = ("https://", "http://")  # the local stack fetches from this machine by http


class NoFile(Exception):
    """Some arguments name no file; the message says which and why."""


def files_named(arguments: Iterable[str]) -> list[Photo]:
    """Named files, URLs, images in folders (except hidden ones), and what patterns match; each as often as it is named.

    Raises NoFile, which describes every argument that names none.
    """
    files: list[Photo] = []
    problems: list[str] = []
    for argument in arguments:
        path = Path(argument)
        if argument.lower().startswith(_SCHEMES):
            files.append(argument)
        elif path.is_file():
            files.append(path)
        elif path.is_dir():
            images = sorted(_images_in(path))
            files += images
            if not images:
                problems.append(f"{argument}: no image in this folder (looked for {', '.join(IMAGE_SUFFIXES)})")
        elif os.path.lexists(path):
            problems.append(f"{argument}: not a regular file")
        elif glob.has_magic(argument):
            # Path.glob takes no absolute pattern.
            matches = [Path(match) for match in sorted(glob.glob(argument, recursive=True))]  # noqa: PTH207
            images = [match for match in matches if match.is_file()]
            files += images
            if not images:
                problems.append(f"{argument}: no file matches this pattern")
        else:
            problems.append(f"{argument}: there is no such file")
    if problems:
        raise NoFile("\n".join(problems))
    return files


def _images_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(parent, name)
            if not name.startswith(".") and file.suffix.lower() in IMAGE_SUFFIXES and file.is_file():
                yield file
