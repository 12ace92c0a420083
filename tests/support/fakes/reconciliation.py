"""A reconciliation in memory, and what it compares, over the fakes of rows and buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from darkroom.domain.bulk.reconciliation import Difference, Objects, Reconciliation
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.visibility import PREFIXES
from darkroom.ports.bulk import ListedIds
from darkroom.ports.kernel import Fenced, UnreadableRow
from tests.support.fakes.originals import FakeVersionedOriginals
from tests.support.fakes.rows import changed
from tests.support.fakes.stores import FakeImages, FakeOutputs

PLACE = "reconciliation"


@dataclass
class FakeReconciliations:
    """The `Reconciliations` port over three dictionaries."""

    rows: dict[str, Reconciliation] = field(default_factory=dict)
    listed: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    recorded: dict[str, Difference] = field(default_factory=dict)

    def get(self) -> Reconciliation | None:
        return self.rows.get(PLACE)

    def create(self, row: Reconciliation) -> Reconciliation:
        return self.rows.setdefault(PLACE, row)

    def change(self, before: Reconciliation, after: Reconciliation) -> Reconciliation:
        return changed(self.rows, PLACE, before, after)

    def put_ids(self, before: Reconciliation, after: Reconciliation, image_ids: Sequence[str]) -> Reconciliation:
        current = self.rows.get(PLACE)
        if current is None or current.version != before.version:
            raise Fenced(current)
        self.listed[after.nights, before.version] = tuple(image_ids)
        return changed(self.rows, PLACE, before, after)

    def ids(self, nights: int, *, after: str) -> Iterator[str]:
        some = (ids for (night, _), ids in self.listed.items() if night == nights)
        yield from sorted(image_id for ids in some for image_id in ids if image_id > after)

    def differences(self) -> Sequence[Difference]:
        return [self.recorded[name] for name in sorted(self.recorded)]

    def put(self, difference: Difference) -> None:
        self.recorded[difference.name] = difference

    def remove(self, difference: Difference) -> None:
        self.recorded.pop(difference.name, None)


@dataclass
class FakeImageListing:
    """The `ImageListing` port over the fake images, in parts of `page_size`."""

    images: FakeImages
    page_size: int = 3

    def between(self, since: str, until: str, *, before: Milliseconds, after: str | None) -> ListedIds:
        rows = [row for row in (self.images.rows | self.images.unreadable).values() if not row.is_deleted]
        order = sorted(row.image_id[::-1] for row in rows if after is None or row.image_id[::-1] > after)
        part = [place[::-1] for place in order[: self.page_size]]
        young = {row.image_id for row in rows if row.created_at >= before}
        return ListedIds(
            image_ids=tuple(image_id for image_id in part if since < image_id < until and image_id not in young),
            next=order[self.page_size - 1] if len(order) > self.page_size else None,
        )

    def rows(self, image_ids: Sequence[str]) -> Mapping[str, Image | UnreadableRow]:
        return self.images.get_all(image_ids)


@dataclass
class FakeStoredOriginals:
    """The `StoredObjects` port over the fake originals."""

    originals: FakeVersionedOriginals

    def between(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        after: tuple[str, str] | None = None
        while True:
            page = self.originals.page(after)
            for version in page.versions:
                if version.image_id is not None and since < version.image_id < until:
                    yield version.image_id, Objects(versions=(version,))
            after = page.next
            if after is None:
                return


@dataclass
class FakeStoredVariants:
    """The `StoredObjects` port over the fake outputs."""

    outputs: FakeOutputs

    def between(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        parts = ((key.split("/")[1], key) for key in self.outputs.objects if key.startswith(tuple(PREFIXES.values())))
        for image_id, key in sorted(parts):
            if is_image_id(image_id) and since < image_id < until:
                yield image_id, Objects(keys=frozenset({key}))
