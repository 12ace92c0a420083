"""Pauses: the fake and the table, and what a process remembers of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from darkroom.aws.pauses.pauses_table import PausesTable, RememberedPauses
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.images.transitions import PARKED_SECONDS, delete, park
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.pauses.pauses import KNOWN_SECONDS, REMEMBERED_SECONDS, Pause
from darkroom.ports.images import Due
from darkroom.ports.pauses import nothing_paused
from darkroom.settings import PauseSettings
from darkroom.wiring.kernel.pauses import known_pauses_of
from darkroom_cli.operator.aws.lane_event_sources import LaneEventSources
from darkroom_cli.operator.aws.pause_registry import PauseRegistryTable
from darkroom_cli.operator.ports import PauseRegistry
from tests.contract.conftest import Aws
from tests.contract.drilled import Stack
from tests.contract.functions import Functions, call, document
from tests.contract.stores import images_of, lose_first_answer
from tests.support.fakes.pauses import FakePauses
from tests.support.faults import refuse
from tests.support.images import pending
from tests.support.webhooks import endpoint

NOW = 1_795_251_600_000
FAST = Pause(kind="lane", name="fast", since=NOW, reason="a bad deployment")


@pytest.fixture
def pauses(kind: str, aws: Aws) -> PauseRegistry:
    return FakePauses() if kind == "fake" else PauseRegistryTable(boto3.client("dynamodb"), aws.pauses_table)


@pytest.mark.guards("pause-twice-is-one", "pause-resumed-once")
def test_a_pause_begins_once_ends_once_and_may_begin_again(pauses: PauseRegistry) -> None:
    later = Pause(kind="lane", name="fast", since=NOW + 5, reason="again")
    assert pauses.resume("lane", "fast", NOW) is None
    assert pauses.pause(FAST) == pauses.pause(later) == FAST
    ended = Pause(kind="lane", name="fast", since=NOW, reason=FAST.reason, resumed_at=NOW + 9)
    assert pauses.resume("lane", "fast", NOW + 9) == pauses.resume("lane", "fast", NOW + 99) == ended
    assert pauses.all() == [ended]
    assert pauses.pause(later) == later
    acme = pauses.pause(Pause(kind="tenant", name="acme", since=NOW))
    assert sorted(map(str, pauses.all())) == sorted(map(str, (later, acme)))
    for _ in range(2):
        pauses.forget("tenant", "acme")
    assert pauses.all() == [later]


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_a_change_whose_answer_is_lost_is_recognized(operation: str, aws: Aws) -> None:
    client = boto3.client("dynamodb")
    pauses = PauseRegistryTable(client, aws.pauses_table)
    if operation == "resume":
        pauses.pause(FAST)
    lose_first_answer(client, "UpdateItem")
    if operation == "pause":
        assert pauses.pause(FAST) == FAST
    else:
        ended = pauses.resume("lane", "fast", NOW + 9)
        assert ended is not None and ended.resumed_at == NOW + 9


def test_an_ended_pause_is_forgotten_after_a_week_and_one_in_force_is_not(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    pauses = PauseRegistryTable(client, aws.pauses_table)
    pauses.pause(FAST)
    pauses.resume("lane", "fast", NOW)
    (item,) = client.scan(TableName=aws.pauses_table)["Items"]
    assert item["forget_at"] == {"N": str(NOW // 1000 + REMEMBERED_SECONDS)}
    pauses.pause(FAST)
    assert "forget_at" not in client.scan(TableName=aws.pauses_table)["Items"][0]


@pytest.mark.guards("pause-all-pages-read", "pause-unreadable-isolated")
def test_all_pages_are_read_and_an_unreadable_item_hides_no_other(aws: Aws) -> None:
    client = boto3.client("dynamodb")
    pauses = PauseRegistryTable(client, aws.pauses_table)
    for number in range(4):
        pauses.pause(Pause(kind="tenant", name=f"t{number}", since=NOW))
    client.put_item(TableName=aws.pauses_table, Item={"subject": {"S": "batch#1"}, "since": {"N": "1"}})

    def short(params: dict[str, Any], **_: Any) -> None:
        params["Limit"] = 2

    client.meta.events.register("provide-client-params.dynamodb.Scan", short)
    known = RememberedPauses(pauses, lambda: NOW)()
    assert sorted(known.by_subject) == [f"tenant#t{number}" for number in range(4)]


@pytest.mark.guards("pause-outage-keeps-last", "pause-clock-set-back")
def test_a_process_asks_again_after_some_seconds_and_goes_by_what_it_knows_while_the_table_is_out(aws: Aws) -> None:
    client, time = boto3.client("dynamodb"), [NOW]
    registry, known = PauseRegistryTable(client, aws.pauses_table), boto3.client("dynamodb")
    pauses = RememberedPauses(PausesTable(known, aws.pauses_table), lambda: time[0])
    assert pauses().of("fast") is None
    registry.pause(FAST)
    assert pauses().of("fast") is None, "it has just asked"
    time[0] += KNOWN_SECONDS * 1000
    assert pauses().of("fast") == FAST
    registry.resume("lane", "fast", NOW + 1)
    time[0] = NOW - 60_000
    assert pauses().of("fast") is None, "its clock was set back"
    registry.pause(FAST)
    time[0] += KNOWN_SECONDS * 1000
    assert pauses().of("fast") == FAST
    refuse(known, "Scan")
    registry.resume("lane", "fast", NOW + 2)
    time[0] += KNOWN_SECONDS * 1000
    assert pauses().of("fast") == FAST, "what it last knew"


def test_parked_images_are_found_until_they_end(kind: str, aws: Aws) -> None:
    images = images_of(kind, aws)
    parked = park(pending(image_id="1" * 26), now=NOW)
    expiring = park(pending(image_id="2" * 26, expires_at=NOW + 1), now=NOW)
    for image in (parked, expiring, pending(image_id="3" * 26)):
        images.create(image)
    assert {row.image_id for row in images.parked(NOW + PARKED_SECONDS * 1000)} == {"1" * 26, "2" * 26}
    assert images.postpone(Due(parked.due_at or 0, parked.image_id), NOW)
    assert list(images.parked(NOW)) == [replace(parked, due_at=NOW)]
    images.change(parked, delete(parked, now=NOW))
    assert [row.image_id for row in images.parked(NOW + PARKED_SECONDS * 1000)] == ["2" * 26]


@pytest.mark.guards("bulk-off-nothing-paused")
def test_a_stack_without_bulk_asks_for_no_pauses(aws: Aws) -> None:
    assert known_pauses_of(PauseSettings(), boto3.client("dynamodb")) is nothing_paused


@pytest.mark.guards("pause-parking-is-no-work")
def test_the_functions_park_what_is_paused_and_say_so(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    functions, pauses = Functions(aws, monkeypatch), PauseRegistryTable(boto3.client("dynamodb"), aws.pauses_table)
    image_id = document(functions.post())["id"]
    before = functions.get(f"/images/{image_id}/status")
    assert "paused" not in document(before)
    pauses.pause(Pause(kind="lane", name="slow", since=1))
    functions = Functions(aws, monkeypatch)  # which remember nothing
    etag = before["headers"]["ETag"]
    for path in (f"/images/{image_id}/status", f"/images/{image_id}"):
        shown = document(functions.get(path, if_none_match=etag))
        assert (shown["status"], shown["paused"], shown["estimated_seconds"]) == ("pending", True, None)
    assert document(functions.get("/images"))["images"][0]["paused"] is True
    assert functions.work() == {"batchItemFailures": []}
    assert functions.row(image_id).parked
    assert functions.transcode_image.counter.work == {}
    capsys.readouterr()
    call(functions.sweep_due_images, {})
    assert '"PausedSeconds"' in capsys.readouterr().out
    webhooks = EndpointsTable(boto3.client("dynamodb"), aws.endpoints_table)
    webhooks.create(endpoint(paused_at=1, due_at=1))
    assert call(functions.sweep_due_endpoints, {})["outcomes"] == {"paused": 1}
    assert '"PausedSeconds"' in capsys.readouterr().out


@pytest.mark.guards("pause-worker-counts-from-resume")
def test_the_worker_counts_an_image_from_the_end_of_the_pause(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    functions, pauses = Functions(aws, monkeypatch), PauseRegistryTable(boto3.client("dynamodb"), aws.pauses_table)
    row = functions.row(document(functions.post())["id"])
    long_ago = (row.waiting_since or 0) - 3_600_000
    functions.table.change(row, replace(row, waiting_since=long_ago))
    pauses.pause(Pause(kind="tenant", name=row.tenant_id, since=long_ago))
    pauses.resume("tenant", row.tenant_id, row.created_at)
    functions.work()
    (counted,) = functions.transcode_image.outcomes.counts.values()
    assert (counted.ended, counted.late) == (1, 0)


def test_a_lanes_event_source_is_switched_and_one_that_still_moves_is_tried_again(stack: Stack) -> None:
    client = stack.client("lambda")
    sources = LaneEventSources(client, {"slow": stack.physical_id("Mapping")})
    assert sources.is_on("slow")
    for _ in range(2):
        sources.switch("slow", False)
        assert not sources.is_on("slow")
    with Stubber(client) as stub:
        stub.add_client_error("update_event_source_mapping", "ResourceInUseException")
        with pytest.raises(Retryable):
            sources.switch("slow", True)
        for state, is_on in (("Disabling", False), ("Disabled", False), ("Enabling", True), ("Updating", True)):
            stub.add_response("get_event_source_mapping", {"State": state})
            assert sources.is_on("slow") is is_on
    sources.switch("slow", True)
    assert sources.is_on("slow")
