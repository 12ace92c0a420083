"""Manifests: files with a row for each image that is to be fetched, as CSV (RFC 4180, with a header) or JSON Lines.

They are read in portions of bytes that begin where a row does, so that reading can go on anywhere: what a row is does
not depend on where the portions end.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from darkroom.domain.images.annotations import NO_ANNOTATIONS, Annotations, metadata_of, reference_of, tags_of
from darkroom.domain.images.order import Order, check_idempotency_key, order_of
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.presets import preset_named

MAX_BYTES = 100_000_000
"""The largest manifest."""

MAX_ROWS = 1_000_000

MAX_ROW_BYTES = 32_768
"""Of one row, with its line end: the longest URL, reference, tags and metadata, twice over."""

FIELDS = ("url", "key", "preset", "tags", "reference", "metadata")

TAG_SEPARATOR = "|"
"""Between the tags of a cell, which may have spaces."""

_BOM = b"\xef\xbb\xbf"


class ManifestFormat(StrEnum):
    """How a manifest is written."""

    CSV = "csv"
    JSONL = "jsonl"

    @property
    def media_type(self) -> str:
        """RFC 4180's, and what JSON Lines are usually sent as."""
        return "text/csv" if self is ManifestFormat.CSV else "application/x-ndjson"


class BadManifest(Exception):
    """The manifest as a whole cannot be used; says to its author what to do."""


class Beginning(NamedTuple):
    """Where the first row begins, in bytes, and what its columns are; none but CSV has any."""

    offset: int
    columns: tuple[str, ...]


class WrittenRow(NamedTuple):
    """One row as it is written: its number, the first is 1; the byte after it; and its fields by name, or what is wrong
    with it."""

    number: int
    ends_at: int
    fields: Mapping[str, Any] | str


@dataclass(frozen=True, kw_only=True)
class RowProblem:
    """Why a row is no image: which of its fields is wrong, "row" for all of it, and a sentence that says what to do.
    `key` is the one that the row states."""

    row: int
    key: str | None = None
    field: str
    message: str

    @property
    def line(self) -> bytes:
        """A line of the report, in JSON."""
        return json.dumps(vars(self), ensure_ascii=False).encode(errors="replace") + b"\n"


@dataclass(frozen=True, kw_only=True)
class ManifestRow:
    """An image that a row asks for."""

    url: str
    key: str
    preset: str
    annotations: Annotations

    def order_for(self, batch_id: str) -> Order:
        """How to develop it, in that batch. Another import of the same row asks for the same, so the batch is not among
        what two requests under one key must have in common."""
        # guard: bulk-import-repeats-by-key
        return replace(_order_of(self.preset), batch=batch_id, annotations=self.annotations)


@cache
def _order_of(preset: str) -> Order:
    return order_of(preset=preset)


def begin(portion: bytes, kind: ManifestFormat, *, is_last: bool) -> Beginning:
    """Reads what comes before the first row, in a manifest's first portion, of more than MAX_ROW_BYTES unless it
    `is_last`. Raises BadManifest if this is no such file."""
    begins_at = len(_BOM) if portion.startswith(_BOM) else 0
    if kind is ManifestFormat.JSONL:
        if not portion[begins_at:].lstrip().startswith(b"{"):
            raise BadManifest("The manifest is not JSON Lines: write a JSON object into each line, in UTF-8.")
        return Beginning(begins_at, ())
    for _, ends_at, cells in _csv_rows(portion[begins_at:], begins_at, 0, is_last=is_last):
        if isinstance(cells, str):
            raise BadManifest(f"The manifest's first line {cells}. It names the columns: url, and {_some(FIELDS[1:])}.")
        return Beginning(ends_at, _columns(cells))
    raise BadManifest("The manifest is empty. Its first line names the columns, and each other one is an image.")


def _columns(cells: Sequence[str]) -> tuple[str, ...]:
    unknown = next((name for name in cells if name not in FIELDS), None)
    if unknown is not None:
        raise BadManifest(
            f"The manifest has a column {unknown[:100]!r}, which there is not. Name the columns in the first line, "
            f"separated by commas: url, and {_some(FIELDS[1:])}."
        )
    if len(set(cells)) < len(cells):
        raise BadManifest("The manifest names a column twice in its first line. Leave one out.")
    if "url" not in cells:
        raise BadManifest("The manifest has no column url. Name it in the first line.")
    return tuple(cells)


def _some(names: Sequence[str]) -> str:
    return f"if you like {', '.join(names[:-1])} and {names[-1]}"


def rows_in(
    portion: bytes, kind: ManifestFormat, columns: Sequence[str], *, offset: int, row: int, is_last: bool
) -> Iterator[WrittenRow]:
    """The rows that are complete in a portion, which begins at byte `offset`, after that many rows; empty lines are
    none. `is_last` if nothing of the manifest follows. Raises BadManifest for a row that is too long, or is never
    ended."""
    if kind is ManifestFormat.JSONL:
        yield from _json_rows(portion, offset, row, is_last=is_last)
        return
    width = len(columns)
    for number, ends_at, cells in _csv_rows(portion, offset, row, is_last=is_last):
        if isinstance(cells, str):
            yield WrittenRow(number, ends_at, cells)
        elif len(cells) != width:
            yield WrittenRow(number, ends_at, f"has {len(cells)} cells, but the first line has {width}")
        else:
            yield WrittenRow(number, ends_at, {name: cell for name, cell in zip(columns, cells, strict=True) if cell})


def _csv_rows(portion: bytes, offset: int, row: int, *, is_last: bool) -> Iterator[tuple[int, int, list[str] | str]]:
    ends_at, is_exhausted, is_text = offset, False, True

    def lines() -> Iterator[str]:
        nonlocal ends_at, is_exhausted, is_text
        # A line ends as in a file that is opened with newline="", which is what the reader expects.
        for line in _complete(portion, is_last=is_last).splitlines(keepends=True):
            ends_at += len(line)
            try:
                text = line.decode()
            except UnicodeDecodeError:
                is_text, text = False, line.decode(errors="replace")
            yield text
        is_exhausted = True

    reader = csv.reader(lines(), strict=True)
    begins_at = offset
    while True:
        cells: list[str] | str | None
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells = f"is no CSV: {error}"
        if ends_at - begins_at > MAX_ROW_BYTES:  # guard: bulk-import-row-bound
            raise _too_long(row + 1)
        if is_exhausted and cells is not None:  # it is in quotes up to the end: of the manifest, or of this portion
            if is_last:
                raise BadManifest(f"Row {row + 1} begins a quoted cell that never ends. Write its quotes twice.")
            return  # guard: bulk-import-cut-row-read-again
        if cells is None:
            break
        if cells:
            row += 1
            yield row, ends_at, cells if is_text else _NOT_UTF8
        begins_at, is_text = ends_at, True
    if not is_last and offset + len(portion) - begins_at > MAX_ROW_BYTES:
        raise _too_long(row + 1)


def _json_rows(portion: bytes, offset: int, row: int, *, is_last: bool) -> Iterator[WrittenRow]:
    ends_at = offset
    for line in _complete(portion, is_last=is_last, ends=(b"\n",)).split(b"\n"):
        ends_at += len(line) + 1
        if len(line) > MAX_ROW_BYTES:
            raise _too_long(row + 1)
        if not line or line.isspace():
            continue
        row += 1
        yield WrittenRow(row, min(ends_at, offset + len(portion)), _json_fields(line))
    if not is_last and len(portion) - (portion.rfind(b"\n") + 1) > MAX_ROW_BYTES:
        raise _too_long(row + 1)


_NOT_UTF8 = "is not in UTF-8"


def _json_fields(line: bytes) -> Mapping[str, Any] | str:
    try:
        written = json.loads(line.decode())
    except UnicodeDecodeError:
        return _NOT_UTF8
    except (ValueError, RecursionError):
        return "is no JSON: write a JSON object into each line"
    if not isinstance(written, dict):
        return "is no JSON object"
    return {name: value for name, value in written.items() if value is not None}


def _complete(portion: bytes, *, is_last: bool, ends: Sequence[bytes] = (b"\n", b"\r")) -> bytes:
    """The portion up to its last line end, which no character of UTF-8 has a part of."""
    if is_last:
        return portion
    return portion[: next((place for end in ends if (place := portion.rfind(end) + 1)), 0)]


def _too_long(row: int) -> BadManifest:
    return BadManifest(
        f"Row {row} has more than {MAX_ROW_BYTES:,} bytes. Is a quote or a line end missing, or is this another format?"
    )


_KINDS: Mapping[str, tuple[type[Any], str]] = {
    **dict.fromkeys(FIELDS, (str, "is a text")),
    "tags": (list, "is a list of texts"),
    "metadata": (dict, "is a JSON object"),
}


def read_row(
    record: WrittenRow, kind: ManifestFormat, *, preset: str, check_url: Callable[[str], None]
) -> ManifestRow | RowProblem:
    """The image that a row asks for, by `preset` unless it names another; or what is wrong with it. `check_url` raises
    Rejected for a URL to which nothing is ever sent."""
    fields = record.fields
    if isinstance(fields, str):
        return RowProblem(row=record.number, field="row", message=f"The row {fields}.")
    key = fields.get("key")
    stated = key if isinstance(key, str) else None

    def problem(field: str, message: str) -> RowProblem:
        return RowProblem(row=record.number, key=stated, field=field, message=message)

    if kind is ManifestFormat.JSONL:
        for name, value in fields.items():
            expected = _KINDS.get(name)
            if expected is None:
                return problem(name[:100], f"There is no such field. A row has url, and {_some(FIELDS[1:])}.")
            if type(value) is not expected[0] or (name == "tags" and not _are_texts(value)):
                return problem(name, f"{name} {expected[1]}.")
    url = fields.get("url")
    if not url:
        return problem("url", "The row has no url.")
    field = "url"
    try:
        check_url(url)
        field = "key"
        check_idempotency_key(key)
        field, preset = "preset", fields.get("preset", preset)
        preset_named(preset)
        annotations = NO_ANNOTATIONS
        if not _WORDS.isdisjoint(fields):
            field, reference = "reference", fields.get("reference")
            reference = None if reference is None else reference_of(reference)
            field, tags = "tags", fields.get("tags", ())
            tags = tags_of(tags.split(TAG_SEPARATOR) if isinstance(tags, str) else tags)
            field, metadata = "metadata", fields.get("metadata")
            metadata = None if metadata is None else metadata_of(metadata)
            annotations = Annotations(reference=reference, tags=tags, metadata=metadata)
    except Rejected as refusal:
        return problem(field, refusal.message)
    return ManifestRow(url=url, key=stated or _key_of(url, preset), preset=preset, annotations=annotations)


def _are_texts(values: list[Any]) -> bool:
    return all(type(value) is str for value in values)


_WORDS = frozenset({"reference", "tags", "metadata"})


def _key_of(url: str, preset: str) -> str:
    """The key of a row that states none: the same for the same URL and preset, in every import."""
    return f"import-{hashlib.sha256(f'{preset}\0{url}'.encode()).hexdigest()}"
