"""The files of imports, in the bucket for uploads: manifests that clients send with a form, and reports on rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, pages_of, retryable
from darkroom.aws.kernel.missing import is_missing
from darkroom.aws.kernel.removal import remove_objects
from darkroom.domain.kernel.errors import demand_none
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.ports.bulk import StoredManifest
from darkroom.ports.uploads import UploadForm

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REPORT_SECONDS = 3600
"""How long a report's URL is valid; less if the credentials that have signed it end sooner."""


class ManifestsBucket:
    """Implements the `Manifests` port with a bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def form_for(
        self, batch_id: str, *, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        presigned = self._client.generate_presigned_post(
            Bucket=self._bucket_name,
            Key=_manifest_key(batch_id),
            Fields={"Content-Type": media_type},
            Conditions=[
                {"Content-Type": media_type},
                ["content-length-range", size_bytes, size_bytes],  # guard: bulk-import-form-size
            ],
            ExpiresIn=seconds,
        )
        # The policy's expiry counts from a moment after `now`, in whole seconds.
        return UploadForm(url=presigned["url"], fields=presigned["fields"], expires_at=(now // 1000 + seconds) * 1000)

    def find(self, batch_id: str) -> StoredManifest | None:
        key = _manifest_key(batch_id)
        with retryable(f"looking at {key}"):
            try:
                stored = self._client.head_object(Bucket=self._bucket_name, Key=key)
            except ClientError as error:
                if not is_missing(self._client, self._bucket_name, key, error):
                    raise
                return None
        return StoredManifest(stored["ETag"], stored["ContentLength"])

    def read(self, batch_id: str, etag: str, *, offset: int, size_bytes: int) -> bytes | None:
        return self._get(
            _manifest_key(batch_id),
            Range=f"bytes={offset}-{offset + size_bytes - 1}",
            IfMatch=etag,  # guard: bulk-import-manifest-pinned
        )

    def put_report(self, batch_id: str, name: str, body: bytes) -> None:
        key = _report_key(batch_id, name)
        with retryable(f"storing {key}"):
            self._client.put_object(
                Bucket=self._bucket_name, Key=key, Body=body, ContentType="application/x-ndjson; charset=utf-8"
            )

    def report(self, batch_id: str, name: str) -> bytes | None:
        return self._get(_report_key(batch_id, name))

    def report_url(self, batch_id: str, name: str) -> str:
        report = {"Bucket": self._bucket_name, "Key": _report_key(batch_id, name)}
        return self._client.generate_presigned_url("get_object", report, REPORT_SECONDS)

    def remove(self, batch_id: str, name: str | None = None) -> None:
        key = _manifest_key(batch_id) if name is None else _report_key(batch_id, name)
        demand_none(remove_objects(self._client, self._bucket_name, [(key, "")], "removing a file of an import"))

    def forget(self, batch_id: str) -> None:
        pages: Any = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket_name, Prefix=_prefix_of(batch_id)
        )
        doing = "removing the files of an import"
        keys = [(entry["Key"], "") for page in pages_of(pages, doing) for entry in page.get("Contents", ())]
        demand_none(remove_objects(self._client, self._bucket_name, keys, doing))

    def _get(self, key: str, **how: Any) -> bytes | None:
        with retryable(f"fetching {key}"):
            try:
                body: bytes = self._client.get_object(Bucket=self._bucket_name, Key=key, **how)["Body"].read()
                return body
            except ClientError as error:
                # 412: it is another one (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html).
                if code_of(error) not in ("PreconditionFailed", "412") and not is_missing(
                    self._client, self._bucket_name, key, error
                ):
                    raise
                return None


def _prefix_of(batch_id: str) -> str:
    return f"imports/{batch_id}/"


def _manifest_key(batch_id: str) -> str:
    return f"{_prefix_of(batch_id)}manifest"


def _report_key(batch_id: str, name: str) -> str:
    return f"{_prefix_of(batch_id)}rejected-{name}.jsonl"
