"""Schedules: the fake and the table of AWS alike."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.batches_table import BatchesTable
from darkroom.aws.bulk.schedules_table import SchedulesTable
from darkroom.domain.bulk.schedules import Missed, Plan, RunOutcome, Schedule, add, begin, claim, end, pause, run_now
from darkroom.ports.bulk import DueRow, Schedules
from darkroom.ports.kernel import Fenced
from darkroom_cli.operator.aws.batch_registry import BatchRegistryTable
from local_aws.event_patterns import passes
from repository.expand_template import resources
from tests.contract.conftest import Aws
from tests.contract.functions import Functions, call, received, written
from tests.contract.stores import lose_first_answer
from tests.support.fakes.batch_rows import FakeSchedules
from tests.support.fakes.imports import FakeManifests

NOW = 1_795_251_600_000


@pytest.fixture
def client(aws: Aws) -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def schedules(kind: str, aws: Aws, client: Any) -> Schedules:
    return FakeSchedules() if kind == "fake" else SchedulesTable(client, aws.batches_table)


def added(number: int = 1, **plan: Any) -> Schedule:
    stated = {"cron": "0 4 * * *", "job": "announce", "target": "acme", **plan}
    return add(Plan(name=f"n-{number}", **stated), now=NOW + number)


def test_a_schedule_is_added_once_changed_under_its_version_listed_and_removed(schedules: Schedules) -> None:
    assert schedules.get("sc_n-1") is None
    plan: dict[str, Any] = {"timezone": "Europe/Berlin", "missed": Missed.CATCH_UP, "jitter_seconds": 600}
    first = schedules.create(added(**plan))
    assert schedules.create(added()) == first == schedules.get("sc_n-1")
    second = schedules.create(added(2))
    begun = schedules.change(first, claim(begin(first, now=NOW), now=NOW))
    assert schedules.get("sc_n-1") == begun and begun.version == 2
    with pytest.raises(Fenced) as lost:
        schedules.change(first, pause(first, now=NOW))
    assert lost.value.current == begun
    ended = schedules.change(begun, pause(end(begun, RunOutcome.FAILED, now=NOW, error="a bug"), now=NOW))
    assert schedules.get("sc_n-1") == ended and ended.due_at is None
    assert list(schedules.all()) == [ended, second]
    schedules.remove(second)
    schedules.remove(second)  # whose answer was lost
    assert list(schedules.all()) == [ended]


@pytest.mark.guards("bulk-schedules-removed-as-read", case="aws")
def test_a_schedule_that_has_changed_is_not_removed(schedules: Schedules) -> None:
    row = schedules.create(added())
    changed = schedules.change(row, claim(begin(row, now=NOW), now=NOW))
    with pytest.raises(Fenced) as lost:
        schedules.remove(row)
    assert lost.value.current == changed == schedules.get("sc_n-1")


def test_a_schedule_is_due_and_no_batch_and_a_lost_answer_is_no_loss(aws: Aws, client: Any) -> None:
    schedules = SchedulesTable(client, aws.batches_table)
    row = schedules.create(added())
    assert row.due_at is not None
    due = list(BatchesTable(client, aws.batches_table).due(row.due_at, 10))
    assert due == [DueRow(row.due_at, "sc_n-1", "schedule")]
    lose_first_answer(client, "UpdateItem")
    begun = schedules.change(row, claim(begin(row, now=NOW), now=NOW))
    assert schedules.get("sc_n-1") == begun
    nothing: Any = FakeManifests()
    assert list(BatchRegistryTable(client, aws.batches_table, nothing).everything()) == []
    lose_first_answer(client, "DeleteItem")
    schedules.remove(begun)
    assert schedules.get("sc_n-1") is None


def test_a_tick_runs_what_is_due_and_its_webhooks_hear_of_it_once(aws: Aws, functions: Functions, client: Any) -> None:
    schedules = SchedulesTable(client, aws.batches_table)
    row = schedules.create(replace(added(), due_at=1))
    row = schedules.change(row, run_now(row, now=NOW))
    for _ in range(2):
        assert call(functions.sweep_due_bulk, {})["complete"] is True
    ended = schedules.get("sc_n-1")
    assert ended is not None and (ended.completed_for, ended.running_for) == (NOW, None)
    assert ended.due_at is not None and ended.due_at > ended.created_at
    mapping = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionBatchesTable"]
    records = [each for each in written(aws.batches_table) if passes(mapping["FilterCriteria"]["Filters"], each)]
    assert call(functions.publish_events, {"Records": records}) == {"batchItemFailures": []}
    (body,) = [json.loads(record["body"]) for record in received(aws.webhooks_queue_url)["Records"]]
    assert (body["type"], body["id"], body["data"]["name"]) == ("schedule.due", f"sc_n-1-{NOW // 1000}", "n-1")
