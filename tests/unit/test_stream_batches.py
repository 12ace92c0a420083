"""What Lambda does with a batch of a stream: what it invokes the function with again, and what it discards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local_aws.stream_batches import (
    RETRIES_EXHAUSTED,
    Batch,
    Outcome,
    Settings,
    after_error,
    after_report,
    description_of_discarded,
    divided_by_age,
    settings_of,
)

SETTINGS = Settings(batch_size=10, lanes=1, retries=None, age_seconds=None, splits=False, reports=True)
SPLITTING = replace(SETTINGS, splits=True)


def record(number: int) -> dict[str, Any]:
    return {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": 1000 + number}}


def batch(*numbers: int, retries: int = 0, invocations: int = 0, is_function_error: bool = False) -> Batch:
    return Batch(
        records=[record(number) for number in numbers],
        retries=retries,
        invocations=invocations,
        is_function_error=is_function_error,
    )


def retry(again: Batch) -> Outcome:
    return Outcome(again=(again,), is_retry=True)


def test_a_report_without_failures_is_a_success() -> None:
    assert after_report(batch(1, 2, 3), [], SETTINGS) == Outcome()


@pytest.mark.guards("streams-retry-start")
@pytest.mark.parametrize("failed", [["2"], ["2", "3"], ["3", "2"]])
def test_everything_from_the_first_failed_record_on_is_retried(failed: list[str]) -> None:
    assert after_report(batch(1, 2, 3, 4), failed, SETTINGS) == retry(batch(2, 3, 4, retries=1, invocations=1))


@pytest.mark.guards("streams-split-with-headway")
def test_a_split_at_the_first_failed_record_is_no_retry() -> None:
    assert after_report(batch(1, 2, 3), ["2"], SPLITTING) == Outcome(again=(batch(2, 3, invocations=1),))


def test_a_batch_whose_first_record_failed_is_retried_as_a_whole() -> None:
    assert after_report(batch(1, 2, 3), ["1"], SPLITTING) == retry(batch(1, 2, 3, retries=1, invocations=1))


def test_a_batch_that_failed_is_retried_as_a_whole_and_a_single_record_is_not_split() -> None:
    failed = batch(1, 2, 3, retries=1, invocations=1, is_function_error=True)
    assert after_error(batch(1, 2, 3), SETTINGS) == retry(failed)
    failed = batch(1, retries=1, invocations=1, is_function_error=True)
    assert after_error(batch(1), SPLITTING) == retry(failed)


@pytest.mark.guards("streams-ordered-split")
@pytest.mark.parametrize(
    ("numbers", "halves"), [((1, 2, 3, 4), ((1, 2), (3, 4))), ((1, 2, 3), ((1,), (2, 3))), ((1, 2), ((1,), (2,)))]
)
def test_a_split_batch_is_passed_on_in_order_by_halves_which_are_no_retry(
    numbers: tuple[int, ...], halves: tuple[tuple[int, ...], ...]
) -> None:
    parts = tuple(batch(*half, retries=1, invocations=3, is_function_error=True) for half in halves)
    assert after_error(batch(*numbers, retries=1, invocations=2), SPLITTING) == Outcome(again=parts)


@pytest.mark.guards("streams-retry-limit")
@pytest.mark.parametrize(("retries", "is_discarded"), [(0, False), (1, False), (2, True)])
def test_a_batch_is_discarded_when_its_retries_are_used_up(retries: int, is_discarded: bool) -> None:
    settings = replace(SETTINGS, retries=2)
    error, report = (
        after_error(batch(1, retries=retries), settings),
        after_report(batch(1, retries=retries), ["1"], settings),
    )
    assert [bool(error.discarded), bool(report.discarded)] == [is_discarded, is_discarded]
    assert [bool(error.again), bool(report.again)] == [not is_discarded, not is_discarded]


def test_only_what_is_left_of_a_batch_is_discarded() -> None:
    outcome = after_report(batch(1, 2, 3), ["2"], replace(SETTINGS, retries=0))
    assert outcome == Outcome(discarded=batch(2, 3, invocations=1))


def test_old_records_are_told_from_the_others() -> None:
    assert divided_by_age(batch(1, 2, 3, retries=4), 10, now=1012.5) == (batch(1, 2, retries=4), batch(3, retries=4))
    assert divided_by_age(batch(1, 2), 10, now=1011) == (batch(), batch(1, 2))


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({}, Settings(batch_size=100, lanes=1, retries=None, age_seconds=None, splits=False, reports=False)),
        (
            {"MaximumRetryAttempts": -1, "MaximumRecordAgeInSeconds": "-1", "FunctionResponseTypes": None},
            Settings(batch_size=100, lanes=1, retries=None, age_seconds=None, splits=False, reports=False),
        ),
        (
            {
                "BatchSize": "5",
                "ParallelizationFactor": "2",
                "MaximumRetryAttempts": "0",
                "MaximumRecordAgeInSeconds": 60,
                "BisectBatchOnFunctionError": "true",
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            },
            Settings(batch_size=5, lanes=2, retries=0, age_seconds=60, splits=True, reports=True),
        ),
    ],
)
def test_settings_are_numbers_or_text_and_minus_one_is_no_limit(mapping: dict[str, Any], expected: Settings) -> None:
    assert settings_of(mapping) == expected


def description(discarded: Batch) -> dict[str, Any]:
    return description_of_discarded(
        discarded,
        condition=RETRIES_EXHAUSTED,
        request_id="316aa6d0",
        function={"FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:some", "Version": "$LATEST"},
        stream_arn="arn:aws:dynamodb:us-east-1:000000000000:table/some/stream/2026-01-01T00:00:00.000",
        shard_id="shardId-00000001573689847184-864758bb",
        now=1573690429.717,
    )


def test_what_is_discarded_is_described_by_its_place_in_the_stream() -> None:
    assert description(batch(1, 2, 3, invocations=2, is_function_error=True)) == {
        "requestContext": {
            "requestId": "316aa6d0",
            "functionArn": "arn:aws:lambda:us-east-1:000000000000:function:some",
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 2,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": "2019-11-14T00:13:49.717Z",
        "DDBStreamBatchInfo": {
            "shardId": "shardId-00000001573689847184-864758bb",
            "startSequenceNumber": "1",
            "endSequenceNumber": "3",
            "approximateArrivalOfFirstRecord": "1970-01-01T00:16:41Z",
            "approximateArrivalOfLastRecord": "1970-01-01T00:16:43Z",
            "batchSize": 3,
            "streamArn": "arn:aws:dynamodb:us-east-1:000000000000:table/some/stream/2026-01-01T00:00:00.000",
        },
    }


def test_the_description_tells_a_report_from_an_error_and_both_from_no_invocation() -> None:
    assert description(batch(1, invocations=1))["responseContext"]["functionError"] is None
    assert "responseContext" not in description(batch(1))
