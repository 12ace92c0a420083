"""Which answers of AWS mean "try again": everything else is a bug or a decision of ours and goes through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError, FlexibleChecksumError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as BotoConnectionError

from darkroom.domain.errors import Retryable

_RETRYABLE_CODES = frozenset(
    {
        # throttling, by the names that botocore's standard retry mode knows
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "OverLimit",
        # passing trouble that comes with a 4xx
        "RequestTimeout",
        "RequestTimeoutException",
        "ConditionalRequestConflict",  # S3 answers 409 while another conditional write of the key is under way
        "OperationAborted",
        "ReplicatedWriteConflictException",
        "TransactionConflictException",
        "KMSThrottlingException",
        "KmsThrottled",
    }
)


def code_of(error: ClientError) -> str:
    """The error code of an AWS answer, such as `ConditionalCheckFailedException`."""
    return error.response.get("Error", {}).get("Code", "")


def is_retryable(error: ClientError) -> bool:
    """Whether the same call may succeed later."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or code_of(error) in _RETRYABLE_CODES


@contextmanager
def retryable(doing: str) -> Iterator[None]:
    """Turns passing failures of AWS calls inside the block into Retryable; `doing` says what failed."""
    try:
        yield
    except ClientError as error:
        if is_retryable(error):
            raise Retryable(f"{doing}: {code_of(error)}") from error
        raise
    except (BotoConnectionError, HTTPClientError, IncompleteReadError, FlexibleChecksumError) as error:
        # No connection, no or half an answer, or bytes that were damaged on the way.
        raise Retryable(f"{doing}: {type(error).__name__}") from error
