"""The libraries in the layers: which versions are installed, and when each was last compared with advisories.

A wheel bundles libraries that no package index knows, and untrusted files are parsed by them. layers/libraries.toml
lists them all; `make outdated` and tests/unit/test_libraries.py compare it with what is installed.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import metadata
from pathlib import Path

import pillow_heif
import pyvips
from cryptography.hazmat.backends.openssl.backend import backend
from PIL import _avif, features

LIST = Path("layers/libraries.toml")
LOCKS = tuple(Path(f"layers/{layer}/requirements.txt") for layer in ("dependencies", "imaging", "signing"))
COMPARED_WITHIN = timedelta(days=45)

_BUNDLED = re.compile(r"[^/]+\.libs/(lib\w+?)(?:-[0-9a-f]{8})?\.so(?:\.([\d.]+))?")
_PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)

type Libraries = Mapping[str, str]
"""Versions by name: a package's, or `package/library` for a library that a wheel bundles."""


@dataclass(frozen=True, kw_only=True)
class ListedLibrary:
    """An entry of the list. `compared` is None if the version was never compared with advisories."""

    version: str
    compared: date | None


def pinned(lock: Path) -> dict[str, str]:
    """The packages of a lock file, with their versions."""
    return dict(_PINNED.findall(lock.read_text()))


@functools.cache
def installed() -> Libraries:
    """Everything in the layers as it is installed here.

    A library that does not say which version it is has its file's version instead.
    """
    versions: dict[str, str] = {}
    for package in sorted({name for lock in LOCKS for name in pinned(lock)}):
        versions[package] = metadata.version(package)
        for file in metadata.files(package) or ():
            if bundled := _BUNDLED.fullmatch(str(file)):
                versions[f"{package}/{bundled[1]}"] = bundled[2] or ""
    return versions | dict(_told())


def _told() -> Iterator[tuple[str, str]]:
    """What libraries say of themselves."""
    named = {
        "libavif": "avif",
        "libfreetype": "freetype2",
        "libharfbuzz": "harfbuzz",
        "libjpeg": "libjpeg_turbo",
        "liblcms2": "littlecms2",
        "libopenjp2": "jpg_2000",
        "libtiff": "libtiff",
        "libwebp": "webp",
        "raqm": "raqm",
        "zlib-ng": "zlib_ng",
    }
    for library, name in named.items():
        yield f"pillow/{library}", str(features.version(name))
    for codec, version in re.findall(r"(\w+) \[\w+(?:/\w+)?\]:v?([\w.-]+)", _avif.codec_versions()):
        yield f"pillow/{codec}", version
    yield "pillow/libpng16", _version_in("pillow", "libpng16", rb"libpng version ([\d.]+)")
    yield "cryptography/openssl", backend.openssl_version_text().split()[1]
    info = pillow_heif.libheif_info()
    yield "pillow-heif/libheif", info["libheif"]
    yield "pillow-heif/libde265", info["decoders"]["libde265"].rpartition(" ")[2]
    yield "pillow-heif/libx265", re.sub(r".*\((.+)\)", r"\1", info["encoders"]["x265"])
    yield "pyvips-binary/libvips", ".".join(str(pyvips.version(part)) for part in range(3))
    for library, text in {
        "libpng": rb"\0(1\.6\.\d+)\0",
        "mozjpeg": rb"mozjpeg version ([\d.]+)",
        "libarchive": rb"libarchive (\d[\d.]+)",
    }.items():
        yield f"pyvips-binary/{library}", _version_in("pyvips-binary", "libvips", text)


def _version_in(package: str, library: str, text: bytes) -> str:
    for file in metadata.files(package) or ():
        if (bundled := _BUNDLED.fullmatch(str(file))) and bundled[1] == library:
            match = re.search(text, Path(str(file.locate())).read_bytes())
            return match[1].decode() if match else "unknown"
    return "unknown"


def listed(text: str) -> dict[str, ListedLibrary]:
    """The entries of the list, by the names of `installed`."""
    entries = {}
    for package, entry in tomllib.loads(text).items():
        for name, written in {
            package: entry,
            **{f"{package}/{name}": bundle for name, bundle in entry.get("bundles", {}).items()},
        }.items():
            compared = written["compared"]
            entries[name] = ListedLibrary(
                version=written["version"], compared=None if compared == "never" else compared
            )
    return entries


def differences(installed: Libraries, entries: Mapping[str, ListedLibrary]) -> list[str]:
    """Where the list and what is installed are apart.

    A library that its wheel does not tell the version of is listed as `in <package> <version>`.
    """
    said = []
    for name, entry in entries.items():
        package = name.partition("/")[0]
        actual = installed.get(name, f"in {package} {installed.get(package)}" if "/" in name else None)
        if actual is None:
            said.append(f"{name}: in the list and in no layer")
        elif actual != entry.version:
            said.append(f"{name}: {actual} is installed, the list has {entry.version}")
    return said + [
        f"{name}: {installed[name]} is installed, and not in the list" for name in installed.keys() - entries.keys()
    ]


def not_compared(entries: Mapping[str, ListedLibrary], today: date) -> list[str]:
    """The libraries that were not compared with advisories in the last 45 days."""
    return [
        f"{name} ({entry.version}): {'never' if entry.compared is None else f'last on {entry.compared}'}"
        for name, entry in entries.items()
        if entry.compared is None or today - entry.compared > COMPARED_WITHIN  # guard: outdated-library-due-date
    ]
