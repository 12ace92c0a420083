"""Tells an object that is missing from one that may not be read, also where S3 answers 403 for both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, is_passing

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# HEAD has no body, so botocore takes the status for the code.
MISSING = frozenset({"404", "NoSuchKey", "NoSuchVersion"})
FORBIDDEN = frozenset({"403", "AccessDenied"})


def is_missing(
    client: S3Client, bucket_name: str, key: str, error: ClientError, *, version_id: str | None = None
) -> bool:
    """Whether a read of the object (or of that version) failed because it is not there.

    S3 answers 404 only to those who may list the bucket, and does not document with which `s3:prefix` it checks that
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html). A role that may list this one key asks for its
    list where S3 answers 403. If that is refused too, or has the object, the read was denied: nothing is known then.
    """
    if code_of(error) in MISSING:
        return True
    if code_of(error) not in FORBIDDEN:  # guard: missing-forbidden-looked-into
        return False
    try:
        if version_id is None:
            listed = client.list_objects_v2(Bucket=bucket_name, Prefix=key, MaxKeys=1)
            # guard: missing-listed-object-exists
            return all(entry["Key"] != key for entry in listed.get("Contents", ()))
        versions = client.list_object_versions(Bucket=bucket_name, Prefix=key)
    except ClientError as refusal:
        if is_passing(refusal):  # guard: missing-list-outage-undecided
            raise
        return False
    is_listed = any(
        (version["Key"], version["VersionId"]) == (key, version_id) for version in versions.get("Versions", ())
    )
    return not is_listed and not versions["IsTruncated"]  # guard: missing-listed-version-exists
