"""The work of `darkroom import`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from darkroom_cli.stack.target import ApiTarget
from darkroom_cli.terminal import display

if TYPE_CHECKING:
    from darkroom.http.bulk.imports import ImportDocument

MOST_SHOWN = 20
"""How many rejected rows people are shown; --json has all."""

_WAITS = {
    "fetches": "enough images are being fetched",
    "lane": "its lane has too much work",
    "quota": "the tenant's quota is full",
    "pause": "the operator has paused its work",
    "suspension": "the tenant is suspended",
    "retry": "a row failed for a reason of ours, and is tried again",
}


def run(target: ApiTarget, manifest: Path, terms: Mapping[str, Any], *, wait: bool, as_json: bool) -> None:
    """Sends the manifest, follows the import if it is to `wait`, and shows it; exits with 1 unless all is well."""
    size_bytes = max(1, manifest.stat().st_size)
    with target.open() as api, display.ProgressReport(display.errors()) as report:

        def sent(sent_bytes: int) -> None:
            report.show(manifest.name, completed=sent_bytes / size_bytes, total=1.0, detail="uploading")

        document = api.import_images(manifest, on_sent=sent, **terms)
        if not as_json:
            display.line(display.output(), document["id"])

        def follow(now: ImportDocument) -> None:
            report.show(document["id"], completed=now["progress"], total=1.0, detail=_detail(now))

        if wait:
            document = api.wait_for_import(document["id"], on_document=follow)
        rejected = (
            list(api.rejected_rows(document)) if as_json else list(islice(api.rejected_rows(document), MOST_SHOWN))
        )
    if as_json:
        display.print_json({**document, "rejected_rows": rejected})
    _tell(target, document, rejected)
    if wait and (document["state"] != "completed" or document["rejected"]):
        raise typer.Exit(1)


def _tell(target: ApiTarget, document: ImportDocument, rejected: list[dict[str, Any]]) -> None:
    err = display.errors()
    display.line(err, f"{display.printable(document['state'])}: {_figures(document)}")
    for row in rejected[:MOST_SHOWN]:
        key = "" if row["key"] is None else f" ({row['key']})"
        display.line(err, f"  row {row['row']:,}{display.printable(key)}: {display.printable(row['message'])}")
    if document["rejected"] > MOST_SHOWN:
        display.line(
            err, f"  … and {document['rejected'] - MOST_SHOWN:,} more: GET {document['links']['self']} names them."
        )
    if document["error"] is not None:
        display.line(err, display.printable(document["error"]["message"]))
    if document["state"] not in ("failed", "cancelled"):
        display.line(err, f"Its images:  ./darkroom batches wait {document['id']}{target.options}")


def _detail(document: ImportDocument) -> str:
    waits = "" if document["waits_for"] is None else f" (waits: {_WAITS.get(document['waits_for'], '?')})"
    return f"{display.printable(document['state'])}{waits}, {_figures(document)}"


def _figures(document: ImportDocument) -> str:
    return (
        f"{document['rows']:,} rows, {document['created']:,} images created, {document['already_there']:,} already "
        f"there, {document['rejected']:,} rejected"
    )
