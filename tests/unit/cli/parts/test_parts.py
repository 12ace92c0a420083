"""`darkroom parts`: what it says, what it asks, and that it removes nothing of a part that is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.kernel.lanes import LANES
from darkroom.parts import PARTS
from darkroom_cli.parts import work
from darkroom_cli.parts.remains import KEPT, SECRETS
from repository.expand_template import deployed
from repository.report import ROOT
from tests.support.faults import ProcessDied
from tests.support.stack import OPTIONS, FakeStack
from tests.unit.cli.conftest import Run


@dataclass
class FakeRemains:
    """What is left of parts; implements its reading and emptying, and says which parts are deployed."""

    absent: set[str] = field(default_factory=lambda: {"usage", "page"})
    left: dict[str, int] = field(default_factory=lambda: {"UsageTable": 3, "UsageQueue": 1, "EndpointsTable": 2})
    emptied: list[str] = field(default_factory=list)
    before_empty: Callable[[str], None] = lambda _: None

    def clock(self) -> int:
        return 1

    def parts_by_now(self) -> frozenset[str]:
        return frozenset(PARTS) - self.absent

    def count(self, logical_id: str) -> int:
        return self.left.get(logical_id, 0)

    def empty(self, logical_id: str, on_removed: Callable[[int], None]) -> None:
        self.before_empty(logical_id)
        self.emptied.append(logical_id)
        if logical_id.endswith("Table"):
            on_removed(self.left.get(logical_id, 0))
        self.left[logical_id] = 0


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """Without usage and the page, of which something is left."""
    stack.world = world = FakeRemains()
    monkeypatch.setattr(work, "Remains", lambda **_: world)
    return stack


def test_each_part_is_deployed_or_has_something_left_or_nothing(run: Run, stack: FakeStack) -> None:
    lines = run("parts", "ls").stdout.splitlines()
    assert re.split(r"\s{2,}", lines[1].strip()) == ["webhooks", "deployed"]
    assert "1 message in UsageQueue, 3 rows in UsageTable" in lines[2]
    assert "nothing" in lines[4]
    assert lines[-1] == f"What removing that would do:  ./darkroom parts purge usage{OPTIONS}"
    usage = json.loads(run("parts", "ls", "--json").stdout)["parts"][1]
    assert (usage["deployed"], usage["left"]["UsageTable"], usage["secret"]) == (False, 3, None)


def test_what_would_be_removed_is_said_first(run: Run, stack: FakeStack) -> None:
    said = run("parts", "purge", "usage").stdout
    assert "shop keeps of usage: 1 message in UsageQueue, 3 rows in UsageTable." in said
    assert said.endswith(f"Do it:  ./darkroom parts purge usage --confirm shop{OPTIONS}\n")
    assert (stack.emptied, stack.audit_log.actions) == ([], [])
    assert "Nothing is left of page" in run("parts", "purge", "page", "--confirm", "shop").stdout


@pytest.mark.guards("parts-purge-consent")
def test_it_asks_for_the_name_of_the_stack(run: Run, stack: FakeStack) -> None:
    result = run("parts", "purge", "usage", "--confirm", "shop-prod")
    assert (result.exit_code, stack.emptied) == (2, [])


@pytest.mark.guards("parts-purge-absent-only")
def test_nothing_of_a_deployed_part_is_removed(run: Run, stack: FakeStack) -> None:
    for more in ((), ("--confirm", "shop")):
        result = run("parts", "purge", "webhooks", *more)
        assert result.exit_code == 1
        assert "Deploy with Webhooks=false first." in " ".join(result.stderr.split())
    assert (stack.emptied, stack.audit_log.actions) == ([], [])


def test_it_removes_what_is_left_and_the_audit_log_says_so(run: Run, stack: FakeStack) -> None:
    result = run("parts", "purge", "usage", "--confirm", "shop")
    assert (result.exit_code, stack.emptied) == (0, list(KEPT["usage"]))
    assert result.stdout.startswith("Removed what was left of usage in shop: 3 rows,")
    assert stack.audit_log.actions == [("purge_part", "begun"), ("purge_part", "done")]
    assert stack.left["EndpointsTable"] == 2, "another part's"


@pytest.mark.parametrize("dies_at", KEPT["usage"])
def test_a_run_that_died_anywhere_can_be_repeated(run: Run, stack: FakeStack, dies_at: str) -> None:
    def die(logical_id: str) -> None:
        if logical_id == dies_at:
            raise ProcessDied

    stack.world.before_empty = die
    with pytest.raises(ProcessDied):
        work.purge(stack, "usage")  # type: ignore[arg-type]
    stack.world.before_empty = lambda _: None
    assert run("parts", "purge", "usage", "--confirm", "shop").exit_code == 0
    assert {name: stack.left[name] for name in KEPT["usage"]} == dict.fromkeys(KEPT["usage"], 0)


@pytest.mark.guards("parts-purge-absent-still")
def test_it_stops_where_the_part_is_deployed_meanwhile(run: Run, stack: FakeStack) -> None:
    stack.world.before_empty = lambda _: stack.absent.discard("usage")
    assert run("parts", "purge", "usage", "--confirm", "shop").exit_code == 1
    assert stack.emptied == [KEPT["usage"][0]]


def test_a_part_keeps_what_is_declared_in_the_templates_section_of_parts_and_nothing_else() -> None:
    core, optional = (ROOT / "template.yaml").read_text().split("  # ══ Below this line")
    kinds: dict[str, set[str]] = {"AWS::DynamoDB::Table": set(), "AWS::SQS::Queue": set()}
    everything: dict[str, Any] = deployed(Environment="prod", Access="keys")
    for name, resource in everything.items():
        if resource["Type"] in kinds:
            kinds[resource["Type"]].add(name)
    looped = [*map(str.capitalize, LANES), "Hold", "Upload"]
    of_loops = {f"{name}{kind}" for name in looped for kind in ("Queue", "DeadLetters")}
    of_core = of_loops | set(re.findall(r"^  (\w+):$", core, re.MULTILINE))
    kept = [name for names in KEPT.values() for name in names]
    assert len(kept) == len(set(kept))
    assert set(kept) == (kinds["AWS::DynamoDB::Table"] | kinds["AWS::SQS::Queue"]) - of_core
    assert all(f"\n  {name}:\n" in optional for name in SECRETS.values())
