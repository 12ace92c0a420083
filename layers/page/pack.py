"""Packs the page: compresses each of its files, and puts all of them under one hash, which is part of their path.

    python pack.py SOURCES TARGET    writes TARGET/page

An HTTP API compresses nothing itself. The hash changes with any file, so that each of them may be kept for ever:
a shell always loads the files of its own version. In the shell, `{tree}` stands for the hash.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path

SHELL = "index.html"

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",  # licences
}


def pack(sources: Path, target: Path) -> None:
    """Writes the files and their index to `target`/page. Raises SystemExit if a file is of a kind that it does not
    know, or the shell lacks a place for the hash."""
    contents = {path.relative_to(sources).as_posix(): path.read_bytes() for path in _files_of(sources)}
    if b"{tree}" not in contents.get(SHELL, b""):
        raise SystemExit(f"{sources / SHELL} has no {{tree}}, in whose place the hash of the files is written.")
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    tree = digest.hexdigest()[:16]
    contents[SHELL] = contents[SHELL].replace(b"{tree}", tree.encode())

    files = {}
    for name, content in contents.items():
        compressed = gzip.compress(content, mtime=0)
        place = target / "page" / f"{name}.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(compressed)
        files[name] = {
            "media_type": _media_type_of(name),
            "bytes": len(compressed),
            "etag": f'W/"{hashlib.sha256(content).hexdigest()[:16]}"',
        }
    (target / "page" / "index.json").write_text(json.dumps({"tree": tree, "files": files}, indent=1, sort_keys=True))


def _files_of(sources: Path) -> list[Path]:
    """All but what a browser has no use for: hidden files, and the declarations of types."""
    files = (path for path in sources.rglob("*") if path.is_file())
    return sorted(path for path in files if not path.name.startswith(".") and not path.name.endswith(".d.ts"))


def _media_type_of(name: str) -> str:
    try:
        return _MEDIA_TYPES[Path(name).suffix]
    except KeyError:
        raise SystemExit(f"{name}: the page has no such files. Name its media type in layers/page/pack.py.") from None


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))
