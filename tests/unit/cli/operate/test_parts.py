"""What the operators' page reads: the command line's documents, over the fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from darkroom.domain.bulk.batches import Batch
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.pauses.pauses import Pause
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operate.parts import HISTORY_SECONDS, Parts
from darkroom_cli.operate.problems import OperateProblem
from darkroom_cli.operator.domain.observation import History, LaneHistory
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.top import commands as top
from darkroom_client.client import ApiError
from tests.support.fakes.audit import trail_of
from tests.support.fakes.backfills import BackfillsWorld
from tests.support.fakes.batches import BatchesWorld
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.operate.conftest import Served, observed_stack

UNKNOWN = f"{99:026d}"


@pytest.fixture
def fresh() -> FakeStack:
    return observed_stack()


def parts_of(stack: FakeStack, **options: Any) -> Parts:
    console_stack: Any = stack
    return Parts(console_stack, **options)


def test_the_overview_is_the_document_of_top(fresh: FakeStack, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.world.fail(1)
    fresh.world.give_up(2)
    monkeypatch.setattr(top, "reach", lambda *_: fresh)
    assert parts_of(fresh).read("overview", {}) == json.loads(run("top", "--json").stdout)


def test_an_overview_that_is_asked_for_again_asks_only_for_what_has_changed(fresh: FakeStack) -> None:
    parts = parts_of(fresh)
    for _ in range(3):
        parts.read("overview", {})
    assert fresh.world.measurements.looks == 1


def test_what_cannot_be_read_is_a_problem_of_its_part(fresh: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> Any:
        raise Retryable("no answer")

    monkeypatch.setattr(fresh.alarms, "on", silent)
    document = parts_of(fresh).read("overview", {})
    assert document["alarms"] is None and "no answer" in document["problems"]["alarms"]


def test_a_history_is_asked_for_once_in_its_seconds(fresh: FakeStack) -> None:
    now = 0.0
    parts = parts_of(fresh, monotonic=lambda: now)
    lane = LaneHistory(depth=[1, None], oldest_seconds=[2, 3], incoming=[4, 5], outgoing=[6, None])
    fresh.measurements.past = History(minutes=[0, 60_000], lanes={"fast": lane})
    document = parts.read("history", {})
    assert document == {
        "minutes": ["1970-01-01T00:00:00.000Z", "1970-01-01T00:01:00.000Z"],
        "lanes": {"fast": {"depth": [1, None], "oldest_seconds": [2, 3], "in": [4, 5], "out": [6, None]}},
    }
    fresh.measurements.past = History(minutes=[], lanes={})
    now = HISTORY_SECONDS - 0.1
    assert parts.read("history", {}) == document
    now = float(HISTORY_SECONDS)
    assert parts.read("history", {})["minutes"] == []


def test_failures_are_listed_by_the_words_of_dlq_ls_and_shown_by_their_ids(fresh: FakeStack) -> None:
    parts, failed = parts_of(fresh), fresh.world.give_up(1)
    (case,) = parts.read("failures", {"cause": ["KeyError"]})["cases"]
    assert case["image_id"] == failed
    assert parts.read("failures", {"cause": ["ValueError"]})["cases"] == []
    assert parts.read(f"failures/{failed}", {})[0]["cause"] == "KeyError"


def test_images_are_listed_by_the_words_of_ls(fresh: FakeStack) -> None:
    parts = parts_of(fresh)
    failed = fresh.world.give_up(1)
    fresh.world.put(2)
    listed = parts.read("images", {"status": ["failed"], "since": ["30d"]})
    assert [image["id"] for image in listed["images"]] == [failed]
    assert len(parts.read("images", {"since": ["30d"], "limit": ["1"]})["images"]) == 1
    late = parts.read("images", {"late": ["true"]})
    assert late["complete"] is True


def test_a_tenant_is_shown_with_its_keys_and_no_secret(fresh: FakeStack) -> None:
    fresh.tenants.tenants["acme"] = Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1)
    key, stored = create_key(
        CreateKeyPorts(
            audit=trail_of(), tenants=fresh.tenants, clock=fresh.clock, randomness=lambda size: bytes(range(size))
        ),
        "acme",
        label="ci",
        scopes=None,
        lives_seconds=None,
    )
    parts = parts_of(fresh)
    (row,) = parts.read("tenants", {})
    document = parts.read("tenants/acme", {})
    assert row["keys"] == 1 and row.items() <= document.items()
    assert [listed_key["id"] for listed_key in document["all_keys"]] == [stored.key_id]
    assert document["usage"] == []
    assert (document["lane"], document["lanes"]) == ("slow", list(LANES))
    text = json.dumps(document)
    assert key not in text and key.rpartition("_")[2] not in text and stored.digest not in text


def test_what_is_paused_is_listed_beside_the_lanes_that_can_be(fresh: FakeStack) -> None:
    fresh.pauses.pause(Pause(kind="lane", name="slow", since=fresh.clock(), reason="a bug"))
    document = parts_of(fresh).read("pauses", {})
    assert (document["lanes"], [each["name"] for each in document["pauses"]]) == (list(LANES), ["slow"])


def test_backfills_are_listed(fresh: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    world = BackfillsWorld()
    monkeypatch.setattr(fresh, "backfills", world.backfills, raising=False)
    world.start()
    (backfill,) = parts_of(fresh).read("backfills", {})["backfills"]
    assert (backfill["id"], backfill["state"], backfill["waits_for"]) == ("bf_1", "running", None)


def test_every_tenants_batches_in_work_are_listed_with_how_far_they_are(
    fresh: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = BatchesWorld()
    monkeypatch.setattr(fresh, "batch_rows", world.batches, raising=False)
    world.close(world.open())
    world.sweep_bulk()
    newer, *_ = [world.open(tenant_id=tenant_id) for tenant_id in ("acme", "other")]
    parts, get = parts_of(fresh), world.batches.get
    document = parts.read("batches", {})
    assert [(each["tenant"], each["progress"]) for each in document["batches"]] == [("acme", 0), ("other", 0)]
    assert (document["unreadable"], document["is_all"]) == ([], True)

    def unreadable(batch_id: str) -> Batch | None:
        if batch_id == newer.batch_id:
            raise UnreadableRow(batch_id, "state")
        row: Batch | None = get(batch_id)
        return row

    monkeypatch.setattr(world.batches, "get", unreadable)
    monkeypatch.setattr("darkroom_cli.batches.in_work.MOST_BATCHES", 1)
    document = parts.read("batches", {})
    assert (document["batches"], document["unreadable"], document["is_all"]) == ([], [newer.batch_id], False)


def test_every_tenants_webhooks_are_listed_with_their_condition(fresh: FakeStack) -> None:
    row = fresh.world.endpoint(0)
    fresh.endpoints.create(row)
    parts = parts_of(fresh)
    (webhook,) = parts.read("webhooks", {"tenant": [row.tenant_id]})
    assert (webhook["tenant"], webhook["id"], webhook["condition"]) == (row.tenant_id, row.endpoint_id, "healthy")
    assert "secret" not in webhook
    assert parts.read("webhooks", {"tenant": ["nobody"]}) == []


@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("images", {"status": ["nearly"]}),
        ("images", {"since": ["yesterday"]}),
        ("images", {"limit": ["0"]}),
        ("images", {"limit": ["1001"]}),
        ("images", {"limit": ["٣"]}),
        ("images", {"since": ["1d", "2d"]}),
        ("failures", {"verdict": ["bad"]}),
        ("failures", {"older_than": ["x"]}),
        ("failures", {"image": ["x"]}),
        ("delays", {"zone": ["Atlantis"]}),
        ("delays", {"lane": ["none"]}),
        ("tenants/%20", {}),
        ("trace/x", {}),
    ],
)
def test_what_is_not_understood_is_a_400_that_says_why(reading: Served, part: str, query: dict[str, list[str]]) -> None:
    answer = reading.client.get(f"/operate/api/{part}", params=query)
    document = answer.json()
    assert (answer.status_code, document["code"], document["status"]) == (400, "invalid_request", 400)
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(document["detail"]) > 10


@pytest.mark.parametrize("part", ["nothing", "overview/x", "tenants/nobody", "failures/" + UNKNOWN, "trace/" + UNKNOWN])
def test_what_is_not_there_is_a_404(reading: Served, part: str) -> None:
    answer = reading.client.get(f"/operate/api/{part}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_an_aws_that_does_not_answer_is_a_502(reading: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> Any:
        raise Retryable("no answer")

    monkeypatch.setattr(reading.stack.tenants, "all_tenants", silent)
    answer = reading.client.get("/operate/api/tenants")
    assert (answer.status_code, answer.json()["code"]) == (502, "aws_unavailable")
    assert "no answer" in answer.json()["detail"]


def test_what_is_told_stays_off_the_terminal(fresh: FakeStack, capsys: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(fresh)
    parts.read("overview", {})
    parts.read("tenants", {})
    with pytest.raises(ApiError):
        parts.read("failures/none", {})
    with pytest.raises(OperateProblem):
        parts.read("images", {"limit": ["x"]})
    assert capsys.readouterr() == ("", "")
