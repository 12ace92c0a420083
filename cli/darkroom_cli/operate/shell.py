"""The page's files, read from their folders at each request: an edit shows at the next reload."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from darkroom.http.page.page import shell_with
from darkroom_client.client import ApiError

_INDEX = "index.html"

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


class Shell:
    """The page in a folder, with what further folders add to it. Raises ApiError if it is not there."""

    def __init__(self, *folders: Path) -> None:
        # Served are these paths and no others, so that none leads out of the folders.
        self._files = {
            file.relative_to(folder).as_posix(): file
            for folder in folders
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.suffix in _MEDIA_TYPES
        }
        if _INDEX not in self._files:
            raise ApiError(f"The page's files are not in {folders[0]}: run this from a whole checkout of Darkroom.")
        content = sha256()
        for path, file in self._files.items():
            content.update(f"{path}\0".encode() + sha256(file.read_bytes()).digest())
        self.tree = content.hexdigest()[:16]

    def index(self, settings: Mapping[str, Any]) -> bytes:
        """The page with its settings."""
        # The hash first: a setting may hold what looks like its place.
        return shell_with(self._files[_INDEX].read_bytes().replace(b"{tree}", self.tree.encode()), settings)

    def file(self, path: str) -> tuple[bytes, str] | None:
        """A file's bytes and media type; None if there is no such file."""
        file = self._files.get(path)  # guard: operate-path-confinement
        if file is None or path == _INDEX:
            return None
        try:
            return file.read_bytes(), _MEDIA_TYPES[file.suffix]
        except FileNotFoundError:  # it was removed since
            return None
