"""The records of a queue's event, and the answer that brings only some of them back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from darkroom.event_source import Record, read_records, settle_each
from repository.report import ROOT
from tests.support.faults import raising


def event(*ids: str) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": message_id,
                "receiptHandle": f"receipt of {message_id}",
                "body": f"body of {message_id}",
                "attributes": {"ApproximateReceiveCount": "3", "SentTimestamp": "1795251600123"},
                "messageAttributes": {"signature": {"dataType": "String", "stringValue": f"signature of {message_id}"}},
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:fast",
            }
            for message_id in ids
        ]
    }


def test_a_record_says_what_the_event_does() -> None:
    assert read_records(event("a")) == [
        Record(
            message_id="a",
            body="body of a",
            receipt_handle="receipt of a",
            receive_count=3,
            queue="fast",
            group=None,
            signature="signature of a",
            sent_at=1795251600123,
        )
    ]


@pytest.mark.guards("retry-event-without-messages")
@pytest.mark.parametrize("path", sorted((ROOT / "events").glob("*.json")), ids=lambda path: path.stem)
def test_an_example_is_an_event_of_a_queue_or_refused(path: Any) -> None:
    example = json.loads(path.read_text())
    if "sqs" in json.dumps(example.get("Records", "")):
        assert read_records(example)
    else:
        with pytest.raises(ValueError, match="SQS queue only"):
            read_records(example)


@pytest.mark.parametrize("lost", ["messageId", "receiptHandle", "body", "attributes", "eventSourceARN"])
def test_a_record_that_lacks_a_part_is_refused(lost: str) -> None:
    broken = event("a", "b")
    del broken["Records"][1][lost]
    with pytest.raises(ValueError, match=lost):
        read_records(broken)


def test_only_records_that_failed_come_back() -> None:
    settled: list[str] = []

    def settle(record: Record) -> None:
        settled.append(record.message_id)
        if record.message_id in "bd":
            raise KeyError(record.message_id)

    answer = settle_each(read_records(event("a", "b", "c", "d")), settle)
    assert settled == ["a", "b", "c", "d"], "each gets its turn"
    assert answer == {"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "d"}]}


@pytest.mark.guards("retry-record-isolated")
def test_a_batch_of_failures_is_no_failure_of_the_function() -> None:
    assert settle_each(read_records(event("a")), raising(KeyError("always"))) == {
        "batchItemFailures": [{"itemIdentifier": "a"}]
    }


def test_a_function_that_is_told_to_stop_stops() -> None:
    with pytest.raises(SystemExit):
        settle_each(read_records(event("a", "b")), raising(SystemExit))
