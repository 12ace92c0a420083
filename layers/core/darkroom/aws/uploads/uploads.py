"""The bucket for uploads that are too large for a request: it accepts what presigned forms allow."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import retryable
from darkroom.aws.kernel.missing import is_missing
from darkroom.aws.kernel.removal import remove_objects
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.uploads.upload_notification import upload_key
from darkroom.ports.uploads import UploadForm

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class UploadsBucket:
    """Implements the `Uploads` port with a bucket."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def form_for(
        self, image_id: str, *, sha256: str, size_bytes: int, media_type: str, seconds: int, now: Milliseconds
    ) -> UploadForm:
        # S3 computes the checksum of what it receives and refuses another one (BadDigest). A field of the form takes
        # the place of PutObject's header (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html), and a
        # condition of the policy requires the field with this value
        # (https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html).
        fields = {
            "Content-Type": media_type,
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
        }
        presigned = self._client.generate_presigned_post(
            Bucket=self._bucket_name,
            Key=upload_key(image_id),
            Fields=dict(fields),
            Conditions=[
                *({name: value} for name, value in fields.items()),  # guard: upload-form-fields
                ["content-length-range", size_bytes, size_bytes],  # guard: upload-form-size
            ],
            ExpiresIn=seconds,
        )
        # The policy's expiry counts from a moment after `now`, in whole seconds.
        return UploadForm(url=presigned["url"], fields=presigned["fields"], expires_at=(now // 1000 + seconds) * 1000)

    def size_bytes(self, image_id: str) -> int | None:
        key = upload_key(image_id)
        with retryable(f"looking at {key}"):
            try:
                return self._client.head_object(Bucket=self._bucket_name, Key=key)["ContentLength"]
            except ClientError as error:
                if not is_missing(self._client, self._bucket_name, key, error):
                    raise
                return None

    def get(self, image_id: str) -> bytes | None:
        key = upload_key(image_id)
        with retryable(f"fetching {key}"):
            try:
                # guard: objects-upload-checksum-mode
                answer = self._client.get_object(Bucket=self._bucket_name, Key=key, ChecksumMode="ENABLED")
                return answer["Body"].read()
            except ClientError as error:
                if not is_missing(self._client, self._bucket_name, key, error):
                    raise
                return None

    def remove(self, image_ids: Sequence[str]) -> Mapping[str, Exception]:
        targets = [(upload_key(image_id), "") for image_id in image_ids]
        failures = remove_objects(self._client, self._bucket_name, targets, "removing uploads")
        return {key.removeprefix(upload_key("")): failure for (key, _), failure in failures.items()}
