"""`darkroom download`: the variants of an image as files, each checked against what the API says of it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from console.api.client import AddressExpired, Api, ApiError, StatusDocument, VariantDocument
from console.images.status import ImageIdArgument, WaitTimeoutOption, followed, hint
from console.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from console.terminal import display

EPILOG = """[bold]Examples[/bold]

  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 -o photos
  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 -o photos --wait
  ./darkroom download 01h2xcejqtf2nbrexx3vqjhp41 --variant webp

[bold]Exit status[/bold]

  0    every file is there
  1    the image is not done, or a file differs or could not be fetched
  2    the command was not understood
  130  interrupted"""

_EXTENSIONS = {"jpeg": "jpg"}

# A name becomes a file name, and the API may be anyone's: no separator, no leading dot.
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")

_ADDRESSES_PER_FILE = 3


class NotSaved(ApiError):
    """A variant could not become a file; the message says why."""


def command(
    *,
    image_id: ImageIdArgument,
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go; made if it is not there.")
    ] = Path(),
    names: Annotated[
        list[str] | None,
        typer.Option("--variant", metavar="NAME", help="Only this variant; may be given several times."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the image is done.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name that differ.")] = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Save an image's variants as NAME.EXT.

    Every file is checked against the size and SHA-256 in the status document,
    and appears whole or not at all. A file that is there already is kept if it
    is the same, and never replaced by another unless you say --force.
    """
    target = resolve(url, api_key, iam)
    with target.open() as api:
        document = followed(api, image_id, timeout_seconds=timeout_seconds) if wait else api.status(image_id).document
        if document["status"] != "done":
            raise ApiError(_why_not(document, target.options))
        out = display.output()
        files = save_variants(api, document, folder, names=tuple(names or ()), force=force)
        show_files(out, document, files)


def _why_not(document: StatusDocument, options: str) -> str:
    error = document["error"]
    reason = f"{error['message']} ({error['code']})" if error else ""
    if document["status"] in ("failed", "cancelled", "expired"):
        return " ".join(filter(None, (f"The image is {document['status']}: it has no files.", reason, hint(document))))
    return (
        f"The image is {document['status']}: its files are not made yet. "
        f"Wait for them:  ./darkroom download {document['id']} --wait{options}"
    )


def save_variants(
    api: Api,
    document: StatusDocument,
    folder: Path,
    *,
    names: tuple[str, ...] = (),
    force: bool = False,
    on_saved: Callable[[VariantDocument], None] = lambda variant: None,
) -> dict[str, Path]:
    """Saves the variants called `names` (all of them by default) of a finished image; returns the file of each.

    Raises NotSaved, before anything is fetched, where a different file is in the way and `force` does not allow to
    replace it.
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


def show_files(out: Console, document: StatusDocument, files: dict[str, Path]) -> None:
    """The table of what was saved."""
    display.table(
        out,
        ("name", "dimensions", "bytes", "file"),
        [
            (
                variant["name"],
                display.dimensions(variant),
                f"{variant['bytes']:,}",
                str(files[variant["name"]]),
            )
            for variant in document["variants"]
            if variant["name"] in files
        ],
        right=frozenset({"dimensions", "bytes"}),
    )


def file_name(variant: VariantDocument) -> str:
    """The file's name: the variant's, with the extension that its format usually has."""
    name = f"{variant['name']}.{_EXTENSIONS.get(variant['format'], variant['format'])}"
    if _SAFE_NAME.fullmatch(name) is None:
        raise NotSaved(f"The variant {variant['name']!r} ({variant['format']!r}) cannot be a file name.")
    return name


def _fetch(api: Api, image_id: str, variant: VariantDocument) -> bytes:
    for _ in range(_ADDRESSES_PER_FILE):
        try:
            content = api.download(variant["url"], size_bytes=variant["bytes"])
        except AddressExpired:
            variant = _named(api.status(image_id).document, variant["name"])
            continue
        if len(content) != variant["bytes"] or hashlib.sha256(content).hexdigest() != variant["sha256"]:
            raise NotSaved(
                f"What came for {variant['name']} is not what the status document promises (size or SHA-256 differ); "
                "nothing was saved for it. Try again, and tell the operator if it happens twice."
            )
        return content
    raise NotSaved(
        f"The store refuses the address of {variant['name']} each time. Is this machine's clock right, "
        "and are the credentials of the stack's functions still valid?"
    )


def _named(document: StatusDocument, name: str) -> VariantDocument:
    for variant in document["variants"]:
        if variant["name"] == name:
            return variant
    raise NotSaved(f"The image is {document['status']} and has no {name} any more.")


def _is_same(file: Path, variant: VariantDocument) -> bool:
    if not file.is_file() or file.stat().st_size != variant["bytes"]:
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == variant["sha256"]


def _differs(file: Path, variant: VariantDocument) -> bool:
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
            # Unlike a rename, a link never replaces a file that has appeared since we looked.
            file.hardlink_to(unfinished)
    except FileExistsError:
        raise NotSaved(f"{file}: a file of this name has just appeared. Give --force to replace it.") from None
    finally:
        unfinished.unlink(missing_ok=True)
