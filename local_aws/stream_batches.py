"""What Lambda does with a batch of a stream: what it invokes the function with again, and what it discards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

RETRIES_EXHAUSTED = "RetryAttemptsExhausted"
TOO_OLD = "RecordAgeExceeded"

_UNLIMITED = -1
_DEFAULT_BATCH_SIZE = 100

type Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an event source mapping reads its stream; `retries` and `age_seconds` are None if there is no limit."""

    batch_size: int
    lanes: int
    retries: int | None
    age_seconds: int | None
    splits: bool
    reports: bool


def settings_of(mapping: Mapping[str, Any]) -> Settings:
    """Read a mapping's settings, whose values are text if a stack's parameters set them."""
    return Settings(
        batch_size=int(mapping.get("BatchSize") or _DEFAULT_BATCH_SIZE),
        lanes=int(mapping.get("ParallelizationFactor") or 1),
        retries=_limit(mapping.get("MaximumRetryAttempts")),
        age_seconds=_limit(mapping.get("MaximumRecordAgeInSeconds")),
        splits=is_true(mapping.get("BisectBatchOnFunctionError")),
        reports="ReportBatchItemFailures" in (mapping.get("FunctionResponseTypes") or []),
    )


def is_true(value: Any) -> bool:
    """Whether a property that may be text is true."""
    return str(value).lower() == "true"


def _limit(value: Any) -> int | None:
    return None if value is None or int(value) == _UNLIMITED else int(value)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Records that a function gets together, oldest first; how often they were retried and passed to it, and whether it
    raised an error the last time."""

    records: Sequence[Record]
    retries: int = 0
    invocations: int = 0
    is_function_error: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What follows from an invocation: the batches to pass on next, in order, and the batch to discard, if any.

    `is_retry` if the same records failed: it takes a pause.
    """

    again: Sequence[Batch] = ()
    discarded: Batch | None = None
    is_retry: bool = False


def sequence_number(record: Record) -> str:
    """The number by which a function reports a record."""
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


def after_report(batch: Batch, failed: Sequence[str], settings: Settings) -> Outcome:
    """Return what follows if the function reports that these records failed: all from the first of them on are retried.

    If batches are split, the first failed record is where this one is, and a split is not a retry.
    """
    positions = [position for position, record in enumerate(batch.records) if sequence_number(record) in failed]
    if not positions:
        return Outcome()
    left = replace(
        batch,
        records=batch.records[positions[0] :],  # guard: streams-retry-start
        invocations=batch.invocations + 1,
        is_function_error=False,
    )
    if settings.splits and positions[0] > 0:  # guard: streams-split-with-headway
        return Outcome(again=(left,))
    return _retry(left, settings)


def after_error(batch: Batch, settings: Settings) -> Outcome:
    """Return what follows if the whole batch failed: if batches are split, its halves are passed on by themselves."""
    batch = replace(batch, invocations=batch.invocations + 1, is_function_error=True)
    middle = len(batch.records) // 2
    if settings.splits and middle:
        halves = (batch.records[:middle], batch.records[middle:])  # guard: streams-ordered-split
        return Outcome(again=tuple(replace(batch, records=half) for half in halves))
    return _retry(batch, settings)


def _retry(batch: Batch, settings: Settings) -> Outcome:
    if settings.retries is not None and batch.retries >= settings.retries:  # guard: streams-retry-limit
        return Outcome(discarded=batch)
    return Outcome(again=(replace(batch, retries=batch.retries + 1),), is_retry=True)


def divided_by_age(batch: Batch, age_seconds: float, *, now: float) -> tuple[Batch, Batch]:
    """Return the records that are older than that, which are the first ones, and the others."""
    too_old = sum(_arrived(record) < now - age_seconds for record in batch.records)
    return replace(batch, records=batch.records[:too_old]), replace(batch, records=batch.records[too_old:])


def _arrived(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


def description_of_discarded(
    batch: Batch,
    *,
    condition: str,
    request_id: str,
    function: Mapping[str, Any],
    stream_arn: str,
    shard_id: str,
    now: float,
) -> dict[str, Any]:
    """Return the message to an on-failure destination: where the records are in the stream, and not the records.

    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    first, last = batch.records[0], batch.records[-1]
    response = {
        "statusCode": 200,
        "executedVersion": function.get("Version", "$LATEST"),
        "functionError": "Unhandled" if batch.is_function_error else None,
    }
    return {
        "requestContext": {
            "requestId": request_id,
            "functionArn": function["FunctionArn"],
            "condition": condition,
            "approximateInvokeCount": batch.invocations,
        },
        **({"responseContext": response} if batch.invocations else {}),
        "version": "1.0",
        "timestamp": _written(now, "milliseconds"),
        "DDBStreamBatchInfo": {
            "shardId": shard_id,
            "startSequenceNumber": sequence_number(first),
            "endSequenceNumber": sequence_number(last),
            "approximateArrivalOfFirstRecord": _written(_arrived(first), "seconds"),
            "approximateArrivalOfLastRecord": _written(_arrived(last), "seconds"),
            "batchSize": len(batch.records),
            "streamArn": stream_arn,
        },
    }


def _written(moment: float, precision: str) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
