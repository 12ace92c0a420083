"""Decides which AWS errors mean "try again"; every other error is a bug or a decision of ours and propagates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, FlexibleChecksumError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from darkroom.domain.kernel.errors import Misconfigured, Retryable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The service has no capacity for the call now, or not in time: the codes that botocore's standard retry mode knows
# (botocore/retries/standard.py), and those that the models of S3, DynamoDB, SQS and Step Functions add.
_OVERLOADED = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "ExecutionLimitExceeded",  # Step Functions: a million executions are open
        "KmsThrottled",
        "KMSThrottlingException",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",  # S3, 400: the request's body came too slowly
        "RequestTimeoutException",
        "SlowDown",  # S3, 503
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)

# The service is healthy, and another write of the same key is in progress.
_CONTENDED = frozenset(
    {
        # S3, 409: another conditional write of the key is under way, "upload the object again"
        # (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html).
        "ConditionalRequestConflict",
        "OperationAborted",  # S3, 409: "a conflicting conditional operation is currently in progress"
        "ReplicatedWriteConflictException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)

# The request was intact when it left: its checksum was computed from the bytes in memory.
_DAMAGED_ON_THE_WAY = frozenset({"BadDigest", "IncompleteBody"})

# The clock or the credentials of this execution environment are out of date; another environment's are not. DynamoDB
# answers InvalidSignatureException for a skewed clock and for a wrong key alike, so that one stays a bug.
_ENVIRONMENT_OUT_OF_DATE = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed"}
)

# What the call needs is denied, gone or disabled: a policy, a key or a resource is not as the stack was deployed. The
# codes of the models of S3, DynamoDB, SQS, SNS, Step Functions and Secrets Manager, besides all that say KMS, and what
# every service answers (https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html). S3 answers 403 to HEAD.
_REFUSED = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "AccessDenied",
        "AccessDeniedException",
        "AllAccessDisabled",
        "AuthorizationError",
        "DecryptionFailure",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "NoSuchBucket",
        "NotFound",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "StateMachineDoesNotExist",
        "UnrecognizedClientException",
    }
)

_PASSING = _OVERLOADED | _CONTENDED | _DAMAGED_ON_THE_WAY | _ENVIRONMENT_OUT_OF_DATE

# No connection, no answer in time, half an answer, or one that was damaged in transit.
_NO_ANSWER = (BotoConnectionError, HTTPClientError, IncompleteReadError, FlexibleChecksumError, ResponseParserError)


def code_of(error: ClientError) -> str:
    """The error code of an AWS answer, such as `ConditionalCheckFailedException`."""
    return error.response.get("Error", {}).get("Code", "")


def failure_of(error: Exception) -> str:
    """AWS's code of a failed call; the exception's type if there is none, because AWS did not answer."""
    return (code_of(error) if isinstance(error, ClientError) else "") or type(error).__name__


def _with_notes_of[Failure: Exception](error: Exception, failure: Failure) -> Failure:
    """The failure, with what `clients` noted about the call: a stack is kept only from its end."""
    for note in getattr(error, "__notes__", ()):
        failure.add_note(note)
    return failure


def is_passing(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return is_outage(error) or (isinstance(error, ClientError) and is_passing_code(code_of(error)))


def is_passing_code(code: str) -> bool:
    """Whether an error with that code is transient."""
    return code in _PASSING


def is_outage(error: Exception) -> bool:
    """Whether the service, or the way to it, cannot serve any call now, so that the fault is not this call's."""
    if not isinstance(error, ClientError):
        return isinstance(error, _NO_ANSWER)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (
        status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or status == HTTPStatus.TOO_MANY_REQUESTS
        or code_of(error) in _OVERLOADED
    )


def is_refused(error: ClientError) -> bool:
    """Whether the call itself was right, and only an operator can make it succeed."""
    if is_passing(error):
        return False
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = code_of(error)
    return code in _REFUSED or code.upper().startswith("KMS") or status == HTTPStatus.FORBIDDEN


@contextmanager
def mendable() -> Iterator[None]:
    """Turns refused AWS calls inside the block into Misconfigured, for those who answer a client."""
    try:
        yield
    except ClientError as error:
        if not is_refused(error):  # guard: denied-own-mistake-not-masked
            raise
        message = "; ".join(getattr(error, "__notes__", ())) or f"{error.operation_name}: {code_of(error)}"
        raise Misconfigured(message) from error


@contextmanager
def retryable(doing: str) -> Iterator[None]:
    """Turns transient failures of AWS calls inside the block into Retryable; `doing` says what failed."""
    try:
        yield
    except Exception as error:
        if not is_passing(error):
            raise
        raise _with_notes_of(error, Retryable(f"{doing}: {failure_of(error)}")) from error


def pages_of(pages: Iterable[Any], doing: str) -> Iterator[Any]:
    """The pages of a paginator's answer, read as the caller iterates; `doing` says what failed, as in `retryable`."""
    reading = iter(pages)
    while True:
        with retryable(doing):
            page = next(reading, None)
        if page is None:
            return
        yield page


_BATCH_READS = 4
"""How often items that a batch left out are requested again."""


def items_at(
    client: DynamoDBClient, table_name: str, keys: Sequence[Mapping[str, Any]], doing: str, **how: Any
) -> list[dict[str, Any]]:
    """The items that a table has at the keys, of which there are 100 at most, in any order; `how` are the other
    arguments of BatchGetItem for a table. Raises Retryable; `doing` says what failed, as in `retryable`."""
    items: list[dict[str, Any]] = []
    left: Any = keys
    for _ in range(_BATCH_READS):
        if not left:
            return items
        asked: Any = {"Keys": left, **how}
        with retryable(doing):
            answer: Any = client.batch_get_item(RequestItems={table_name: asked})
        items += answer["Responses"].get(table_name, [])
        # A batch may be read only in part, with a 200.
        # guard: batches-unprocessed-rows-reread
        left = answer.get("UnprocessedKeys", {}).get(table_name, {}).get("Keys", [])
    if left:
        raise Retryable(f"{doing}: some were left out each time")
    return items
