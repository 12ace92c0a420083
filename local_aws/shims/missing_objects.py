"""Answers 404 for a missing object only to those who may list its bucket.

Gap: MiniStack answers 404 for a missing object to everybody who may read objects.
AWS: "If the object you request doesn't exist […]: if you have the s3:ListBucket permission on the bucket, Amazon S3
returns an HTTP status code 404 error. If you don't have the s3:ListBucket permission, Amazon S3 returns an HTTP status
code 403 error." The object's key counts as `s3:prefix`.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
https://github.com/ceph/ceph/pull/68577 (which did the same for another implementation, after AWS's behaviour)

What still differs from AWS: reads of a single version.
"""

from collections.abc import Callable
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Ask for the permission to list wherever the object of an allowed read is missing."""
    replace(internals("core.iam_evaluator"), "enforce", _asking_for_missing)


def _asking_for_missing(enforce: Callable[..., Any]) -> Callable[..., Any]:
    def asking(access_key_id: str, iam_action: str, *place: str, **resource: Any) -> Any:
        denied = enforce(access_key_id, iam_action, *place, **resource)
        if denied or iam_action != "s3:GetObject":
            return denied
        bucket_arn, _, key = resource["resource_arn"].partition("/")
        bucket = internals("services.s3")._buckets.get(bucket_arn.rpartition(":")[2])
        if bucket is None or not key or key in bucket["objects"]:
            return None
        return enforce(
            access_key_id, "s3:ListBucket", *place, resource_arn=bucket_arn, service_context={"s3:prefix": key}
        )

    return asking
