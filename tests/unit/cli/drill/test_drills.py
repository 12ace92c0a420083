"""The drills ring every alarm that there is, throw switches that exist, and are described as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from click import Command, Context
from typer.main import get_command

from darkroom.domain.images.image import Image, Status
from darkroom.domain.kernel.tenants import Tier
from darkroom.parts import PARTS
from darkroom_cli.drill import commands, work
from darkroom_cli.drill.alarms import AlarmHistory
from darkroom_cli.drill.commands import app
from darkroom_cli.drill.drills import CRITICAL, DRILLS, INCIDENT, Drill, Where
from darkroom_cli.drill.loads import UploadsToReplay
from darkroom_cli.drill.pages import ago, table_of_drills
from darkroom_cli.drill.result import DrillResult
from darkroom_cli.drill.scene import Scene
from darkroom_cli.drill.switches import KINDS
from darkroom_client.client import ApiError
from repository.expand_template import deployed, expanded_template, resources
from repository.report import ROOT
from tests.support.fakes.rows import accepted_image
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi

TEMPLATE = expanded_template()["Resources"]
METRIC_ALARMS = resources("AWS::CloudWatch::Alarm")
PAGE = (ROOT / "docs" / "drills.md").read_text()

KIND_OF_TARGET = {
    "threshold": "AWS::CloudWatch::Alarm",
    "event_source": "AWS::Lambda::EventSourceMapping",
    "concurrency": "AWS::Lambda::Function",
    "handler": "AWS::Lambda::Function",
    "variable": "AWS::Lambda::Function",
    "schedule": "AWS::Events::Rule",
    "denied": "AWS::IAM::Role",
    "write_limit": "AWS::DynamoDB::Table",
}


NO_RESOURCE = ("planted_row", "difference", "pause")
"""The switches whose targets are an image and a tenant."""


def test_every_alarm_that_a_stack_has_by_default_is_rung_by_a_drill() -> None:
    rung = frozenset().union(*(drill.expected for drill in DRILLS.values()))
    assert rung == {*METRIC_ALARMS, INCIDENT} - {"EditsWaitAlarm"}, "which EditOrder=fifo brings"


def test_a_drill_expects_a_page_for_exactly_the_alarms_that_make_an_incident() -> None:
    (composite,) = resources("AWS::CloudWatch::CompositeAlarm").values()
    rule = str(composite["AlarmRule"])
    assert {name for name in METRIC_ALARMS if re.search(rf"\$\{{{name}(\.Arn)?\}}", rule)} == CRITICAL
    for drill in DRILLS.values():
        assert (INCIDENT in drill.expected) == bool(drill.alarms & CRITICAL), drill.name


def test_every_switch_is_of_a_resource_of_its_kind() -> None:
    for drill in DRILLS.values():
        for throw in drill.throws:
            assert throw.kind in KINDS
            if throw.kind in NO_RESOURCE:
                continue
            target, _, variable = throw.target.partition(".")
            assert TEMPLATE[target]["Type"] == KIND_OF_TARGET[throw.kind], throw
            if variable:
                assert variable in TEMPLATE[target]["Properties"]["Environment"]["Variables"]


@pytest.mark.parametrize("row", table_of_drills(), ids=DRILLS)
def test_the_page_describes_each_drill_as_it_is(row: tuple[str, ...]) -> None:
    assert f"| {' | '.join(row)} |" in PAGE.splitlines()


def test_the_page_describes_no_other_drill() -> None:
    assert sum(line.startswith("| `") for line in PAGE.splitlines()) == len(DRILLS)


def test_a_drill_that_may_not_run_everywhere_says_why() -> None:
    for drill in DRILLS.values():
        assert (drill.where is Where.ANYWHERE) != bool(drill.because), drill.name


class Deployed:
    """A stack as far as permission needs it."""

    def __init__(self, environment: str, *, access: str = "keys") -> None:
        self.name, self.options = "darkroom", ""
        self.parameters = {"Environment": environment}
        self.parts: Collection[str] = PARTS
        self.is_local = environment == "local"
        self.access = access


def check(drill: Drill, environment: str, *, access: str = "keys", yes: bool = False) -> None:
    stack: Any = Deployed(environment, access=access)
    work.check_allowed(stack, drill, in_production=yes)


@pytest.mark.guards("drill-production-consent")
def test_production_needs_consent_to_every_drill() -> None:
    for drill in DRILLS.values():
        with pytest.raises(ApiError):
            check(drill, "prod")


@pytest.mark.guards("drill-harmful-not-in-production")
def test_consent_does_not_cover_what_would_harm_everybody() -> None:
    for drill in DRILLS.values():
        if drill.where is Where.ANYWHERE:
            check(drill, "prod", yes=True)
        else:
            with pytest.raises(ApiError, match=drill.because):
                check(drill, "prod", yes=True)


def test_what_only_the_local_stack_can_do_is_refused_elsewhere() -> None:
    for drill in DRILLS.values():
        check(drill, "local")
        if drill.where is Where.LOCAL:
            with pytest.raises(ApiError, match="only on the local stack"):
                check(drill, "staging")
        else:
            check(drill, "staging")


@pytest.mark.guards("drill-absent-part")
@pytest.mark.parametrize("off", [("webhooks", "usage"), ("usage",), ("imports",), ("page",), ("bulk",), PARTS])
def test_a_stack_has_all_that_its_drills_change_and_ring(off: tuple[str, ...]) -> None:
    stack: Any = Deployed("local")
    stack.parts = [part for part in PARTS if part not in off]
    resources_deployed = deployed(
        Environment="local", Access="keys", **{part.capitalize(): "false" for part in off}
    ).keys()
    for drill in DRILLS.values():
        needed = drill.alarms | {
            throw.target.partition(".")[0] for throw in drill.throws if throw.kind not in NO_RESOURCE
        }
        if drill.part in off:
            with pytest.raises(ApiError, match="deployed without"):
                work.check_allowed(stack, drill, in_production=True)
        else:
            assert needed <= resources_deployed, drill.name
            work.check_allowed(stack, drill, in_production=True)


def test_all_drills_leave_out_what_the_stack_has_not_and_say_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stack: Any = Deployed("local")
    stack.parts, stack.explained = ["webhooks"], nullcontext
    ran: list[str] = []

    def run_all(_: Any, drills: Sequence[Drill], **options: Any) -> list[Any]:
        ran.extend(drill.name for drill in drills)
        return []

    monkeypatch.setattr(commands, "reach", lambda *_: stack)
    monkeypatch.setattr(work, "run_all", run_all)
    result = run("drill", "all", "--only", "fetches-stuck", "--only", "events-stuck")
    assert ran == ["events-stuck"]
    assert result.stderr == "fetches-stuck is left out: darkroom is deployed without imports.\n"


def test_no_drill_waits_for_alarms_that_the_stack_was_deployed_without() -> None:
    stack: Any = Deployed("local")
    stack.parameters["Observability"] = "false"
    for drill in DRILLS.values():
        with pytest.raises(ApiError, match="Observability=true"):
            work.check_allowed(stack, drill, in_production=True)


def test_tenants_of_several_tiers_need_keys() -> None:
    with pytest.raises(ApiError, match="--access keys"):
        check(DRILLS["overload"], "local", access="anonymous")


class Stage:
    """A scene as far as judging needs it."""

    def __init__(self, *rows: Image) -> None:
        self._rows = rows

    def unfinished(self) -> list[Image]:
        return [row for row in self._rows if row.status is not Status.DONE]


def judged(drill: Drill, *rows: Image, pages: int = 1, clears: int = 1, more: str | None = None) -> list[str]:
    result = DrillResult(drill=drill)
    fired = Counter(drill.expected)
    if more is not None:
        fired[more] += 1
    history = AlarmHistory(
        fired=fired, cleared=Counter(fired), pages=Counter({INCIDENT: pages}), all_clears=Counter({INCIDENT: clears})
    )
    scene: Any = Stage(*rows)
    work._judge(history, result, scene)
    return result.problems


def test_an_incident_pages_once_and_what_only_warns_does_not() -> None:
    assert judged(DRILLS["sweeper-off"]) == []
    assert judged(DRILLS["sweeper-off"], pages=2) == ["2 pages instead of 1"]
    assert judged(DRILLS["poison"]) == ["1 pages instead of 0", "1 messages that all is clear instead of 0"]


def test_an_alarm_that_may_fire_pages_once_if_it_does() -> None:
    drill = DRILLS["old-dead-letter"]
    assert judged(drill, pages=0, clears=0) == []
    assert judged(drill, pages=1, more="SweeperSilentAlarm") == []
    assert judged(drill, pages=0, clears=0, more="SweeperSilentAlarm") == [
        "0 pages instead of 1",
        "0 messages that all is clear instead of 1",
    ]


@pytest.mark.guards("drill-unexpected-alarm-fails")
def test_an_alarm_that_the_drill_does_not_name_is_not() -> None:
    assert judged(DRILLS["sweeper-off"], more="ApiErrorsAlarm") == ["ApiErrorsAlarm fired too"]


def test_an_image_that_was_accepted_and_is_not_done_is_not() -> None:
    (problem,) = judged(DRILLS["sweeper-off"], accepted_image(now=0))
    assert "not done" in problem


class LateScene:
    """A scene whose second image is given up only after the first replay."""

    def __init__(self) -> None:
        self.rows = {"a": Status.FAILED, "b": Status.PENDING}
        self.replays = 0

    def unfinished(self) -> list[Any]:
        return [
            SimpleNamespace(tenant_id="t", status=status) for status in self.rows.values() if status is not Status.DONE
        ]

    def darkroom(self, *arguments: str) -> tuple[int, str]:
        assert arguments == ("dlq", "replay", "--tenant", "t", "--yes")
        self.replays += 1
        self.rows = {name: Status.DONE if status is Status.FAILED else status for name, status in self.rows.items()}
        return 0, ""

    def await_done(self, each_minute: Callable[[], None]) -> None:
        for _ in range(3):
            each_minute()
            if self.rows["b"] is Status.PENDING:
                self.rows["b"] = Status.FAILED


def test_what_is_given_up_while_the_others_are_replayed_is_replayed_too() -> None:
    scene: Any = LateScene()
    UploadsToReplay(count=2, tier=Tier.PLUS).recover(scene)
    assert (set(scene.rows.values()), scene.replays) == ({Status.DONE}, 2)


@pytest.mark.parametrize(("access", "sent"), [("jwt", "Bearer of-the-environment"), ("anonymous", None)])
def test_a_drill_takes_its_token_from_the_environment_and_sends_it_where_callers_have_tokens(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, access: str, sent: str | None
) -> None:
    monkeypatch.setenv("DARKROOM_API_KEY", "of-the-environment")
    (option,) = [parameter for parameter in get_command(app).commands["run"].params if "--api-token" in parameter.opts]  # type: ignore[attr-defined]
    stack: Any = SimpleNamespace(access=access, is_local=True)
    unused: Any = None
    token = option.value_from_envvar(Context(Command("run")))
    scene = Scene(stack=stack, api_url=api.url, clock=unused, pause=unused, token=token)
    scene.upload(1, tier=Tier.PLUS)
    assert [seen.headers.get("authorization") for seen in api.requests] == [sent]


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(-5, "less than a minute"), (59_999, "less than a minute"), (60_000, "1 minute"), (7_200_000, "2 hours")],
)
def test_how_long_ago_it_was_is_said_in_words(milliseconds: int, said: str) -> None:
    assert ago(milliseconds) == said
