"""A set of free photographs of many kinds, from packages of Debian: fetched once, and never part of this repository.

`make bench-engine PHOTOS=free` fetches them. `photos.toml` lists them with their licences. Packages and photos are
known by their SHA-256; which mirror they come from is the machine's own setting.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from repository.report import ROOT

LIST = Path(__file__).with_name("photos.toml")
FOLDER = ROOT / "build" / "bench" / "photos"

_TIMEOUT_SECONDS = 60
_AR_MAGIC, _AR_HEADER_BYTES = b"!<arch>\n", 60


class NoPhotos(Exception):
    """The photos cannot be fetched here; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Photo:
    """One file of a package: its name in the set, its place there, what it shows, and who allows its use how."""

    name: str
    member: str
    sha256: str
    shows: str
    licence: str
    author: str


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A package of one version, with its path below a mirror's address."""

    package: str
    version: str
    path: str
    sha256: str
    photos: tuple[Photo, ...]


def archives() -> tuple[Archive, ...]:
    """The list."""
    return tuple(
        Archive(
            **{key: value for key, value in entry.items() if key != "photo"}, photos=tuple(map(_photo, entry["photo"]))
        )
        for entry in tomllib.loads(LIST.read_text())["archive"]
    )


def _photo(entry: dict[str, str]) -> Photo:
    return Photo(**entry)


def free_photos() -> Path:
    """The folder with the set. Raises NoPhotos."""
    fetch(archives(), FOLDER, mirrors_of_this_machine())
    return FOLDER


def fetch(wanted: Sequence[Archive], folder: Path, mirrors: Sequence[str]) -> None:
    """Puts every photo into `folder`; those that are there already are not fetched again. Raises NoPhotos."""
    folder.mkdir(parents=True, exist_ok=True)
    for archive in wanted:
        missing = {photo.member: photo for photo in archive.photos if not _is(folder / photo.name, photo.sha256)}
        if not missing:
            continue
        print(f"fetching {archive.package} {archive.version}", file=sys.stderr, flush=True)
        package = folder / f".{archive.package}.deb"
        try:
            _download(archive, package, mirrors)
            for member, file in _members(package):
                if (photo := missing.pop(member, None)) is not None:
                    _store(file, folder / photo.name, photo.sha256)
        finally:
            package.unlink(missing_ok=True)
        if missing:
            raise NoPhotos(f"{archive.package} {archive.version} does not contain {', '.join(missing)}.")


def mirrors_of_this_machine() -> list[str]:
    """The addresses from which apt takes its packages. Raises NoPhotos."""
    if shutil.which("apt-get") is None:
        raise NoPhotos("There is no apt-get here: the photos come from packages of Debian.")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)"], check=True, capture_output=True, text=True
    ).stdout.split()
    return [site.rstrip("/") for site in dict.fromkeys(listed)]


def _download(archive: Archive, package: Path, mirrors: Sequence[str]) -> None:
    reasons = []
    for mirror in mirrors:
        try:
            with (
                urllib.request.urlopen(f"{mirror}/{archive.path}", timeout=_TIMEOUT_SECONDS) as answer,  # noqa: S310
                package.open("wb") as file,
            ):
                shutil.copyfileobj(answer, file)
        except OSError as error:  # a mirror of something else
            reasons.append(str(error))
            continue
        if _is(package, archive.sha256):
            return
        reasons.append("it is another file now")
    raise NoPhotos(
        f"{archive.package} {archive.version} is not to be had ({'; '.join(reasons) or 'apt has no sources'}). "
        "If Debian has a newer version, bring photos.toml up to date."
    )


def _members(package: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of a package by their names (deb(5): an archive of ar(5), whose last part is a tar of the files)."""
    with package.open("rb") as file:
        if file.read(len(_AR_MAGIC)) != _AR_MAGIC:
            raise NoPhotos(f"{package.name} is no package of Debian.")
        while header := file.read(_AR_HEADER_BYTES):
            name, size = header[:16].strip().rstrip(b"/"), int(header[48:58])
            if name == b"data.tar.xz":
                with lzma.open(file) as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
                    for entry in tar:
                        if entry.isfile() and (content := tar.extractfile(entry)) is not None:
                            yield entry.name.removeprefix("./"), content
                return
            file.seek(size + size % 2, 1)
    raise NoPhotos(f"{package.name} has no data.tar.xz.")


def _store(content: IO[bytes], path: Path, sha256: str) -> None:
    unfinished = path.with_name(f".{path.name}")
    with unfinished.open("wb") as file:
        shutil.copyfileobj(content, file)
    if not _is(unfinished, sha256):
        unfinished.unlink()
        raise NoPhotos(f"{path.name} is another file now: bring photos.toml up to date.")
    unfinished.rename(path)


def _is(path: Path, sha256: str) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256
