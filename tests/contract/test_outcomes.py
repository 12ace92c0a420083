"""How attempts and images end: counted by lane and minute, by the fake and the table, the worker and the sweeper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.outcomes_table import OutcomesTable, partition_of
from darkroom.aws.images.throughput_table import LATEST_MINUTES, ThroughputTable
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.images.service_level import MINUTE, NO_OUTCOMES, Outcomes, failed_attempt, mark_of
from darkroom.domain.kernel.errors import Retryable
from darkroom.ports.images import OutcomeCounts
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, document, received
from tests.support.fakes.load_shedding import FakeOutcomes
from tests.support.faults import refuse

NOW = 1_795_251_600_000
EVERYTHING = Outcomes(attempts=5, failed_attempts=4, failing_marks=frozenset({7, 255}), ended=3, late=2, given_up=1)


@pytest.fixture
def counts(kind: str, aws: Aws) -> OutcomeCounts:
    return FakeOutcomes() if kind == "fake" else OutcomesTable(boto3.client("dynamodb"), aws.throughput_table)


def test_outcomes_add_up_by_lane_and_minute(counts: OutcomeCounts) -> None:
    assert counts.since("slow", 0) == {}
    counts.add("slow", NOW, EVERYTHING)
    counts.add("slow", NOW, failed_attempt("x"))
    counts.add("slow", NOW + MINUTE, Outcomes(attempts=1))
    counts.add("fast", NOW, Outcomes(ended=9))
    assert counts.since("slow", NOW) == {NOW: EVERYTHING + failed_attempt("x"), NOW + MINUTE: Outcomes(attempts=1)}
    assert counts.since("slow", NOW + 1) == {NOW + MINUTE: Outcomes(attempts=1)}
    assert counts.since("fast", NOW) == {NOW: Outcomes(ended=9)}


@pytest.mark.guards("outcomes-all-pages-read")
def test_many_minutes_are_read_page_by_page(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    counts = OutcomesTable(client, aws.throughput_table)
    for number in range(7):
        counts.add("slow", NOW + number * MINUTE, Outcomes(ended=number + 1))

    def short(params: dict[str, Any], **_: Any) -> None:
        params["Limit"] = 3

    client.meta.events.register("provide-client-params.dynamodb.Query", short)
    assert [minute.ended for minute in counts.since("slow", NOW).values()] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.guards("outcomes-own-partition")
def test_quiet_minutes_displace_none_with_work_from_which_load_shedding_derives_the_drain(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    throughput, counts = ThroughputTable(client, aws.throughput_table), OutcomesTable(client, aws.throughput_table)
    throughput.add("slow", Work(settled=30, busy_milliseconds=1000), NOW)
    for number in range(1, LATEST_MINUTES + 1):
        counts.add("slow", NOW + number * MINUTE, Outcomes(attempts=1))
    latest = throughput.latest("slow", NOW + (LATEST_MINUTES + 1) * MINUTE)
    assert latest == [Work(settled=30, busy_milliseconds=1000)]


def test_outcomes_are_forgotten_after_a_day(aws: Aws) -> None:
    OutcomesTable(boto3.client("dynamodb"), aws.throughput_table).add("slow", NOW, EVERYTHING)
    (item,) = boto3.client("dynamodb").scan(TableName=aws.throughput_table)["Items"]
    assert int(item["forget_at"]["N"]) == NOW // 1000 + 86_400


def test_what_another_version_counted_otherwise_is_passed_over(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    client.put_item(
        TableName=aws.throughput_table,
        Item={
            "lane": {"S": partition_of("slow")},
            "minute": {"N": str(NOW)},
            "attempts": {"M": {}},
            "ended": {"N": "3"},
            "failing_marks": {"S": "7"},
        },
    )
    assert OutcomesTable(client, aws.throughput_table).since("slow", NOW) == {NOW: Outcomes(ended=3)}


def test_a_table_that_does_not_answer_is_retryable(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    refuse(client, code="ThrottlingException", status=400)
    counts = OutcomesTable(client, aws.throughput_table)
    for ask in (lambda: counts.since("slow", NOW), lambda: counts.add("slow", NOW, EVERYTHING)):
        with pytest.raises(Retryable):
            ask()


# What the handlers count


def written(functions: Functions) -> Outcomes:
    """All that was written for the slow lane."""
    counts = OutcomesTable(boto3.client("dynamodb"), functions.aws.throughput_table)
    return sum(counts.since("slow", 0).values(), NO_OUTCOMES)


def unwritten(functions: Functions) -> Outcomes:
    """All that the worker has counted for the slow lane and not yet written."""
    return sum(functions.transcode_image.outcomes.counts.values(), NO_OUTCOMES)


def metrics(output: str) -> dict[str, Mapping[str, Any]]:
    """The last line of each metric, by its name."""
    lines = [json.loads(line) for line in output.splitlines() if '"_aws"' in line]
    return {name: line for line in lines for name in line if name[0].isupper()}


@pytest.mark.guards("worker-ended-images-metric")
def test_a_worker_counts_a_done_image_and_tells_how_long_it_took(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    functions.post()
    capsys.readouterr()
    functions.work()
    assert (written(functions), unwritten(functions)) == (NO_OUTCOMES, Outcomes(attempts=1, ended=1))
    emitted = metrics(capsys.readouterr().out)
    assert 0 < emitted["ImageSeconds"]["ImageSeconds"][0] < 60 and emitted["ImageSeconds"]["lane"] == "slow"
    budget = emitted["ImagesEnded"]
    assert (budget["ImagesEnded"], budget["service"], budget["lane"]) == ([1], "darkroom", "slow")
    assert emitted["ReceiveCount"]["ReceiveCount"] == [1]
    assert not {"ImagesGivenUp", "ImagesBad"} & emitted.keys()
    assert set(budget["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == {"service", "lane"}


def test_a_message_that_trips_a_bug_is_a_failed_attempt_too(functions: Functions) -> None:
    boto3.client("sqs").send_message(QueueUrl=functions.aws.slow_queue_url, MessageBody="no message of ours")
    functions.work()
    assert (written(functions).attempts, written(functions).failed_attempts) == (1, 1)


def test_an_image_that_is_given_up_is_counted_and_told(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image_id = document(functions.post())["id"]
    row = functions.row(image_id)
    ImagesTable(boto3.client("dynamodb"), functions.aws.images_table).change(row, replace(row, attempt=4))
    monkeypatch.setattr(functions.transcode_image.ports.originals, "get", lambda *_: 1 / 0)
    capsys.readouterr()
    functions.work()
    marks = frozenset({mark_of(image_id)})
    assert written(functions) == Outcomes(attempts=1, failed_attempts=1, failing_marks=marks, ended=1, given_up=1)
    emitted = metrics(capsys.readouterr().out)
    assert emitted["ImagesGivenUp"]["ImagesGivenUp"] == [1]
    assert (emitted["ImagesBad"]["ImagesBad"], emitted["ImagesBad"]["lane"]) == ([1], "slow")


def test_a_photo_that_is_refused_for_what_it_is_is_an_attempt_that_ended_well(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    functions.post(body=b"\xff\xd8\xff\xe0" + bytes(100))
    capsys.readouterr()
    functions.work()
    assert (written(functions), unwritten(functions)) == (NO_OUTCOMES, Outcomes(attempts=1))
    assert not {"ImageSeconds", "ImagesGivenUp"} & metrics(capsys.readouterr().out).keys()


def test_a_repeated_message_counts_nothing_again(functions: Functions) -> None:
    functions.post()
    event = received(functions.aws.slow_queue_url)
    call(functions.transcode_image, event)
    call(functions.transcode_image, event)
    assert unwritten(functions) == Outcomes(attempts=1, ended=1)


def test_a_table_that_refuses_the_counts_keeps_no_image_from_being_done(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ZeroDivisionError

    image_id = document(functions.post())["id"]
    monkeypatch.setattr(functions.transcode_image.worker.outcomes.outcome_counts, "add", refuse)
    monkeypatch.setattr(functions.transcode_image.ports.originals, "get", lambda *_: 1 / 0)
    answer = functions.work()
    assert len(answer["batchItemFailures"]) == 1
    assert functions.row(image_id).attempt == 1


def test_a_sweep_counts_what_it_gives_up(functions: Functions, capsys: pytest.CaptureFixture[str]) -> None:
    image_id = document(functions.post())["id"]
    row = functions.row(image_id)
    ImagesTable(boto3.client("dynamodb"), functions.aws.images_table).change(row, replace(row, attempt=5, due_at=1))
    capsys.readouterr()
    assert call(functions.sweep_due_images, {})["outcomes"] == {"gave_up": 1}
    assert written(functions) == Outcomes(ended=1, given_up=1)
    emitted = metrics(capsys.readouterr().out)
    assert emitted["ImagesGivenUp"]["ImagesGivenUp"] == [1]
    assert (emitted["ImagesBad"]["ImagesBad"], emitted["ImagesBad"]["lane"]) == ([1], "slow")
