"""The originals' bucket with all its versions: lists, hides and removes them by the thousand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from darkroom.aws.images.objects import remove_versions, versions_listed
from darkroom.aws.kernel.errors import retryable
from darkroom.aws.kernel.removal import failure_of
from darkroom.domain.images.stored_by import original_key
from darkroom_cli.operator.ports import VersionPage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PREFIX = original_key("")


class OriginalVersionsBucket:
    """Implements the `OriginalVersions` port with a versioned bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def page(self, after: tuple[str, str] | None) -> VersionPage:
        key_marker, version_marker = after or ("", "")
        # S3 refuses a version marker without its key; empty ones mean "from the first".
        places: dict[str, Any] = {"KeyMarker": key_marker, "VersionIdMarker": version_marker}
        with retryable("listing the originals"):
            answer: Any = self._client.list_object_versions(
                Bucket=self._bucket_name, **{name: value for name, value in places.items() if value}
            )
        goes_on = answer.get("IsTruncated", False)
        return VersionPage(
            versions=versions_listed(answer),
            next=(answer["NextKeyMarker"], answer.get("NextVersionIdMarker", "")) if goes_on else None,
        )

    def hide(self, image_ids: Sequence[str]) -> Mapping[str, str]:
        if not image_ids:
            return {}
        objects: Any = [{"Key": original_key(image_id)} for image_id in image_ids]
        with retryable("hiding originals"):
            answer: Any = self._client.delete_objects(Bucket=self._bucket_name, Delete={"Objects": objects})
        for error in answer.get("Errors", ()):
            raise failure_of(error, "hiding originals")
        return {
            deleted["Key"].removeprefix(_PREFIX): deleted["DeleteMarkerVersionId"]
            for deleted in answer.get("Deleted", ())
            if deleted.get("DeleteMarker")
        }

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        return remove_versions(self._client, self._bucket_name, versions)
