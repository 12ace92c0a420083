"""The originals' bucket with versions and delete markers, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.images.stored_by import StoredVersion
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.images import StoredOriginal
from darkroom.ports.kernel import Clock
from darkroom_cli.operator.ports import VersionPage


@dataclass
class _Version:
    version_id: str
    body: bytes | None  # None is a delete marker
    stored_at: Milliseconds
    media_type: str = ""
    made_for: str = ""


@dataclass
class FakeVersionedOriginals:
    """The `Originals` and the `OriginalVersions` port, over one list of versions per key, the oldest first."""

    clock: Clock
    page_size: int = 3
    kept: dict[str, list[_Version]] = field(default_factory=dict)
    made: int = 0

    def put_if_absent(
        self, image_id: str, body: bytes, *, sha256: str, media_type: str, made_for: str = ""
    ) -> StoredOriginal:
        versions = self.kept.get(f"originals/{image_id}", [])
        if not versions or versions[-1].body is None:
            versions = [self.add(f"originals/{image_id}", body)]
            versions[0].media_type, versions[0].made_for = media_type, made_for
        current = versions[-1]
        stored = current.body or b""
        return StoredOriginal(
            version_id=current.version_id,
            sha256=hashlib.sha256(stored).hexdigest(),
            size_bytes=len(stored),
            media_type=current.media_type,
            made_for=current.made_for,
        )

    def get(self, image_id: str, version_id: str) -> bytes:
        (body,) = [version.body for version in self.kept[f"originals/{image_id}"] if version.version_id == version_id]
        assert body is not None
        return body

    def versions_of(self, image_id: str) -> Sequence[str]:
        return [version.version_id for version in self.kept.get(f"originals/{image_id}", [])]

    def page(self, after: tuple[str, str] | None) -> VersionPage:
        listed = [
            StoredVersion(
                key=key,
                image_id=name if key.startswith("originals/") and is_image_id(name) else None,
                version_id=version.version_id,
                stored_at=version.stored_at,
                size_bytes=len(version.body or b""),
                is_marker=version.body is None,
                is_latest=version is versions[-1],
            )
            for key, versions in sorted(self.kept.items())
            for name in [key.removeprefix("originals/")]
            for version in reversed(versions)
        ]
        places = [(version.key, version.version_id) for version in listed]
        begin = 0 if after is None else places.index(after) + 1
        page = tuple(listed[begin : begin + self.page_size])
        return VersionPage(
            versions=page,
            next=(page[-1].key, page[-1].version_id) if begin + self.page_size < len(listed) else None,
        )

    def hide(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        return {image_id: self.add(f"originals/{image_id}", None).version_id for image_id in image_ids}

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        for image_id, version_id in versions:
            key = f"originals/{image_id}"
            self.kept[key] = [version for version in self.kept.get(key, []) if version.version_id != version_id]
            if not self.kept[key]:
                del self.kept[key]
        return {}

    def add(self, key: str, body: bytes | None) -> _Version:
        """Adds a version of `key`, whatever is there."""
        self.made += 1
        version = _Version(version_id=f"v{self.made}", body=body, stored_at=self.clock())
        self.kept.setdefault(key, []).append(version)
        return version
