"""The buckets of originals and variants, listed in the order of images' ids."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from darkroom.aws.images.objects import versions_listed
from darkroom.aws.kernel.errors import pages_of, retryable
from darkroom.domain.bulk.reconciliation import Objects
from darkroom.domain.images.stored_by import original_key
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.visibility import PREFIXES

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from darkroom.domain.images.stored_by import StoredVersion


class ListedOriginals:
    """Implements the `StoredObjects` port with the bucket of originals."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def between(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        for version in takewhile(lambda each: each.key < original_key(until), self._versions(original_key(since))):
            if version.image_id is not None:
                yield version.image_id, Objects(versions=(version,))

    def _versions(self, after: str) -> Iterator[StoredVersion]:
        place: Any = {"KeyMarker": after}
        while True:
            with retryable("listing the originals"):
                answer: Any = self._client.list_object_versions(
                    Bucket=self._bucket_name, Prefix=original_key(""), **place
                )
            yield from versions_listed(answer)
            if not answer.get("IsTruncated", False):
                return
            place = {"KeyMarker": answer["NextKeyMarker"], "VersionIdMarker": answer.get("NextVersionIdMarker", "")}


class ListedVariants:
    """Implements the `StoredObjects` port with the bucket of variants."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def between(self, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        parts = (self._of_prefix(prefix, since, until) for prefix in PREFIXES.values())
        return merge(*parts, key=itemgetter(0))

    def _of_prefix(self, prefix: str, since: str, until: str) -> Iterator[tuple[str, Objects]]:
        pages: Any = self._client.get_paginator("list_objects_v2").paginate(
            # Of an image that `since` names, everything comes before a "0".
            Bucket=self._bucket_name,
            Prefix=prefix,
            StartAfter=f"{prefix}{since}0",
        )
        for page in pages_of(pages, "listing the variants"):
            for item in page.get("Contents", ()):
                image_id = item["Key"].removeprefix(prefix).partition("/")[0]
                if image_id >= until:
                    return
                if is_image_id(image_id):
                    yield image_id, Objects(keys=frozenset({item["Key"]}))
