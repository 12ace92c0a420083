"""Originals and outputs in S3: each key is written once, with If-None-Match, and S3 checks its SHA-256."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.kernel.missing import FORBIDDEN, MISSING, is_missing
from darkroom.aws.kernel.removal import remove_objects
from darkroom.domain.images.image import Variant
from darkroom.domain.images.stored_by import StoredVersion, original_key
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.ids import is_image_id
from darkroom.domain.kernel.visibility import VIEWER_SECONDS, Visibility, folder_of, visibility_of_key
from darkroom.ports.images import OriginalMissing, StoredOriginal, StoredOutput

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PRESIGNED_URL_SECONDS = 900
"""How long a variant's URL works; less than the lifetime of the function's role credentials (hours)."""


class OriginalsBucket:
    """Implements the `Originals` port with a versioned bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def put_if_absent(
        self, image_id: str, body: bytes, *, sha256: str, media_type: str, made_for: str = ""
    ) -> StoredOriginal:
        stored = _put_if_absent(
            self._client,
            self._bucket_name,
            original_key(image_id),
            body,
            sha256=sha256,
            media_type=media_type,
            made_for=made_for,
        )
        return StoredOriginal(
            version_id=stored.version_id,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            media_type=stored.media_type,
            made_for=stored.made_for,
        )

    def get(self, image_id: str, version_id: str) -> bytes:
        with retryable("fetching the original"):
            key = original_key(image_id)
            try:
                # guard: objects-accepted-version-read, objects-original-checksum-mode
                answer = self._client.get_object(
                    Bucket=self._bucket_name, Key=key, VersionId=version_id, ChecksumMode="ENABLED"
                )
            except ClientError as error:
                # A missing bucket or a denied call is a mistake in the deployment: it stays a bug.
                # guard: original-missing-object-only
                if not is_missing(self._client, self._bucket_name, key, error, version_id=version_id):
                    raise
                raise OriginalMissing(f"{key} has no version {version_id}") from error
            return answer["Body"].read()

    def versions_of(self, image_id: str) -> Sequence[str]:
        with retryable("listing the original's versions"):
            pages = self._client.get_paginator("list_object_versions").paginate(
                Bucket=self._bucket_name, Prefix=original_key(image_id)
            )
            return [
                version["VersionId"]
                for page in pages
                # guard: removal-delete-markers
                for version in [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
                if version["Key"] == original_key(image_id)
            ]

    def remove(self, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
        return remove_versions(self._client, self._bucket_name, versions)


def remove_versions(client: S3Client, bucket_name: str, versions: Sequence[tuple[str, str]]) -> Mapping[str, Exception]:
    """Removes versions of originals, each an image's id and the version's; returns, by image id, why one may still be
    there."""
    targets = [(original_key(image_id), version_id) for image_id, version_id in versions]
    failures = remove_objects(client, bucket_name, targets, "removing originals")
    return {key.removeprefix(original_key("")): failure for (key, _), failure in failures.items()}


def versions_listed(answer: Any) -> tuple[StoredVersion, ...]:
    """The versions and delete markers in an answer of ListObjectVersions, in the order of their keys."""
    listed = (
        (part == "DeleteMarkers", item) for part in ("Versions", "DeleteMarkers") for item in answer.get(part, ())
    )
    versions = [
        StoredVersion(
            key=item["Key"],
            image_id=_image_of(item["Key"]),
            version_id=item["VersionId"],
            stored_at=int(item["LastModified"].timestamp() * 1000),
            size_bytes=item.get("Size", 0),
            is_marker=is_marker,
            is_latest=item["IsLatest"],
        )
        for is_marker, item in listed
    ]
    return tuple(sorted(versions, key=lambda version: version.key.encode()))  # in S3's order


def _image_of(key: str) -> str | None:
    folder, _, name = key.partition("/")
    return name if f"{folder}/" == original_key("") and is_image_id(name) else None


class OutputsBucket:
    """Implements the `Outputs` port.

    `may_list` is whether the role has s3:ListBucket. Without it an object that is missing cannot be told from one that
    is forbidden, and both count as missing: the call that then stores the object fails if it is forbidden.
    """

    def __init__(self, client: S3Client, bucket_name: str, *, may_list: bool = True) -> None:
        self._client = client
        self._bucket_name = bucket_name
        self._may_list = may_list

    def put_if_absent(
        self, key: str, body: bytes, *, sha256: str, media_type: str, viewer_seconds: int | None = None
    ) -> StoredOutput:
        stored = _put_if_absent(
            self._client,
            self._bucket_name,
            key,
            body,
            sha256=sha256,
            media_type=media_type,
            may_list=self._may_list,
            for_edge=_for_edge(key, viewer_seconds),
        )
        return StoredOutput(sha256=stored.sha256, size_bytes=stored.size_bytes)

    def get(self, key: str) -> tuple[bytes, str]:
        with retryable(f"fetching {key}"):
            answer = self._client.get_object(Bucket=self._bucket_name, Key=key)
            return answer["Body"].read(), answer["ContentType"]

    def holds(self, variant: Variant) -> bool:
        with retryable(f"looking at {variant.key}"):
            try:
                head = self._client.head_object(Bucket=self._bucket_name, Key=variant.key, ChecksumMode="ENABLED")
            except ClientError as error:
                if not _is_missing(self._client, self._bucket_name, variant.key, error, may_list=self._may_list):
                    raise
                return False
        # An object that somebody else put there may lack this checksum: then its content is unknown.
        checksum = head.get("ChecksumSHA256")  # guard: outputs-missing-checksum
        # guard: objects-held-by-checksum
        return (head["ContentLength"], checksum) == (variant.size_bytes, _base64_of(variant.sha256))

    def keys_of(self, image_id: str, visibilities: Collection[Visibility]) -> Sequence[str]:
        with retryable("listing variants"):
            paginator = self._client.get_paginator("list_objects_v2")
            return [
                item["Key"]
                for visibility in visibilities
                for page in paginator.paginate(Bucket=self._bucket_name, Prefix=folder_of(visibility, image_id))
                for item in page.get("Contents", ())
            ]

    def remove(self, keys: Sequence[str]) -> Mapping[str, Exception]:
        targets = [(key, "") for key in keys]
        failures = remove_objects(self._client, self._bucket_name, targets, "removing variants")
        return {key: failure for (key, _), failure in failures.items()}

    def url_of(self, variant: Variant, *, for_head: bool = False) -> str:
        # The method is signed (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
        object_at = {"Bucket": self._bucket_name, "Key": variant.key}
        if for_head:
            return self._client.generate_presigned_url("head_object", object_at, PRESIGNED_URL_SECONDS)
        return self._client.generate_presigned_url("get_object", object_at, PRESIGNED_URL_SECONDS)


@dataclass(frozen=True, kw_only=True)
class _Stored:
    version_id: str  # empty in a bucket without versions
    sha256: str
    size_bytes: int
    media_type: str
    made_for: str


CACHE_CONTROL = "private, max-age=31536000, immutable"
"""Of every object that no edge reads: a key's bytes never change, and a cache that several people share must not keep
them."""

CACHE_TAG = "cache-tag"
"""The name of the metadata by which an edge forgets all objects of an image
(https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-by-cache-tag.html)."""

MADE_FOR = "made-for"
"""The name of the metadata of an object that says for what it was put."""


def _put_if_absent(
    client: S3Client,
    bucket_name: str,
    key: str,
    body: bytes,
    *,
    sha256: str,
    media_type: str,
    made_for: str = "",
    may_list: bool = True,
    for_edge: Mapping[str, Any] | None = None,
) -> _Stored:
    headers: dict[str, Any] = {"CacheControl": CACHE_CONTROL, **(for_edge or {})}
    if made_for:
        headers["Metadata"] = {MADE_FOR: made_for}
    try:
        with retryable(f"storing {key}"):
            answer = client.put_object(
                Bucket=bucket_name,
                Key=key,
                Body=body,
                ContentType=media_type,
                IfNoneMatch="*",  # guard: objects-put-if-none-match
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=_base64_of(sha256),  # guard: objects-checksum-on-write
                **headers,
            )
    except ClientError as error:
        if code_of(error) != "PreconditionFailed":
            raise
    else:
        return _Stored(
            version_id=answer.get("VersionId", ""),
            sha256=sha256,
            size_bytes=len(body),
            media_type=media_type,
            made_for=made_for,
        )
    # The key is taken: by an earlier request or worker, or by this one's own attempt whose answer was lost.
    with retryable(f"looking at {key}"):
        try:
            head = client.head_object(Bucket=bucket_name, Key=key, ChecksumMode="ENABLED")
        except ClientError as error:
            if not _is_missing(client, bucket_name, key, error, may_list=may_list):
                raise
            or_forbidden = "" if may_list else ", or may not be read"
            # guard: orphans-vanished-object
            raise Retryable(f"storing {key}: what was there has just gone{or_forbidden}") from error
    return _Stored(
        version_id=head.get("VersionId", ""),
        sha256=_hex_of(head["ChecksumSHA256"]),  # guard: objects-stored-output-counts
        size_bytes=head["ContentLength"],
        media_type=head.get("ContentType", media_type),
        made_for=head.get("Metadata", {}).get(MADE_FOR, ""),
    )


def _for_edge(key: str, viewer_seconds: int | None) -> Mapping[str, Any]:
    """What an object tells the edge and its viewers; nothing if no edge reads it."""
    visibility = visibility_of_key(key)
    if visibility is Visibility.PRIVATE:
        return {}
    keepers = "public" if visibility is Visibility.PUBLIC else "private"
    _, image_id, _, name = key.split("/")
    return {
        "CacheControl": f"{keepers}, max-age={viewer_seconds or VIEWER_SECONDS}, immutable",
        "ContentDisposition": f'inline; filename="{name}"',
        "Metadata": {CACHE_TAG: image_id},  # guard: edge-objects-tagged
    }


def _is_missing(client: S3Client, bucket_name: str, key: str, error: ClientError, *, may_list: bool) -> bool:
    if may_list:  # guard: objects-forbidden-looked-into
        return is_missing(client, bucket_name, key, error)
    return code_of(error) in MISSING | FORBIDDEN  # guard: objects-forbidden-as-missing


def _base64_of(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()


def _hex_of(checksum: str) -> str:
    return base64.b64decode(checksum).hex()
