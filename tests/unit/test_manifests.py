"""Manifests of imports: each row is read as the csv module reads the file, wherever its portions end."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.bulk.manifests import (
    MAX_ROW_BYTES,
    BadManifest,
    ManifestFormat,
    ManifestRow,
    RowProblem,
    WrittenRow,
    begin,
    read_row,
    rows_in,
)
from darkroom.domain.images.order import order_of
from darkroom.egress import read_url

CSV, JSONL = ManifestFormat

URL = "https://photos.example/a.jpg"


def rows(body: bytes, kind: ManifestFormat = CSV, *, portion: int = 1 << 20) -> Iterator[WrittenRow]:
    """All rows, read in portions of so many bytes; longer ones as soon as nothing is complete in one."""
    beginning = begin(body, kind, is_last=True)
    offset, row, size = beginning.offset, 0, portion
    while offset < len(body):
        part = body[offset : offset + size]
        was = offset
        for written in rows_in(
            part, kind, beginning.columns, offset=offset, row=row, is_last=offset + len(part) == len(body)
        ):
            yield written
            offset, row = written.ends_at, written.number
        if offset + len(part) == len(body) and offset == was:
            return  # what is left is no row
        size = portion if offset > was else size + portion


def check_url(url: str) -> None:
    read_url(url)


def read(kind: ManifestFormat, body: bytes) -> list[ManifestRow | RowProblem]:
    return [read_row(written, kind, preset="standard", check_url=check_url) for written in rows(body, kind)]


cells = st.text(st.sampled_from('ab",\n\r |é🎞'), max_size=6)


@pytest.mark.guards("bulk-import-cut-row-read-again")
@given(
    st.lists(st.tuples(cells, cells), max_size=6), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40), st.booleans()
)
def test_a_row_of_csv_is_what_the_csv_module_reads_wherever_the_portions_end(
    written: list[tuple[str, str]], ending: str, portion: int, has_bom: bool
) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator=ending)
    writer.writerow(("url", "key"))
    writer.writerows(written)
    body = (b"\xef\xbb\xbf" if has_bom else b"") + file.getvalue().encode()
    expected = [
        {name: cell for name, cell in zip(("url", "key"), row, strict=True) if cell}
        for row in list(csv.reader(io.StringIO(file.getvalue(), newline="")))[1:]
        if row
    ]
    found = list(rows(body, portion=portion))
    assert [row.fields for row in found] == expected
    assert [row.number for row in found] == list(range(1, len(found) + 1))


@given(st.binary(max_size=120), st.integers(1, 30), st.sampled_from(ManifestFormat))
def test_whatever_bytes_come_the_portions_change_nothing(body: bytes, portion: int, kind: ManifestFormat) -> None:
    body = (b"url\n" if kind is CSV else b"{}\n") + body

    def outcome(size: int) -> Any:
        try:
            return list(rows(body, kind, portion=size))
        except BadManifest as error:
            return str(error)

    assert outcome(portion) == outcome(1 << 20)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (CSV, b"", "is empty"),
        (CSV, b"url,size\n", "column 'size'"),
        (CSV, b"url;key\n", "separated by commas"),
        (CSV, b"key\n", "no column url"),
        (CSV, b"url,url\n", "twice"),
        (CSV, b'"url\n', "never ends"),
        (CSV, b"\xff\xfe\n", "not in UTF-8"),
        (CSV, b'url\n"https://photos.example/', "Row 1 begins a quoted cell"),
        (CSV, b'url\nx\n"' + b"y\n" * MAX_ROW_BYTES, "Row 2 has more than 32,768 bytes"),
        (JSONL, b"url\n", "not JSON Lines"),
        (JSONL, b"[{}]\n", "not JSON Lines"),
        (JSONL, b'{"url": "' + b"y" * MAX_ROW_BYTES + b'"}\n', "Row 1 has more than"),
    ],
)
@pytest.mark.guards("bulk-import-row-bound")
def test_a_file_that_is_no_manifest_is_refused_as_a_whole(kind: ManifestFormat, body: bytes, message: str) -> None:
    with pytest.raises(BadManifest, match=message):
        list(rows(body, kind))


@pytest.mark.parametrize("kind", ManifestFormat)
def test_a_row_that_never_ends_is_found_before_the_file_does(kind: ManifestFormat) -> None:
    portion = b'"' * (MAX_ROW_BYTES + 2) if kind is CSV else b"x" * (MAX_ROW_BYTES + 1)
    with pytest.raises(BadManifest, match="Row 8 has more than"):
        list(rows_in(portion, kind, ("url",), offset=5, row=7, is_last=False))


@pytest.mark.parametrize(
    ("written", "field", "message"),
    [
        ({}, "url", "has no url"),
        ({"url": "http://photos.example/"}, "url", "https://"),
        ({"url": URL, "key": "é"}, "key", "printable ASCII"),
        ({"url": URL, "preset": "large"}, "preset", "Known presets"),
        ({"url": URL, "reference": " x"}, "reference", "characters"),
        ({"url": URL, "tags": ["a", "a"]}, "tags", "each once"),
        ({"url": URL, "metadata": [1]}, "metadata", "JSON object"),
        ({"url": URL, "size": 1}, "size", "no such field"),
        ({"url": 1}, "url", "is a text"),
        ({"url": URL, "tags": [1]}, "tags", "list of texts"),
    ],
)
def test_a_bad_row_is_named_with_its_field_and_affects_no_other(
    written: dict[str, Any], field: str, message: str
) -> None:
    good = {"url": URL}
    body = b"".join(json.dumps(row).encode() + b"\n" for row in (good, written, good))
    before, bad, after = read(JSONL, body)
    assert isinstance(before, ManifestRow) and before == after
    assert isinstance(bad, RowProblem) and (bad.row, bad.field) == (2, field)
    assert message in bad.message and json.loads(bad.line)["row"] == 2
    if "size" not in written and all(type(value) is str for value in written.values()):
        columns, lines = ",".join(written) or "key", ",".join(written.values()) or "x"
        (same,) = read(
            CSV, f"{columns}{'' if 'url' in written else ',url'}\n{lines}{'' if written else ','}\n".encode()
        )
        assert isinstance(same, RowProblem) and (same.field, same.message) == (bad.field, bad.message)


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        (CSV, b"a,b,c", "3 cells"),
        (CSV, b'"a"b,c', "is no CSV"),
        (CSV, b"\xff,c", "not in UTF-8"),
        (JSONL, b"\xff", "not in UTF-8"),
        (JSONL, b"{", "is no JSON"),
        (JSONL, b"[" * 20_000, "is no JSON"),
        (JSONL, b"1", "no JSON object"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_next_one_is_read(
    kind: ManifestFormat, line: bytes, message: str
) -> None:
    first = b"url,key\n" if kind is CSV else b'{"url": "https://photos.example/"}\n'
    after = f"{URL},k\n".encode() if kind is CSV else json.dumps({"url": URL, "key": "k"}).encode()
    bad, good = read(kind, first + line + b"\n" + after)[-2:]
    assert isinstance(bad, RowProblem) and bad.field == "row" and message in bad.message
    assert isinstance(good, ManifestRow) and good.key == "k"


@pytest.mark.guards("bulk-import-repeats-by-key")
def test_a_row_asks_for_the_same_as_a_request_and_as_the_same_row_of_another_import() -> None:
    body = f'url,preset,tags,metadata\n{URL},avatar,new|on sale,"{{""sku"": 1}}"\n{URL},,,\n{URL},avatar,,\n'
    row, plain, other = read(CSV, body.encode())
    assert isinstance(row, ManifestRow) and isinstance(plain, ManifestRow) and isinstance(other, ManifestRow)
    assert (row.annotations.tags, row.annotations.metadata) == (("new", "on sale"), '{"sku":1}')
    assert row.key == other.key != plain.key, "without a key it is that of the URL and the preset"
    assert {plain.order_for(batch).request_signature for batch in ("ba_1", "ba_2")} == {order_of().request_signature}
    assert plain.order_for("ba_1").batch == "ba_1"
