"""The audit log: an action is announced before it changes anything, and its end is written whatever happens."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.operator.domain.audit import MOST_TARGETS, AuditEntry, Recorded, State, document, read_document, split
from tests.support.fakes.audit import ACTOR, FakeAudit, trail_of

NOW = 1_795_251_600_000


def entry(**changes: Any) -> AuditEntry:
    return AuditEntry(**{"action_id": "a1", "action": "replay", "state": State.DONE, "at": NOW, **changes})


def test_an_action_is_announced_with_what_it_is_about_before_it_changes_anything() -> None:
    log = FakeAudit()
    with trail_of(log).action("revoke_key", "k1", tenant_id="acme", since=None) as audited:
        (line,) = log.lines
        assert (line.actor, line.stack, line.entry.state) == (ACTOR, "shop", State.BEGUN)
        assert (dict(line.entry.about), list(line.entry.targets)) == ({"tenant_id": "acme"}, ["k1"])
        audited.add("k1", "revoked")
    assert log.actions == [("revoke_key", "begun"), ("revoke_key", "done")]
    assert len({line.entry.action_id for line in log.lines}) == 1
    assert dict(log.lines[-1].entry.counts) == {"revoked": 1}


@pytest.mark.guards("audit-begun-before-change")
def test_nothing_is_begun_if_the_log_does_not_answer() -> None:
    is_begun = False
    with pytest.raises(Retryable), trail_of(FakeAudit(is_down=True)).action("drop"):
        is_begun = True
    assert not is_begun


@pytest.mark.guards("audit-unwritten-end-tolerated")
def test_an_action_whose_end_cannot_be_written_is_done_and_the_operator_is_told() -> None:
    log, missed = FakeAudit(down_from=2), list[str]()
    with trail_of(log, missed=missed).action("create_key") as audited:
        audited.add("k1", "created")
    assert log.actions == [("create_key", "begun")]
    assert len(missed) == 1 and "What was done is done." in missed[0]


def test_an_error_is_the_actions_own_although_its_end_cannot_be_written() -> None:
    missed = list[str]()
    with pytest.raises(LookupError, match="mine"), trail_of(FakeAudit(down_from=2), missed=missed).action("drop"):
        raise LookupError("mine")
    assert len(missed) == 1


@pytest.mark.guards("audit-no-error-text")
def test_what_failed_or_was_interrupted_says_so_and_repeats_no_text_of_an_error() -> None:
    log = FakeAudit()
    with pytest.raises(LookupError), trail_of(log).action("drop"):
        raise LookupError("a secret")
    with pytest.raises(KeyboardInterrupt), trail_of(log).action("drop"):
        raise KeyboardInterrupt
    with trail_of(log).action("drop") as audited:
        audited.interrupt()
    ends = [line.entry for line in log.lines if line.entry.state is not State.BEGUN]
    assert [(end.state, end.error) for end in ends] == [
        (State.FAILED, "LookupError"),
        (State.INTERRUPTED, None),
        (State.INTERRUPTED, None),
    ]
    assert "a secret" not in repr(log.lines)


def test_what_changed_nothing_is_not_in_the_log() -> None:
    log = FakeAudit()
    with trail_of(log).action("replay", is_certain=False):
        pass
    assert log.lines == []


def test_an_action_that_may_change_nothing_is_announced_once_at_its_first_change() -> None:
    log = FakeAudit()
    with trail_of(log).action("replay", is_certain=False, queue="slow") as audited:
        for number in range(3):
            audited.begin(f"i{number}")
            audited.add(f"i{number}", "replayed")
    assert log.actions == [("replay", "begun"), ("replay", "done")]
    assert list(log.lines[0].entry.targets) == ["i0"]
    assert list(log.lines[1].entry.targets) == ["i0", "i1", "i2"]


@pytest.mark.guards("audit-entry-targets-bound")
def test_many_ids_are_written_as_they_come_in_entries_that_fit() -> None:
    log = FakeAudit()
    with trail_of(log).action("cancel_day") as audited, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: audited.add(f"{number:026d}", "deleted"), range(2 * MOST_TARGETS + 7)))
        assert len(log.lines) == 3, "a command that is killed leaves few ids unwritten"
    entries = [line.entry for line in log.lines]
    assert [entry.state for entry in entries] == [State.BEGUN, State.GOING_ON, State.GOING_ON, State.DONE]
    assert max(len(entry.targets) for entry in entries) == MOST_TARGETS
    assert len({target for entry in entries for target in entry.targets}) == 2 * MOST_TARGETS + 7
    assert dict(entries[-1].counts) == {"deleted": 2 * MOST_TARGETS + 7}


def test_a_log_that_falls_silent_ends_the_work_and_loses_no_id() -> None:
    log = FakeAudit(down_from=2)
    with pytest.raises(Retryable), trail_of(log).action("cancel_day") as audited:
        for number in range(MOST_TARGETS + 1):
            if number == MOST_TARGETS:
                pytest.fail("it goes on without a log")
            try:
                audited.add(str(number), "deleted")
            except Retryable:
                log.down_from = None
                raise
    assert log.lines[-1].entry.state is State.FAILED
    assert len(log.lines[-1].entry.targets) == MOST_TARGETS


def test_an_entry_with_many_targets_is_several_of_which_the_last_ends_the_action() -> None:
    parts = list(split(entry(targets=[str(number) for number in range(MOST_TARGETS + 1)], counts={"x": 1})))
    assert [(part.state, len(part.targets)) for part in parts] == [(State.GOING_ON, MOST_TARGETS), (State.DONE, 1)]
    assert parts[-1].counts == {"x": 1}
    assert [part.state for part in split(entry())] == [State.DONE]


def test_a_written_entry_can_be_read_and_what_is_none_is_left_out() -> None:
    recorded = Recorded(
        entry=entry(about={"queue": "slow"}, targets=("a",), counts={"replayed": 1}), actor=ACTOR, stack="shop"
    )
    text = json.dumps(document(recorded))
    assert read_document(text, NOW) == recorded
    for broken in ("", "{}", "[]", "null", text.replace('"done"', '"nearly"'), text.replace('{"replayed": 1}', "1")):
        assert read_document(broken, NOW) is None


def test_the_largest_entry_fits_into_an_event_of_the_log() -> None:
    (largest,) = split(entry(targets=[f"{number:036d}" for number in range(MOST_TARGETS)]))
    text = json.dumps(document(Recorded(entry=largest, actor=ACTOR, stack="s" * 128)))
    # 25 of them go into one request of at most 1,048,576 bytes, each with 26 bytes of its own.
    assert 25 * (len(text) + 26) < 1_048_576
