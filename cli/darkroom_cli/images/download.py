"""Saves the variants of an image as files, each checked against the status document."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from darkroom_client.client import AddressExpired, Api, ApiError, ReceivedStatus, ReceivedVariant

_EXTENSIONS = {"jpeg": "jpg"}

# A variant's name becomes a file name, and the API may be anyone's: no separator, no leading dot.
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

_ADDRESSES_PER_FILE = 3


class NotSaved(ApiError):
    """A variant could not become a file; the message says why."""


def save_variants(
    api: Api,
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
                _save(file, _fetch(api, document["id"], variants[name]), force=force)
            on_saved(variants[name])
    except OSError as error:
        raise NotSaved(f"Cannot write {error.filename or folder}: {error.strerror}.") from error
    return files


def file_name(variant: ReceivedVariant) -> str:
    """The file's name: the variant's, with the extension that its format usually has."""
    name = f"{variant['name']}.{_EXTENSIONS.get(variant['format'], variant['format'])}"
    if _SAFE_NAME.fullmatch(name) is None:
        raise NotSaved(f"The variant {variant['name']!r} ({variant['format']!r}) cannot be a file name.")
    return name


def _fetch(api: Api, image_id: str, variant: ReceivedVariant) -> bytes:
    for _ in range(_ADDRESSES_PER_FILE):
        try:
            content = api.download(variant["url"], size_bytes=variant["bytes"])
        except AddressExpired:
            variant = _named(api.status(image_id).document, variant["name"])
            continue
        if len(content) != variant["bytes"] or hashlib.sha256(content).hexdigest() != variant["sha256"]:
            raise NotSaved(
                f"The file of {variant['name']} is not the one in the status document (size or SHA-256 differ) and "
                "was not saved. Try again, and tell the operator if it happens twice."
            )
        return content
    raise NotSaved(
        f"The store keeps refusing the URL of {variant['name']}. Is this machine's clock right, "
        "and are the credentials of the stack's functions still valid?"
    )


def _named(document: ReceivedStatus, name: str) -> ReceivedVariant:
    for variant in document["variants"]:
        if variant["name"] == name:
            return variant
    raise NotSaved(f"The image is {document['status']} and has no {name} any more.")


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
