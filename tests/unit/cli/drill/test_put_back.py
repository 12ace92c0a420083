"""A switch is put back where it was, unless somebody else has set it since; and again, whatever happened before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.images.transitions import park
from darkroom_cli.drill.switches import RestoreResult, Setting, SwitchTimeout, Value, plan, put_back, throw
from tests.support.observed import Observed
from tests.support.stack import FakeStack

STACK: Any = None


@dataclass
class Switch:
    """A switch in a room of its own; a stubborn one does not move."""

    position: Value
    is_stubborn: bool = False
    written: list[Value] = field(default_factory=list)

    def read(self, stack: Any, target: str) -> Value:
        return self.position

    def write(self, stack: Any, target: str, value: Value) -> None:
        self.written.append(value)
        if not self.is_stubborn:
            self.position = value


SETTING = Setting(kind="switch", target="Lane", before=True, during=False)


def back(switch: Switch) -> tuple[RestoreResult, Value]:
    restoration = put_back(STACK, SETTING, {"switch": switch})
    return restoration.back, restoration.now


def test_putting_back_twice_is_putting_back_once() -> None:
    switch = Switch(False)
    assert back(switch) == (RestoreResult.RESTORED, True)
    assert back(switch) == (RestoreResult.AS_BEFORE, True)
    assert switch.written == [True]


@pytest.mark.guards("drill-foreign-change-kept")
def test_what_somebody_else_has_set_stays() -> None:
    switch = Switch("elsewhere")
    assert back(switch) == (RestoreResult.CHANGED, "elsewhere")
    assert not switch.written


def test_a_tenants_work_is_paused_and_goes_on_at_once_when_it_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom_cli.drill.switches.time.sleep", lambda _: None)
    world = Observed()
    stack: Any = FakeStack(world=world)
    setting = plan(stack, "pause", "drill-plus", True)
    throw(stack, setting)
    assert (setting.before, [pause.subject for pause in stack.pauses.all()]) == (False, ["tenant#drill-plus"])
    image_id = world.put(1, tenant_id="drill-plus")
    world.images.rows[image_id] = park(world.images.rows[image_id], now=world.now)
    assert put_back(stack, setting).back is RestoreResult.RESTORED
    assert (world.pauses().oldest(), world.images.rows[image_id].due_at) == (None, world.now)
    assert put_back(stack, setting).back is RestoreResult.AS_BEFORE


@pytest.mark.guards("drill-restore-read-back")
def test_a_switch_that_does_not_move_is_told() -> None:
    with pytest.raises(SwitchTimeout, match="Lane is False and not True"):
        back(Switch(False, is_stubborn=True))
