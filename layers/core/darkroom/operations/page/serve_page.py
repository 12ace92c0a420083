"""Finds the file of the page that a path names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROOT = "/app/"
"""The path of the shell, which loads all other files."""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file as it is served: its bytes are compressed with gzip."""

    media_type: str
    etag: str
    compressed: bytes


@dataclass(frozen=True, kw_only=True)
class WebPage:
    """The page: its shell, and all files by name. `tree` is the hash of them all, and a part of their paths."""

    tree: str
    shell: File
    files: Mapping[str, File]


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """What a path leads to; one that `is_final` has the hash of its content in its path, and never changes."""

    file: File
    is_final: bool


class Elsewhere(LookupError):
    """The page is at ROOT."""


class UnknownFile(LookupError):
    """There is no such file in this version of the page. An older version's shell may have asked for it."""


def serve_page(page: WebPage, path: str) -> FoundFile:
    """The file at a path. Raises Elsewhere and UnknownFile."""
    if path == ROOT:
        return FoundFile(file=page.shell, is_final=False)
    if path == ROOT.rstrip("/"):
        raise Elsewhere
    name = path.removeprefix(f"{ROOT}{page.tree}/")
    if name == path or name not in page.files:  # guard: page-own-version-files
        raise UnknownFile(path)
    return FoundFile(file=page.files[name], is_final=True)
