"""Pausing and resuming: whatever dies in between, no lane stands still of which nobody is told that it is paused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.images.transitions import PARKED_SECONDS, park
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.pauses.pauses import KNOWN_SECONDS, Pause, Paused
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.pauses.pause_work import PauseWorkPorts, in_force, pause_work
from darkroom_cli.operator.operations.pauses.resume_work import Resumed, ResumeWorkPorts, resume_work
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.faults import Call, Faults, Mode, Plan, ProcessDied, at
from tests.support.observed import Observed

MOST_CALLS = 16
"""More calls than either command makes here."""


@dataclass
class Lane(Observed):
    """A world with an operator, whose calls may be struck, and who waits as long as `on_wait` makes it."""

    log: FakeAudit = field(default_factory=FakeAudit)
    on_wait: Callable[[], object] = lambda: None

    def patience(self, stop: Callable[[], bool] = lambda: False) -> TransientRetry:
        def wait(seconds: float) -> None:
            self.advance(seconds)
            self.on_wait()

        return TransientRetry(pause=wait, stop=stop)

    def pause(self, kind: Paused = "lane", name: str = "slow", plan: Plan = lambda call: None) -> tuple[Pause, bool]:
        return pause_work(self._ports(PauseWorkPorts, plan), kind, name, reason="why")

    def resume(
        self, kind: Paused = "lane", name: str = "slow", plan: Plan = lambda call: None, **others: Any
    ) -> Resumed:
        pace = RateLimiter(per_second=1000, clock=self.clock, pause=lambda _: None)
        return resume_work(self._ports(ResumeWorkPorts, plan, pace=pace, **others), kind, name)

    def _ports(self, kind: Any, plan: Plan, **others: Any) -> Any:
        faults = Faults(plan)
        struck = {name: faults.around(name, getattr(self, name)) for name in ("pauses", "sources")}
        if kind is ResumeWorkPorts:
            struck["images"] = faults.around("images", self.images)
        trail = trail_of(faults.around("log", self.log), clock=self.clock)
        return self.ports(kind, **{"patience": self.patience(), "audit": trail, **struck, **others})

    def park(self, number: int, **of: Any) -> str:
        image_id = self.put(number, **of)
        self.images.rows[image_id] = park(self.images.rows[image_id], now=self.now)
        return image_id

    def in_force(self, kind: Paused = "lane", name: str = "slow") -> Pause | None:
        return in_force(self.pauses, kind, name)

    def due(self, image_id: str) -> int:
        """In how many seconds the sweeper looks at an image."""
        due_at = self.images.rows[image_id].due_at
        return (due_at - self.now) // 1000 if due_at is not None else -1


def test_a_lane_is_paused_once_and_its_messages_stay_in_its_queue() -> None:
    world = Lane()
    paused, is_new = world.pause()
    assert (paused.since, paused.reason, is_new) == (world.now, "why", True)
    assert (world.in_force(), world.sources.off) == (paused, {"slow"})
    world.advance(60)
    assert world.pause() == (paused, False)
    assert world.log.actions == [("pause", "begun"), ("pause", "done")], "the second changed nothing"


def test_a_tenants_work_is_paused_and_resumed_without_touching_a_lane() -> None:
    world = Lane()
    world.pause("tenant", "acme")
    assert world.in_force("tenant", "acme") and world.sources.off == set()
    world.resume("tenant", "acme")
    assert world.in_force("tenant", "acme") is None
    assert "why" not in repr(world.log.lines), "a reason is no word of the code"


@pytest.mark.parametrize("kind", ["lane", "tenant"])
def test_what_was_set_aside_is_due_at_once_and_nothing_else(kind: Paused) -> None:
    world, name = Lane(), {"lane": "slow", "tenant": "acme"}[kind]
    mine = world.park(1, tenant_id="acme")
    others = [world.park(2, lane="fast", tenant_id="zeta"), world.put(3, tenant_id="acme")]
    world.pause(kind, name)
    before = [world.images.rows[each] for each in others]
    assert world.due(mine) == PARKED_SECONDS
    resumed = world.resume(kind, name)
    assert (resumed.woken, resumed.complete, world.due(mine)) == (1, True, 0)
    assert [world.images.rows[each] for each in others] == before
    again = world.resume(kind, name)
    assert (again.pause, again.woken) == (None, 1), "still parked until the sweeper has come by"


@pytest.mark.guards("resume-waits-for-workers")
def test_what_a_worker_sets_aside_that_does_not_know_yet_is_woken_too() -> None:
    world, late = Lane(), list[str]()
    world.pause()
    resumed_at = world.now

    def know_nothing_yet() -> None:
        if not late and world.now - resumed_at >= KNOWN_SECONDS * 1000:
            late.append(world.park(1))

    world.on_wait = know_nothing_yet
    assert world.resume().woken == 1 and world.due(late[0]) == 0


def test_who_ends_it_early_is_told_and_the_rest_wakes_by_itself() -> None:
    world = Lane()
    left = [world.park(number) for number in range(3)]
    world.pause()
    resumed = world.resume(patience=world.patience(lambda: any(world.due(each) <= 0 for each in left)))
    assert (resumed.woken, resumed.complete, world.in_force()) == (1, False, None)
    assert max(map(world.due, left)) <= PARKED_SECONDS
    assert world.log.actions[-1] == ("resume", "interrupted")


COMMANDS: dict[str, Callable[..., object]] = {"pause": Lane.pause, "resume": Lane.resume}
MODES: tuple[Mode, ...] = ("dies before", "dies after", "throttled", "answer lost")


@pytest.mark.guards("pause-lane-source-off", "resume-source-before-record")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", COMMANDS)
def test_wherever_it_ends_no_lane_stands_still_unless_it_is_paused_and_a_repetition_does_the_rest(
    command: str, mode: Mode
) -> None:
    ended = 0
    for number in range(MOST_CALLS):
        world = Lane()
        image_id = world.park(1)
        if command == "resume":
            world.pause()
        try:
            COMMANDS[command](world, plan=at(number, mode))
        except (ProcessDied, Retryable):
            ended += 1
        assert world.in_force() or not world.sources.off, f"call {number}: doctor would call it drift"
        COMMANDS[command](world)
        assert (world.in_force() is not None, world.sources.off) == (
            (True, {"slow"}) if command == "pause" else (False, set())
        ), f"call {number}"
        assert command == "pause" or world.due(image_id) <= 0, f"call {number}"
    assert ended >= 4


def meanwhile(name: str, number: int, other: Callable[[], object]) -> Plan:
    """Somebody else does something just before the call of that name with that number, from 1."""
    seen = 0

    def plan(call: Call) -> None:
        nonlocal seen
        seen += call.name == name
        if call.name == name and seen == number:
            other()

    return plan


@pytest.mark.guards("pause-ended-meanwhile", case="pause-sources.switch-1")
@pytest.mark.guards("resume-paused-meanwhile", case="resume-pauses.resume-1")
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("call", ["pauses.all", "pauses.pause", "pauses.resume", "sources.is_on", "sources.switch"])
@pytest.mark.parametrize("command", COMMANDS)
def test_two_operators_who_disagree_leave_no_lane_that_stands_still_unpaused(
    command: str, call: str, number: int
) -> None:
    other = {"pause": "resume", "resume": "pause"}[command]
    world = Lane()
    world.pause()
    if command == "pause":
        world.sources.off.clear()  # as a deployment leaves it, or a pause that was killed
    COMMANDS[command](world, plan=meanwhile(call, number, lambda: COMMANDS[other](world)))
    assert world.in_force() or not world.sources.off


@pytest.mark.guards("pause-unreadable-not-overwritten")
def test_a_pause_that_a_newer_version_has_written_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Lane()
    own = world.pauses.all
    monkeypatch.setattr(world.pauses, "all", lambda: [*own(), UnreadableRow("lane#slow", "newer")])
    for command in COMMANDS.values():
        with pytest.raises(UnreadableRow, match="lane#slow"):
            command(world)
    assert (world.pauses.pauses, world.sources.off, world.log.lines) == ({}, set(), [])
    world.pause("lane", "fast")
    assert world.sources.off == {"fast"}


def test_a_switch_that_is_still_moving_is_waited_for() -> None:
    world = Lane()
    world.sources.refusals = 2
    world.pause()
    assert world.sources.off == {"slow"}
