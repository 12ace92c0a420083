"""Imports and their files in memory, with the semantics that the ports promise."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from darkroom.domain.bulk.imports import Import
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.bulk import StoredManifest
from darkroom.ports.uploads import UploadForm
from tests.support.fakes.rows import changed


@dataclass
class FakeImports:
    """The `Imports` port over a dictionary."""

    rows: dict[str, Import] = field(default_factory=dict)

    def get(self, batch_id: str) -> Import | None:
        return self.rows.get(batch_id)

    def create(self, row: Import) -> Import:
        return self.rows.setdefault(row.batch_id, row)

    def change(self, before: Import, after: Import) -> Import:
        return changed(self.rows, before.batch_id, before, after)


@dataclass
class FakeManifests:
    """The `Manifests` port; `upload` is what a client does with a form."""

    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    url: str = "https://uploads.example"

    def form_for(
        self, batch_id: str, *, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        fields = {"key": batch_id, "Content-Type": media_type, "bytes": str(size_bytes)}
        return UploadForm(url=f"{self.url}/imported", fields=fields, expires_at=(now // 1000 + seconds) * 1000)

    def upload(self, form: UploadForm, body: bytes) -> None:
        """What the store does with a form that is sent in time."""
        assert form.fields["bytes"] == str(len(body))
        self.objects[form.fields["key"], "manifest"] = body

    def find(self, batch_id: str) -> StoredManifest | None:
        body = self.objects.get((batch_id, "manifest"))
        return None if body is None else StoredManifest(_etag_of(body), len(body))

    def read(self, batch_id: str, etag: str, *, offset: int, size_bytes: int) -> bytes | None:
        body = self.objects.get((batch_id, "manifest"))
        return None if body is None or _etag_of(body) != etag else body[offset : offset + size_bytes]

    def put_report(self, batch_id: str, name: str, body: bytes) -> None:
        assert self.objects.setdefault((batch_id, name), body) == body, "a name has one content"

    def report(self, batch_id: str, name: str) -> bytes | None:
        return self.objects.get((batch_id, name))

    def report_url(self, batch_id: str, name: str) -> str:
        return f"{self.url}/imported/{batch_id}/{name}"

    def remove(self, batch_id: str, name: str | None = None) -> None:
        self.objects.pop((batch_id, name or "manifest"), None)

    def forget(self, batch_id: str) -> None:
        for place in [place for place in self.objects if place[0] == batch_id]:
            del self.objects[place]


def _etag_of(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()}"'
