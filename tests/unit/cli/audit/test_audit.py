"""`darkroom audit`, over the fakes: actions joined from their entries, the newest first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from darkroom_cli.audit.work import joined
from darkroom_cli.operator.domain.audit import AuditEntry, Recorded, State
from tests.support.fakes.audit import ACTOR, trail_of
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

NOW = 1_795_251_600_000
HOUR = 3_600_000


def acted(stack: FakeStack, name: str, *targets: str, hours_ago: float = 0, **about: Any) -> None:
    trail = trail_of(stack.audit_log, clock=lambda: NOW - round(hours_ago * HOUR))
    trail = type(trail)(**{**vars(trail), "randomness": lambda size: len(stack.audit_log.lines).to_bytes(size)})
    with trail.action(name, **about) as audited:
        for target in targets:
            audited.add(target, "done")


def recorded(state: State, *targets: str, at: int = NOW, **more: Any) -> Recorded:
    entry = AuditEntry(action_id="a", action="drop", state=state, at=at, targets=targets, **more)
    return Recorded(entry=entry, actor=ACTOR, stack="shop")


def test_an_empty_log_is_said_in_one_line(run: Run, stack: FakeStack) -> None:
    assert run("audit").stdout == "Nothing was done in that time, or nothing of that kind.\n"


def test_an_action_is_a_line_with_when_who_what_and_how_it_ended(run: Run, stack: FakeStack) -> None:
    acted(stack, "replay", *(f"i{number}" for number in range(5)), hours_ago=2, queue="slow")
    acted(stack, "revoke_key", "k1", hours_ago=1)
    heads, first, second = run("audit").stdout.splitlines()
    assert heads.split() == ["began", "actor", "action", "state", "counts", "about"]
    assert "revoke_key" in first and "k1" in first
    assert second.split() == [
        *("2026-11-21T07:00:00.000Z", "assumed-role/operator/ada", "replay", "done", "5", "done"),
        *("queue=slow", "i0", "i1", "i2", "…", "and", "2", "more"),
    ]


def test_actions_are_chosen_by_their_age_name_and_ids(run: Run, stack: FakeStack) -> None:
    acted(stack, "replay", "i1", hours_ago=24 * 8, tenant_id="acme")
    acted(stack, "drop", "m1", hours_ago=2)
    acted(stack, "change_tenant", hours_ago=1, tenant_id="acme")

    def names(*options: str) -> list[str]:
        return [action["action"] for action in json.loads(run("audit", "--json", *options).stdout)["actions"]]

    assert names() == ["change_tenant", "drop"]
    assert names("--since", "30d") == ["change_tenant", "drop", "replay"]
    assert names("--since", "30d", "--about", "acme") == ["change_tenant", "replay"]
    assert names("--since", "30d", "--about", "i1") == ["replay"]
    assert names("--action", "drop") == ["drop"]
    document = json.loads(run("audit", "--json", "--limit", "1").stdout)
    assert document["complete"] is False and len(document["actions"]) == 1


def test_an_action_without_an_end_is_shown_as_begun(run: Run, stack: FakeStack) -> None:
    stack.audit_log.lines.append(recorded(State.BEGUN, "m1", at=NOW - HOUR))
    (action,) = json.loads(run("audit", "--json").stdout)["actions"]
    assert (action["state"], action["ended_at"], action["targets"]) == ("begun", None, ["m1"])


def test_entries_are_joined_in_whatever_order_they_come() -> None:
    entries = [
        recorded(State.BEGUN, "a", about={"queue": "slow"}),
        recorded(State.GOING_ON, "a", "b"),
        recorded(State.FAILED, "c", counts={"dropped": 3}, error="Retryable"),
    ]
    for order in (entries, entries[::-1], [entries[1], entries[2], entries[0]]):
        (action,) = joined(order)
        assert (action.state, action.error, dict(action.counts)) == (State.FAILED, "Retryable", {"dropped": 3})
        assert (set(action.targets), dict(action.first.entry.about)) == ({"a", "b", "c"}, {"queue": "slow"})


@pytest.mark.parametrize("options", [["--since", "yesterday"], ["--limit", "0"]])
def test_what_is_not_understood_is_a_usage_error(run: Run, stack: FakeStack, options: list[str]) -> None:
    assert run("audit", *options).exit_code == 2
