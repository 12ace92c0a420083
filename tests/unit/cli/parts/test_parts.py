"""`darkroom parts`: what it says, what it asks, and that it removes nothing of a part that is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.kernel.parts import PARTS
from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.parts import commands, work
from darkroom_cli.parts.remains import KEPT, SECRETS
from repository.expand_template import deployed
from repository.report import ROOT
from tests.support.fakes.audit import FakeAudit, trail_of
from tests.support.faults import ProcessDied
from tests.unit.cli.conftest import Run

TARGET = " --stack shop --region eu-west-1"


@dataclass
class FakeStack:
    """A stack without usage, of which something is left."""

    log: FakeAudit = field(default_factory=FakeAudit)
    name: str = "shop"
    options: str = TARGET
    explained: Callable[[], AbstractContextManager[None]] = nullcontext
    absent: set[str] = field(default_factory=lambda: {"usage", "page"})
    left: dict[str, int] = field(default_factory=lambda: {"UsageTable": 3, "UsageQueue": 1, "EndpointsTable": 2})
    emptied: list[str] = field(default_factory=list)
    before_empty: Callable[[str], None] = lambda _: None

    @property
    def audit(self) -> Trail:
        return trail_of(self.log)

    def parts_by_now(self) -> frozenset[str]:
        return frozenset(PARTS) - self.absent


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    fake = FakeStack()

    class FakeRemains:
        def __init__(self, stack: FakeStack) -> None:
            assert stack is fake

        def count(self, logical_id: str) -> int:
            return fake.left.get(logical_id, 0)

        def empty(self, logical_id: str, on_removed: Callable[[int], None]) -> None:
            fake.before_empty(logical_id)
            fake.emptied.append(logical_id)
            if logical_id.endswith("Table"):
                on_removed(fake.left.get(logical_id, 0))
            fake.left[logical_id] = 0

    monkeypatch.setattr(commands, "reach", lambda *_: fake)
    monkeypatch.setattr(work, "Remains", FakeRemains)
    return fake


def test_each_part_is_deployed_or_has_something_left_or_nothing(run: Run, stack: FakeStack) -> None:
    lines = run("parts", "ls").stdout.splitlines()
    assert re.split(r"\s{2,}", lines[1].strip()) == ["webhooks", "deployed"]
    assert "1 message in UsageQueue, 3 rows in UsageTable" in lines[2]
    assert "nothing" in lines[4]
    assert lines[-1] == f"What removing that would do:  ./darkroom parts purge usage{TARGET}"
    usage = json.loads(run("parts", "ls", "--json").stdout)["parts"][1]
    assert (usage["deployed"], usage["left"]["UsageTable"], usage["secret"]) == (False, 3, None)


def test_what_would_be_removed_is_said_first(run: Run, stack: FakeStack) -> None:
    said = run("parts", "purge", "usage").stdout
    assert "shop keeps of usage: 1 message in UsageQueue, 3 rows in UsageTable." in said
    assert said.endswith(f"Do it:  ./darkroom parts purge usage --confirm shop{TARGET}\n")
    assert (stack.emptied, stack.log.actions) == ([], [])
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
    assert (stack.emptied, stack.log.actions) == ([], [])


def test_it_removes_what_is_left_and_the_audit_log_says_so(run: Run, stack: FakeStack) -> None:
    result = run("parts", "purge", "usage", "--confirm", "shop")
    assert (result.exit_code, stack.emptied) == (0, list(KEPT["usage"]))
    assert result.stdout.startswith("Removed what was left of usage in shop: 3 rows,")
    assert stack.log.actions == [("purge_part", "begun"), ("purge_part", "done")]
    assert stack.left["EndpointsTable"] == 2, "another part's"


@pytest.mark.parametrize("dies_at", KEPT["usage"])
def test_a_run_that_died_anywhere_can_be_repeated(run: Run, stack: FakeStack, dies_at: str) -> None:
    def die(logical_id: str) -> None:
        if logical_id == dies_at:
            raise ProcessDied

    stack.before_empty = die
    with pytest.raises(ProcessDied):
        work.purge(stack, "usage")  # type: ignore[arg-type]
    stack.before_empty = lambda _: None
    assert run("parts", "purge", "usage", "--confirm", "shop").exit_code == 0
    assert {name: stack.left[name] for name in KEPT["usage"]} == dict.fromkeys(KEPT["usage"], 0)


@pytest.mark.guards("parts-purge-absent-still")
def test_it_stops_where_the_part_is_deployed_meanwhile(run: Run, stack: FakeStack) -> None:
    stack.before_empty = lambda _: stack.absent.discard("usage")
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
