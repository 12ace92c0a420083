"""What the operators' page does: the command line's work, after it has said what it would be."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.kernel.tenants import Tenant, TenantState, Tier
from darkroom.domain.tenants.api_keys import KeyState, key_id_of
from darkroom.domain.webhooks.endpoint import DisabledBy, Endpoint, disable
from darkroom.http.kernel.timetables import read_timetable
from darkroom_cli.operate.actions import MOST_IDS, Actions
from darkroom_cli.operate.problems import OperateProblem
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from darkroom_cli.terminal.interrupts import Interrupts
from darkroom_client.client import ApiError
from tests.support.fakes.audit import trail_of
from tests.support.fakes.backfills import BackfillsWorld
from tests.support.fakes.pictures import jpeg
from tests.support.stack import FakeStack
from tests.unit.cli.operate.conftest import Served, ended, observed_stack


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    monkeypatch.setattr("darkroom_cli.dlq.job.Job.pause", lambda *_: None)
    return observed_stack()


def act(stack: FakeStack, action: str, *, is_writable: bool = True, **body: Any) -> dict[str, Any]:
    console_stack: Any = stack
    return ended(Actions(console_stack), action, is_writable=is_writable, **body)


def key_of(stack: FakeStack) -> str:
    stack.tenants.tenants.setdefault("acme", Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1))
    ports = CreateKeyPorts(
        audit=trail_of(), tenants=stack.tenants, clock=stack.clock, randomness=lambda size: bytes(range(size))
    )
    _, stored = create_key(ports, "acme", label=None, scopes=None, lives_seconds=None)
    return stored.key_id


def test_a_replay_says_what_it_would_do_and_changes_nothing(fresh: FakeStack) -> None:
    failed = [fresh.world.give_up(number) for number in (1, 2)]
    fresh.world.give_up(3, bug="ValueError")
    ending = act(fresh, "replay", cause="KeyError", dry_run=True)
    assert ending["says"][0].startswith("Would replay 2 images of 3 dead letters")
    assert (ending["dry_run"], ending["complete"], ending["count"]) == (True, True, 2)
    assert sorted(ending["ids"]) == failed
    assert any("./darkroom dlq replay --cause KeyError --yes --stack shop" in line for line in ending["says"])
    assert {row.status for row in fresh.images.rows.values()} == {Status.FAILED}


def test_a_replay_develops_what_was_chosen_and_nothing_else(fresh: FakeStack) -> None:
    failed, other = fresh.world.give_up(1), fresh.world.give_up(2, bug="ValueError")
    ending = act(fresh, "replay", cause="KeyError")
    assert ending["says"][0].startswith("Replayed 1 image.") and ending["complete"]
    assert fresh.images.rows[failed].run == 2
    assert fresh.images.rows[other].run == 1


def test_images_that_are_chosen_by_their_ids_are_replayed_one_by_one(fresh: FakeStack) -> None:
    first, second, third = (fresh.world.give_up(number) for number in (1, 2, 3))
    unknown = f"{99:026d}"
    ending = act(fresh, "replay", images=[first, unknown, second])
    assert ending["complete"] is False
    assert any(unknown in note for note in ending["notes"]) and "1 of 3 images were refused." in ending["notes"][-1]
    assert [fresh.images.rows[image_id].run for image_id in (first, second, third)] == [2, 2, 1]


def test_a_drop_says_which_letters_would_go_and_takes_only_those_that_are_settled(fresh: FakeStack) -> None:
    fresh.world.give_up(1)
    ending = act(fresh, "drop", dry_run=True)
    assert ending["count"] == 0 and ending["says"][0].startswith("Nothing to drop.")
    ending = act(fresh, "drop", dry_run=True, force=True)
    assert (ending["count"], len(ending["ids"])) == (1, 1)
    act(fresh, "drop", force=True)
    assert not fresh.world.dead_letters.messages["slow"]


def test_a_redo_of_what_is_not_done_is_not_complete_and_says_why(fresh: FakeStack) -> None:
    failed = fresh.world.give_up(1)
    assert act(fresh, "redo", images=[failed], dry_run=True)["count"] == 1
    ending = act(fresh, "redo", images=[failed])
    assert ending["complete"] is False and failed in ending["notes"][0]


def test_a_key_is_revoked_once_it_was_said_whose_it_is(fresh: FakeStack) -> None:
    key_id = key_of(fresh)
    ending = act(fresh, "revoke_key", key=key_id, dry_run=True)
    assert f"The key {key_id} of acme, which is active, would be revoked for good." in ending["says"][0]
    assert fresh.tenants.keys[key_id].state(fresh.clock()) is KeyState.ACTIVE
    act(fresh, "revoke_key", key=key_id)
    assert fresh.tenants.keys[key_id].state(fresh.clock()) is KeyState.REVOKED


def test_a_rotated_key_is_told_once_and_apart_from_what_is_said(fresh: FakeStack, monkeypatch: Any) -> None:
    key_id = key_of(fresh)
    assert "key" not in act(fresh, "rotate_key", key=key_id, dry_run=True)
    ending = act(fresh, "rotate_key", key=key_id, overlap="1d")
    assert key_id_of(ending["key"]) in fresh.tenants.keys
    assert not any(ending["key"] in line for line in [*ending["says"], *ending["notes"]])


def test_a_tenants_terms_and_state_are_changed(fresh: FakeStack) -> None:
    key_of(fresh)
    ending = act(fresh, "change_tenant", tenant="acme", tier="paid", state="suspended", dry_run=True)
    assert "acme is free, active" in ending["says"][0] and "tier paid, state suspended" in ending["says"][0]
    assert fresh.tenants.tenants["acme"].tier is Tier.FREE
    act(fresh, "change_tenant", tenant="acme", tier="paid", state="suspended")
    assert "lane bulk" in act(fresh, "change_tenant", tenant="acme", lane="bulk", dry_run=True)["says"][0]
    act(fresh, "change_tenant", tenant="acme", lane="bulk")
    tenant = fresh.tenants.tenants["acme"]
    assert (tenant.tier, tenant.state, tenant.lane) == (Tier.PAID, TenantState.SUSPENDED, "bulk")


def test_a_webhook_is_enabled_and_what_it_missed_is_sent_again(fresh: FakeStack) -> None:
    row = fresh.world.endpoint(0)
    fresh.endpoints.change(row, disable(row, DisabledBy.GONE, now=fresh.clock()))
    named: dict[str, Any] = {"tenant": row.tenant_id, "webhook": row.endpoint_id}
    ending = act(fresh, "recover_webhook", dry_run=True, since="2h", **named)
    assert "which is disabled, would be enabled, and its failed deliveries of events since" in ending["says"][0]
    assert not fresh.endpoints.get(**_ids(row)).is_enabled
    act(fresh, "enable_webhook", **named)
    assert fresh.endpoints.get(**_ids(row)).is_enabled and fresh.endpoints.get(**_ids(row)).recovery is None
    act(fresh, "recover_webhook", since="2h", **named)
    assert fresh.endpoints.get(**_ids(row)).recovery.since == fresh.clock() - 2 * 3_600_000
    assert fresh.audit_log.actions == [
        ("enable_webhook", "begun"),
        ("enable_webhook", "done"),
        ("recover_webhook", "begun"),
        ("recover_webhook", "done"),
    ]


def test_what_is_paused_and_resumed_is_told_before(fresh: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interrupts, "wait", lambda self, seconds: None)
    row = fresh.world.endpoint(0)
    fresh.tenants.tenants["acme"] = Tenant(tenant_id="acme", tier=Tier.FREE, created_at=1)
    for kind, name in (("lane", "slow"), ("tenant", "acme"), ("webhook", row.endpoint_id)):
        chosen: dict[str, Any] = {"kind": kind, "name": name}
        assert act(fresh, "resume", dry_run=True, **chosen)["count"] == 0
        ending = act(fresh, "pause", dry_run=True, **chosen)
        assert f"{kind.capitalize()} {name} would be paused." in ending["says"][0]
        assert ending["says"][0].endswith("Nothing was changed.") and ending["count"] == 1
        assert act(fresh, "resume", dry_run=True, **chosen)["count"] == 0, "nothing was changed"
        assert f"Paused {kind} {name}." in act(fresh, "pause", reason="", **chosen)["says"][0]
        ending = act(fresh, "pause", dry_run=True, **chosen)
        assert (ending["count"], "is paused already, since 2026-" in ending["says"][0]) == (0, True)
        assert act(fresh, "resume", dry_run=True, **chosen)["count"] == 1
        assert f"Resumed {kind} {name}:" in act(fresh, "resume", **chosen)["says"][0]
    assert (fresh.sources.off, fresh.endpoints.get(**_ids(row)).paused_at) == (set(), None)
    assert [name for name, state in fresh.audit_log.actions if state == "done"] == [
        *(("pause", "resume") * 2),
        *("pause_webhook", "resume_webhook"),
    ]


def test_a_backfill_is_paused_and_cancelled_once_it_was_said(fresh: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    world = BackfillsWorld()
    monkeypatch.setattr(fresh, "backfills", world.backfills, raising=False)
    world.start()
    for state, says in (("paused", "which is running, would be paused."), ("cancelled", "would be cancelled.")):
        chosen: dict[str, Any] = {"backfill": "bf_1", "state": state}
        before = world.backfill
        ending = act(fresh, "decide_backfill", dry_run=True, **chosen)
        assert (ending["count"], says in ending["says"][0], world.backfill) == (1, True, before)
        assert act(fresh, "decide_backfill", **chosen)["says"] == [f"bf_1 is {state}."]
    ending = act(fresh, "decide_backfill", dry_run=True, backfill="bf_1", state="running")
    assert (ending["count"], "would stay so" in ending["says"][0]) == (0, True)
    with pytest.raises(ApiError, match="no backfill 'bf_2'"):
        act(fresh, "decide_backfill", dry_run=True, backfill="bf_2", state="paused")


def test_a_lane_that_is_half_paused_is_told(fresh: FakeStack) -> None:
    slow: dict[str, Any] = {"kind": "lane", "name": "slow"}
    act(fresh, "pause", **slow)
    fresh.sources.off.clear()
    assert act(fresh, "pause", dry_run=True, **slow)["count"] == 1
    fresh.pauses.pauses.clear()
    fresh.sources.off.add("slow")
    assert act(fresh, "resume", dry_run=True, **slow)["count"] == 1


def _ids(row: Endpoint) -> dict[str, str]:
    return {"tenant_id": row.tenant_id, "endpoint_id": row.endpoint_id}


def test_what_is_done_is_in_the_audit_log_and_what_would_be_is_not(fresh: FakeStack) -> None:
    failed = fresh.world.give_up(1)
    act(fresh, "replay", cause="KeyError", dry_run=True)
    act(fresh, "drop", dry_run=True, force=True)
    assert fresh.audit_log.actions == []
    act(fresh, "replay", cause="KeyError")
    assert fresh.audit_log.actions == [("replay", "begun"), ("replay", "done")]
    begun, done = (line.entry for line in fresh.audit_log.lines)
    assert (dict(begun.about), list(begun.targets)) == ({"queue": "slow", "cause": "KeyError"}, [failed])
    assert (dict(done.counts), list(done.targets)) == ({"replayed": 1}, [failed])


def test_nothing_is_done_while_the_audit_log_is_silent(fresh: FakeStack) -> None:
    failed, key_id = fresh.world.give_up(1), key_of(fresh)
    fresh.audit_log.is_down = True
    for action, body in (("replay", {}), ("drop", {"force": True}), ("revoke_key", {"key": key_id})):
        with pytest.raises(ApiError, match="the audit log"):
            act(fresh, action, **body)
    assert fresh.images.rows[failed].run == 1 and fresh.world.dead_letters.messages["slow"]
    assert fresh.tenants.keys[key_id].state(fresh.clock()) is KeyState.ACTIVE


def test_one_scheduled_image_is_moved_and_withdrawn_alone(fresh: FakeStack) -> None:
    times = ["2026-12-24T08:00:00Z", "2026-12-24T09:00:00Z"]
    moved, other = (
        fresh.world.submit(jpeg(32, 24), timetable=read_timetable(process_at=time)).image.image_id for time in times
    )
    chosen: dict[str, Any] = {"day": "2026-12-24", "images": [moved]}
    ending = act(fresh, "reschedule", by="1d", dry_run=True, **chosen)
    assert ending["count"] == 1 and f"--image {moved} --by 1d --yes" in "\n".join(ending["says"])
    act(fresh, "reschedule", by="1d", **chosen)
    assert [fresh.images.rows[each].schedule for each in (moved, other)] == [1, 0]
    act(fresh, "cancel", **chosen | {"day": "2026-12-25"})
    assert [fresh.images.rows[each].status for each in (moved, other)] == [Status.CANCELLED, Status.SCHEDULED]


ACTIONS: dict[str, dict[str, Any]] = {
    "replay": {},
    "drop": {"force": True},
    "redo": {"images": ["0" * 26]},
    "reschedule": {"day": "2026-12-24", "by": "1d"},
    "cancel": {"day": "2026-12-24"},
    "drill": {"drill": "lane-stopped", "in_production": True},
    "undo_drill": {},
    "revoke_key": {"key": "0" * 8},
    "rotate_key": {"key": "0" * 8},
    "change_tenant": {"tenant": "acme", "state": "suspended"},
    "pause": {"kind": "lane", "name": "slow"},
    "resume": {"kind": "tenant", "name": "acme"},
    "decide_backfill": {"backfill": "bf_1", "state": "paused"},
    "enable_webhook": {"tenant": "shop", "webhook": "we_" + "0" * 16},
    "recover_webhook": {"tenant": "shop", "webhook": "we_" + "0" * 16},
}


def test_the_list_above_has_every_action(fresh: FakeStack) -> None:
    console_stack: Any = fresh
    assert set(ACTIONS) == set(Actions(console_stack)._actions)


@pytest.mark.guards("operate-read-only-by-default")
@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_by_a_page_that_only_reads_and_it_says_how_it_could(fresh: FakeStack, action: str) -> None:
    fresh.world.give_up(1)
    before = (dict(fresh.images.rows), dict(fresh.tenants.tenants), dict(fresh.tenants.keys))
    with pytest.raises(OperateProblem) as refused:
        act(fresh, action, is_writable=False, **ACTIONS[action])
    assert (refused.value.status, refused.value.code) == (403, "read_only")
    assert "./darkroom operate --write --stack shop" in refused.value.detail
    assert before == (fresh.images.rows, fresh.tenants.tenants, fresh.tenants.keys)
    assert fresh.world.dead_letters.messages["slow"]


def test_a_page_that_only_reads_is_told_so_over_http_and_may_ask_what_would_be(reading: Served) -> None:
    answer = reading.act("replay")
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only")
    assert reading.act("replay", dry_run=True).status_code == 200


@pytest.mark.guards("operate-unknown-fields")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"dry_run": "true"},
        {"dry_run": 0},
        {"dry_run": None},
        {"dry_run": False, "causes": "KeyError"},
        {"dry_run": False, "rate": 0},
        {"dry_run": False, "rate": 501},
        {"dry_run": False, "images": ["x"]},
        {"dry_run": False, "images": ["0" * 26] * (MOST_IDS + 1)},
        {"dry_run": False, "older_than": "long"},
        [],
        "dry_run",
    ],
)
def test_an_action_that_is_not_understood_is_not_done(writing: Served, body: Any) -> None:
    answer = writing.client.post("/operate/api/replay", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("drop", {"verdict": "bad"}),
        ("redo", {"images": []}),
        ("redo", {"images": ["x"]}),
        ("reschedule", {"day": "2026-12-24", "by": "0d"}),
        ("reschedule", {"day": "Christmas", "by": "1d"}),
        ("reschedule", {"day": "2026-12-24", "by": "1d", "images": ["x"]}),
        ("drill", {"drill": "lane-on-fire"}),
        ("revoke_key", {"key": "x"}),
        ("rotate_key", {"key": "0" * 8, "overlap": "x"}),
        ("change_tenant", {"tenant": "acme"}),
        ("change_tenant", {"tenant": "acme", "tier": "gold"}),
        ("change_tenant", {"tenant": "acme", "lane": "quick"}),
        ("change_tenant", {"tenant": "acme", "usual_limits": True, "burst": 5}),
    ],
)
def test_a_word_that_the_command_would_refuse_is_refused(writing: Served, action: str, body: dict[str, Any]) -> None:
    answer = writing.act(action, **body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text


def test_what_the_stack_refuses_is_a_409_that_says_what_to_do(writing: Served) -> None:
    answer = writing.act("revoke_key", key="0" * 8)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "./darkroom keys ls --stack shop" in answer.json()["detail"]


def test_an_unknown_action_names_those_that_there_are(writing: Served) -> None:
    answer = writing.act("erase")
    assert answer.status_code == 404 and "revoke_key" in answer.json()["detail"]
