"""AWS clients with timeouts and retries chosen on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# Every call is idempotent or conditional, so a retry is safe. Two attempts: what fails twice is better answered by a
# 503 or by the queue's redelivery than waited for inside a function that bills by the millisecond.
_QUICK = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})

# Objects are up to 25 MB; SigV4 because a presigned URL of the default signature version is refused by newer regions
# and by buckets with KMS encryption (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html).
_OBJECTS = Config(
    connect_timeout=1,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 2},
    signature_version="s3v4",
)


def dynamodb_client() -> DynamoDBClient:
    """A DynamoDB client whose call takes at most about 8 seconds, retries included."""
    return boto3.client("dynamodb", config=_QUICK)


def sqs_client() -> SQSClient:
    """An SQS client whose call takes at most about 8 seconds, retries included."""
    return boto3.client("sqs", config=_QUICK)


def s3_client() -> S3Client:
    """An S3 client that signs with SigV4."""
    return boto3.client("s3", config=_OBJECTS)
