"""A tenant's imports, as calls of the client."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast
from urllib.parse import quote

import httpx

from darkroom_client.batches import BatchesApi, BatchTerms
from darkroom_client.client import Refused
from darkroom_client.forms import form_in, refusal, send_form

if TYPE_CHECKING:
    from darkroom.http.bulk.imports import ImportDocument


class ImportTerms(BatchTerms, total=False):
    """The preset of rows that name none, and what a batch has."""

    preset: str | None


class ImportsApi(BatchesApi):
    """The requests about imports. All raise ApiError, and have the same effect twice as once."""

    def import_images(
        self,
        manifest: str | Path,
        *,
        file_format: Literal["csv", "jsonl"] | None = None,
        idempotency_key: str | None = None,
        on_sent: Callable[[int], None] = lambda sent_bytes: None,
        **terms: Unpack[ImportTerms],
    ) -> ImportDocument:
        """Has images fetched, one for each row of a manifest: CSV if its name ends in `.csv`, otherwise JSON Lines,
        unless `file_format` says so. With the same `idempotency_key`, the same request makes one import. `on_sent` gets
        the number of bytes that were sent. Raises OSError if the file is unreadable."""
        file = Path(manifest)
        written = file_format or ("csv" if file.suffix.lower() == ".csv" else "jsonl")
        wanted: dict[str, Any] = {"format": written, "bytes": file.stat().st_size, **terms}
        key = idempotency_key or f"import-{secrets.token_hex(16)}"
        made: dict[str, Any] = {}

        def send() -> httpx.Response:
            nonlocal made
            made = self.ask("POST", "/imports", body=wanted, answered_by=httpx.codes.CREATED, idempotency_key=key)
            self._checked_import(made)
            form = form_in(made)
            if form is None:  # an attempt whose answer was lost has sent it
                return httpx.Response(httpx.codes.NO_CONTENT)
            return send_form(self._storage, form, file, on_sent)

        response = self._send_patiently(send, "The store of uploads")
        if not response.is_success:
            raise Refused(refusal(response), status_code=response.status_code)
        return self._checked_import({name: value for name, value in made.items() if name != "upload"})

    def import_of(self, import_id: str) -> ImportDocument:
        """The import as it is now: how far its manifest is read, and what became of its rows."""
        return self._checked_import(self.ask("GET", f"/imports/{quote(import_id, safe='')}"), import_id)

    def wait_for_import(
        self,
        import_id: str,
        *,
        timeout_seconds: float | None = None,
        on_document: Callable[[ImportDocument], None] = lambda document: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> ImportDocument:
        """Waits until all rows were read and their images asked for, or the import has failed or was cancelled; its
        batch ends later, with the last of its images. Returns the document, and gives each one on the way to
        `on_document`. Raises NotFinished after the timeout."""
        read = partial(self.import_of, import_id)
        ended: ImportDocument = self._wait_until_ended(f"Import {import_id}", read, timeout_seconds, on_document, clock)
        return ended

    def rejected_rows(self, document: ImportDocument) -> Iterator[dict[str, Any]]:
        """The rows that became no image: each with `row`, `key`, `field` and `message`. Files are fetched as they are
        needed, within the hour for which the document's addresses are valid."""
        for url in document["report"]:
            response = self._send_patiently(partial(self._storage.get, url), "The store of reports")
            if not response.is_success:
                raise Refused(
                    "The report is not there: ask for the import again, whose addresses are valid for an hour.",
                    status_code=response.status_code,
                )
            yield from map(json.loads, response.text.split("\n")[:-1])

    def _checked_import(self, document: dict[str, Any], asked_for: str | None = None) -> ImportDocument:
        from darkroom.http.bulk.imports import ImportDocument  # noqa: PLC0415

        self._check(ImportDocument, document)
        if asked_for not in (None, document["id"]):
            raise self._no_batch("an invalid id")
        return cast(ImportDocument, document)
