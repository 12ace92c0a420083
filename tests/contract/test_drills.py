"""The switches of drills on AWS, by moto; and the note of what was, of which a stack has one at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from darkroom.aws.bulk.reconciliations_table import ReconciliationsTable
from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.bulk.reconciliation import Difference, DifferenceKind
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.drill import work
from darkroom_cli.drill.opened import AnotherIsOpen, OpenDrill, OpenDrills
from darkroom_cli.drill.pages import Silence
from darkroom_cli.drill.switches import DRILL_POLICY, KINDS, Setting, Value, plan, put_back, throw
from darkroom_client.client import ApiError
from tests.contract.conftest import REGION, Aws
from tests.contract.drilled import ALARM, Stack

NOTE = OpenDrill(
    name="sweeper-off",
    token="mine",
    settings=(
        Setting(kind="schedule", target="Rule", before=True, during=False),
        Setting(kind="denied", target="Role", before=None, during=["s3:GetObjectVersion"]),
    ),
    began_at=1_000,
    expires_at=7_200_000,
)


@pytest.fixture
def drills(aws: Aws) -> OpenDrills:
    return OpenDrills(boto3.client("dynamodb", region_name=REGION), aws.throughput_table)


def test_none_is_open_before_and_afterwards(drills: OpenDrills) -> None:
    assert drills.find() is None
    drills.open(NOTE)
    drills.close(NOTE)
    assert drills.find() is None


@pytest.mark.guards("drill-one-at-a-time")
def test_a_second_drill_is_refused_and_told_of_the_first(drills: OpenDrills) -> None:
    drills.open(NOTE)
    with pytest.raises(AnotherIsOpen) as refused:
        drills.open(replace(NOTE, token="yours"))
    assert refused.value.drill == NOTE
    assert drills.find() == NOTE


@pytest.mark.guards("drill-lost-answer-own-token")
def test_a_drill_whose_own_answer_was_lost_may_begin(drills: OpenDrills) -> None:
    drills.open(NOTE)
    drills.open(NOTE)
    assert drills.find() == NOTE


def test_what_could_not_be_put_back_stays_noted(drills: OpenDrills) -> None:
    drills.open(NOTE)
    drills.close(NOTE, left=NOTE.settings[1:])
    assert drills.find() == replace(NOTE, settings=NOTE.settings[1:])


@pytest.mark.guards("drill-only-own-note-removed")
def test_another_drills_note_is_not_removed(drills: OpenDrills) -> None:
    other = replace(NOTE, token="yours")
    drills.open(other)
    drills.close(NOTE)
    drills.close(NOTE, left=NOTE.settings)
    assert drills.find() == other


def test_a_note_outlives_its_drill_by_weeks(drills: OpenDrills, aws: Aws) -> None:
    drills.open(NOTE)
    (item,) = boto3.client("dynamodb", region_name=REGION).scan(TableName=aws.throughput_table)["Items"]
    assert int(item["forget_at"]["N"]) > NOTE.expires_at // 1000 + 30 * 86_400


# ── Switches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


# But the limit of a table's writes, which moto does not know: the drill `throttled-table` throws it.
SWITCHES: list[tuple[str, str, Value, Value]] = [
    ("event_source", "Mapping", True, False),
    ("concurrency", "Worker", None, 0),
    ("handler", "Worker", "app.handler", "missing.handler"),
    ("variable", "Worker.SLOW_CONCURRENCY", "10", "2"),
    ("variable", "Worker.NEW", None, "1"),
    ("schedule", "Rule", True, False),
    ("denied", "Role", None, ["s3:GetObjectVersion"]),
    ("threshold", "Alarm", 100, 1),
    ("planted_row", "0" * 26, False, True),
]


@pytest.mark.parametrize(("kind", "target", "before", "during"), SWITCHES, ids=str)
def test_a_switch_is_thrown_and_put_back(stack: Stack, kind: str, target: str, before: Value, during: Value) -> None:
    setting = plan(stack, kind, target, during)
    assert setting.before == before
    throw(stack, setting)
    assert KINDS[kind].read(stack, target) == during
    put_back(stack, setting)
    assert KINDS[kind].read(stack, target) == before


def test_a_variable_leaves_the_others_alone(stack: Stack) -> None:
    throw(stack, plan(stack, "variable", "Worker.SLOW_CONCURRENCY", "2"))
    assert KINDS["variable"].read(stack, "Worker.OTHER") == "stays"


def test_a_threshold_leaves_the_rest_of_its_alarm_alone(stack: Stack) -> None:
    throw(stack, plan(stack, "threshold", "Alarm", 1))
    (alarm,) = stack.client("cloudwatch").describe_alarms(AlarmNames=["unusual"])["MetricAlarms"]
    assert alarm | ALARM | {"Threshold": 1.0} == alarm


def test_a_denial_leaves_the_roles_own_policies_alone(stack: Stack) -> None:
    statement = {"Effect": "Allow", "Action": ["s3:GetObjectVersion"], "Resource": "*"}
    own = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    stack.client("iam").put_role_policy(RoleName="worker", PolicyName="own", PolicyDocument=own)
    setting = plan(stack, "denied", "Role", ["s3:GetObjectVersion"])
    throw(stack, setting)
    assert set(stack.client("iam").list_role_policies(RoleName="worker")["PolicyNames"]) == {"own", DRILL_POLICY}
    put_back(stack, setting)
    assert stack.client("iam").list_role_policies(RoleName="worker")["PolicyNames"] == ["own"]


def test_a_planted_row_is_one_that_this_version_cannot_read(stack: Stack, aws: Aws) -> None:
    throw(stack, plan(stack, "planted_row", "0" * 26, True))
    with pytest.raises(UnreadableRow):
        ImagesTable(stack.client("dynamodb"), aws.images_table).get("0" * 26)


def test_a_planted_difference_is_confirmed_and_no_other_is_forgotten(aws: Aws) -> None:
    table = ReconciliationsTable(boto3.client("dynamodb"), aws.batches_table)
    other = Difference(
        kind=DifferenceKind.ROW_WITHOUT_ORIGINAL, image_id="1" * 26, key="o", first_seen=1, confirmed_at=2
    )
    table.put(other)
    stack: Any = SimpleNamespace(reconciliations=table)
    throw(stack, setting := plan(stack, "difference", "0" * 26, True))
    row = table.get()
    assert row is not None and (setting.before, row.confirmed, len(table.differences())) == (False, 2, 2)
    put_back(stack, setting)
    row = table.get()
    assert row is not None and (row.confirmed, table.differences()) == (1, [other])


@pytest.mark.guards("drill-restore-failure-isolated")
def test_everything_is_put_back_though_one_switch_fails_and_that_one_stays_noted(stack: Stack) -> None:
    target: Any = stack
    settings = (plan(stack, "schedule", "Rule", False), plan(stack, "denied", "Role", ["s3:GetObjectVersion"]))
    gone = Setting(kind="schedule", target="Gone", before=True, during=False)
    note = replace(NOTE, settings=(settings[0], gone, settings[1]))
    places = work.open_drills(target)
    places.open(note)
    for setting in settings:
        throw(stack, setting)
    object.__setattr__(target, "options", "")
    with pytest.raises(ApiError, match="Gone"):
        work.restore(target, note, Silence())
    assert [KINDS[setting.kind].read(stack, setting.target) for setting in settings] == [True, None]
    assert places.find() == replace(note, settings=(gone,))
