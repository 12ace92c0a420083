"""Drills on the local stack: every alarm fires and clears by a real cause, with one page per incident; and half of a
table that is lost comes back.

Four of the drills in each run, in turns by the number of commits; all of them in the long form. `darkroom drill all`
runs them too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from darkroom.aws.images.images_table import ImagesTable
from darkroom.domain.images.image import Image
from darkroom_cli.drill.drills import DRILLS, Drill
from darkroom_cli.drill.opened import OpenDrills
from darkroom_cli.stack.operators import open_stack
from darkroom_cli.tenants import erase
from repository.report import ROOT
from tests.local.keyed import client, done, key_of
from tests.local.local_stack import LocalStack, document_in, wait_until
from tests.support.fakes.pictures import jpeg

pytestmark = pytest.mark.promise("drills")

A_RUN = 4
PATIENCE_SECONDS = 60


def turn() -> list[str]:
    """The drills of this run, in the order that they need."""
    names = list(DRILLS)
    if os.environ.get("LONG") == "1":
        return names
    counted = subprocess.run(
        ["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False
    )
    number = int(counted.stdout) if counted.returncode == 0 else 0
    chosen = {names[(number * A_RUN + place) % len(names)] for place in range(A_RUN)}
    return [name for name in names if name in chosen]


@dataclass(kw_only=True)
class Pager:
    """A queue that hears what the topic of the pages hears, as somebody on call would."""

    stack: LocalStack
    queue_url: str

    def heard(self) -> list[tuple[str, str]]:
        """The alarms and their new states, since the last time."""
        said = [json.loads(body["Message"]) for body in messages_of(self.stack, self.queue_url)]
        return [(notification["AlarmName"], notification["NewStateValue"]) for notification in said]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with keys and permissions, whose clock is moved."""
    local = LocalStack(state=tmp_path_factory.mktemp("drills"))
    with local.serving("--access", "keys", "--enforce-iam"):
        yield local


@pytest.fixture(scope="module")
def pager(stack: LocalStack) -> Pager:
    return Pager(stack=stack, queue_url=hearing(stack, "CriticalAlarms"))


def hearing(stack: LocalStack, topic: str, **attributes: str) -> str:
    """The address of a new queue that hears all that a topic says."""
    sqs = stack.client("sqs")
    url: str = sqs.create_queue(QueueName=f"hears-{topic}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allowed = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**allowed, "Resource": arn}]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    stack.client("sns").subscribe(
        TopicArn=stack.physical_id(topic), Protocol="sqs", Endpoint=arn, Attributes=attributes
    )
    return url


def messages_of(stack: LocalStack, queue_url: str) -> Iterator[dict[str, Any]]:
    """The bodies of a queue's messages, which are deleted."""
    sqs = stack.client("sqs")
    while messages := sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            yield json.loads(message["Body"])
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])


def results(stack: LocalStack, *names: str) -> list[dict[str, Any]]:
    """What `drill all` found for these."""
    said = stack.darkroom("drill", "all", "--json", *(option for name in names for option in ("--only", name)))
    document: list[dict[str, Any]] = document_in(said.stdout)
    return document


@pytest.mark.parametrize("drill", [DRILLS[name] for name in turn()], ids=turn())
def test_a_drill_fires_its_alarms_pages_once_and_all_clears(stack: LocalStack, pager: Pager, drill: Drill) -> None:
    wait_until_calm(stack)
    pager.heard()
    (result,) = results(stack, drill.name)
    assert result["problems"] == [], stack.darkroom("logs", "--level", "ERROR", "--since", "2h").stdout
    assert drill.expected <= set(result["fired"]) <= drill.allowed
    incident = stack.physical_id("IncidentAlarm")
    assert pager.heard() == ([(incident, "ALARM"), (incident, "OK")] if "IncidentAlarm" in result["fired"] else [])
    assert places(stack).find() is None


def wait_until_calm(stack: LocalStack) -> None:
    """Lets the minutes pass in which a stack that has just begun misses the sweeps of before."""
    cloudwatch = stack.client("cloudwatch")
    for _ in range(20):
        answer = cloudwatch.describe_alarms(
            AlarmNamePrefix="darkroom-", AlarmTypes=["MetricAlarm", "CompositeAlarm"], StateValue="ALARM"
        )
        if not answer["MetricAlarms"] and not answer["CompositeAlarms"]:
            return
        stack.darkroom("local", "warp", "60s")
        time.sleep(2)


def places(stack: LocalStack) -> OpenDrills:
    return OpenDrills(stack.client("dynamodb"), stack.physical_id("ThroughputTable"))


def rule_state(stack: LocalStack) -> str:
    name = stack.physical_id("SweepDueImagesFunctionEveryMinute")
    return str(stack.client("events").describe_rule(Name=name)["State"])


def begun(stack: LocalStack) -> subprocess.Popen[bytes]:
    """A drill that has switched off the sweeper's schedule."""
    wait_until_calm(stack)
    process = stack.start("drill", "sweeper-off")
    wait_until(lambda: rule_state(stack) == "DISABLED", "the schedule is off", seconds=PATIENCE_SECONDS)
    return process


def test_what_a_killed_drill_has_changed_is_put_back_by_undo(stack: LocalStack) -> None:
    process = begun(stack)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert rule_state(stack) == "DISABLED"
    refused = stack.darkroom("drill", "poison")
    assert refused.returncode == 1
    assert "Alarms are on" in refused.stdout or "drill undo" in refused.stdout
    listed = stack.darkroom("drill", "ls")
    assert "sweeper-off" in listed.stdout.splitlines()[-1], listed.stdout
    undone = stack.darkroom("drill", "undo")
    assert (undone.returncode, rule_state(stack)) == (0, "ENABLED"), undone.stdout
    again = stack.darkroom("drill", "undo")
    assert (again.returncode, "No drill is open" in again.stdout) == (0, True), again.stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP], ids=lambda how: how.name)
def test_a_drill_that_is_interrupted_puts_everything_back(stack: LocalStack, how: signal.Signals) -> None:
    # `nohup make test` has it ignored, and so would the drill.
    by_the_runner = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = begun(stack)
    finally:
        signal.signal(signal.SIGHUP, by_the_runner)
    os.kill(process.pid, how)
    assert process.wait(PATIENCE_SECONDS) == 130
    assert rule_state(stack) == "ENABLED"
    assert places(stack).find() is None


@pytest.mark.parametrize("how", ["on the page", signal.SIGHUP], ids=str)
def test_a_drill_of_the_operators_page_puts_everything_back_however_it_is_ended(
    stack: LocalStack, how: signal.Signals | str
) -> None:
    wait_until_calm(stack)
    # As in the test above.
    by_the_runner = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process, printed = stack.operate("--write")
    finally:
        signal.signal(signal.SIGHUP, by_the_runner)
    address, _, token = printed.partition("/app/#token=")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{address}/operate/api", headers=headers, trust_env=False, timeout=60) as page:
        run = page.post("/drill", json={"drill": "sweeper-off", "dry_run": False}).json()
        wait_until(lambda: rule_state(stack) == "DISABLED", "the schedule is off", seconds=PATIENCE_SECONDS)
        if isinstance(how, str):
            page.delete(f"/runs/{run['run']}")
            wait_until(lambda: page.get("/runs").json()["runs"][0]["ended"], "it has ended", seconds=PATIENCE_SECONDS)
            answer = page.get(f"/runs/{run['run']}").json()
            assert (answer["complete"], answer["notes"][-1]) == (False, "Stopped: everything was put back.")
    os.kill(process.pid, signal.SIGINT if isinstance(how, str) else how)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert rule_state(stack) == "ENABLED"
    assert places(stack).find() is None


def test_undo_says_that_somebody_was_there_before(stack: LocalStack) -> None:
    process = begun(stack)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    stack.client("events").enable_rule(Name=stack.physical_id("SweepDueImagesFunctionEveryMinute"))
    undone = stack.darkroom("drill", "undo")
    assert (undone.returncode, "it was so already" in undone.stdout) == (0, True), undone.stdout
    unknown = stack.darkroom("drill", "earthquake")
    assert (unknown.returncode, "there is no drill" in unknown.stdout) == (2, True), unknown.stdout


# ── Half of the images table is lost ─────────────────────────────────────────────────────────────────────────────────


def uploaded(stack: LocalStack, key: str, count: int) -> list[str]:
    """Uploads so many photos, and waits until they are developed; returns their ids."""
    with client(stack, key) as api:
        answers = [
            api.post("/images", content=jpeg(64, 48), headers={"Content-Type": "image/jpeg"}) for _ in range(count)
        ]
        ids = [str(answer.json()["id"]) for answer in answers]
        for image_id in ids:
            done(api, image_id)
    return ids


def restored(stack: LocalStack, *arguments: str) -> dict[str, Any]:
    """How many rows came back, and as what; what drills before had planted does not count."""
    said = stack.darkroom("restore", *arguments, "--yes", "--json")
    assert said.returncode == 0, said.stdout
    (table,) = document_in(said.stdout)["tables"]
    return {name: count for name, count in table["rows"].items() if count and name != "forgotten"}


def test_half_of_the_images_table_is_lost_and_comes_back_without_what_was_deleted_or_erased(
    stack: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant_id in ("keeper", "umbra"):
        assert stack.darkroom("tenants", "add", tenant_id, "--tier", "paid").returncode == 0
    key, events = key_of(stack, "keeper"), hearing(stack, "EventsTopic", RawMessageDelivery="true")
    kept, undeveloped, deleted, *untouched = uploaded(stack, key, 6)
    erased = uploaded(stack, key_of(stack, "umbra"), 2)
    table, dynamodb = stack.physical_id("ImagesTable"), stack.client("dynamodb")
    images = ImagesTable(dynamodb, table)
    others = dynamodb.scan(TableName=table, Select="COUNT")["Count"] - 8  # of drills before
    whose = stack.darkroom("restore")
    assert f"--source-table-name {table} --target-table-name {table}-restored" in whose.stdout, whose.stdout
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table,
        TargetTableName=f"{table}-restored",
        UseLatestRestorableTime=True,
        GlobalSecondaryIndexOverride=[],
    )

    late, *_ = uploaded(stack, key, 1)
    with client(stack, key) as api:
        assert api.delete(f"/images/{deleted}").status_code == 204
    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 0)
    monkeypatch.setattr(erase, "_LAG_SECONDS", 1)
    erase.erase(open_stack(None, None, environment={"DARKROOM_STATE_DIR": str(stack.state)}), ["umbra"], as_json=True)
    outputs = stack.physical_id("OutputsBucket")
    for variant in _there(images, undeveloped).variants:
        stack.client("s3").delete_object(Bucket=outputs, Key=variant.key)
    before = {image_id: _there(images, image_id) for image_id in (kept, late)}
    lost = [kept, undeveloped, deleted, *erased]
    for image_id in (*lost, late):
        dynamodb.delete_item(TableName=table, Key={"image_id": {"S": image_id}})

    assert restored(stack, f"{table}-restored") == {"restored": 1, "redone": 1, "tombstone": 3, "there": 3 + others}
    assert restored(stack, "--from-stream") == {"restored": 1}
    assert restored(stack, f"{table}-restored") == {"there": 8 + others}, "it may be repeated"

    for image_id, row in before.items():
        assert _there(images, image_id).variants == row.variants
    with client(stack, key) as api:
        for image_id in (kept, late, *untouched):
            assert api.get(f"/images/{image_id}/variants/thumb").status_code == 307
        stack.darkroom("local", "warp", "60s")  # the sweeper sends the message
        assert done(api, undeveloped)["status"] == "done"
        assert api.get(f"/images/{deleted}").status_code == 404
    for image_id in (deleted, *erased):
        assert _there(images, image_id).is_deleted
    published = [(event["type"], event["id"]) for event in messages_of(stack, events)]
    assert len(set(published)) == len(published)
    accepted = {event_id for kind, event_id in published if kind == "image.accepted"}
    assert accepted >= {f"{image_id}-1" for image_id in (*lost, late, *untouched)}


def _there(images: ImagesTable, image_id: str) -> Image:
    row = images.get(image_id)
    assert row is not None
    return row
