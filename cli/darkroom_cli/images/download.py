"""Saves the variants of an image as files, each checked against the status document."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from darkroom_client import Darkroom
from darkroom_client.client import ApiError, ReceivedStatus, ReceivedVariant

_EXTENSIONS = {"jpeg": "jpg"}

# A variant's name becomes a file name, and the API may be anyone's: no separator, no leading dot.
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class NotSaved(ApiError):
    """A variant could not become a file; the message says why."""


def save_variants(
    api: Darkroom,
    document: ReceivedStatus,
    folder: Path,
    *,
    names: tuple[str, ...] = (),
    force: bool = False,
    on_saved: Callable[[ReceivedVariant], None] = lambda variant: None,
) -> dict[str, Path]:
    """Saves the variants called `names` (all of them by default) of a finished image; returns the file of each.

    Raises NotSaved, before anything is fetched, if a different file is in the way and `force` is not set.
    """
    variants = {variant["name"]: variant for variant in document["variants"]}
    unknown = [name for name in names if name not in variants]
    if unknown:
        raise NotSaved(f"There is no variant {', '.join(unknown)}: this image has {', '.join(variants)}.")
    files = {name: folder / file_name(variants[name]) for name in names or variants}
    in_the_way = [file for name, file in files.items() if not force and _differs(file, variants[name])]
    if in_the_way:
        raise NotSaved(
            f"{', '.join(map(str, in_the_way))}: there is a different file of this name. "
            "Choose another folder with -o, or give --force to replace it."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            if not _is_same(file, variants[name]):
                _save(file, api.download(document, name), force=force)
            on_saved(variants[name])
    except OSError as error:
        raise NotSaved(f"Cannot write {error.filename or folder}: {error.strerror}.") from error
    return files


def file_name(variant: ReceivedVariant) -> str:
    """The file's name: the variant's, with the extension that its format usually has, once."""
    name = f"{variant['name'].partition('.')[0]}.{_EXTENSIONS.get(variant['format'], variant['format'])}"
    if _SAFE_NAME.fullmatch(name) is None:
        raise NotSaved(f"The variant {variant['name']!r} ({variant['format']!r}) cannot be a file name.")
    return name


def _is_same(file: Path, variant: ReceivedVariant) -> bool:
    if not file.is_file() or file.stat().st_size != variant["bytes"]:
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == variant["sha256"]


def _differs(file: Path, variant: ReceivedVariant) -> bool:
    return os.path.lexists(file) and not _is_same(file, variant)


def _save(file: Path, content: bytes, *, force: bool) -> None:
    unfinished = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with unfinished.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            unfinished.replace(file)
        else:
            # Unlike a rename, a link never replaces a file that has appeared since the check.
            file.hardlink_to(unfinished)
    except FileExistsError:
        raise NotSaved(f"{file}: a file of this name has just appeared. Give --force to replace it.") from None
    finally:
        unfinished.unlink(missing_ok=True)
