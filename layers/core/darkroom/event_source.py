"""The records in which Lambda hands a queue's messages to a function, and the answers by which only some of a queue's
messages or a stream's writes come back
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting,
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.domain.kernel.signature import SIGNATURE, Received


@dataclass(frozen=True, kw_only=True)
class Record(Received):
    """A message as Lambda received it: `receive_count` includes this time, and `queue` is the queue's name."""

    receipt_handle: str
    receive_count: int
    queue: str


def read_records(event: Mapping[str, Any]) -> list[Record]:
    """The records of a queue's event. Raises ValueError for anything else, so that no message is taken for done."""
    try:
        return [
            Record(
                message_id=record["messageId"],
                body=record["body"],
                receipt_handle=record["receiptHandle"],
                receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
                queue=record["eventSourceARN"].rpartition(":")[2],
                group=record["attributes"].get("MessageGroupId"),
                signature=record["messageAttributes"].get(SIGNATURE, {}).get("stringValue"),
                sent_at=int(record["attributes"]["SentTimestamp"]),
            )
            for record in event["Records"]  # guard: retry-event-without-messages
        ]
    except (LookupError, TypeError) as error:
        raise ValueError(f"the function handles events of an SQS queue only, this one lacks: {error}") from error


def settle_each(records: Sequence[Record], settle: Callable[[Record], None]) -> dict[str, Any]:
    """Settles one record after the other. The function's answer: SQS deletes the messages but those whose settling
    raised an exception, even if that is all of them. If the handler raised it instead, that would count as an error of
    the function, and Lambda would slow the whole queue down."""
    failed = []
    for record in records:
        try:  # guard: retry-record-isolated
            settle(record)
        except Exception:
            failed.append(record)
    return come_back(failed)


def come_back(failed: Iterable[Record]) -> dict[str, Any]:
    """The function's answer by which the `failed` messages come back, and the rest of the batch is deleted."""
    return {"batchItemFailures": [{"itemIdentifier": record.message_id} for record in failed]}


def begin_again_at(place: str | None) -> dict[str, Any]:
    """The function's answer after which a stream hands over its write at `place` again, and all that follow it in its
    shard; None if nothing has to come back."""
    return {"batchItemFailures": [] if place is None else [{"itemIdentifier": place}]}
