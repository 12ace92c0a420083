"""`darkroom doctor --repair`: says what was changed by hand, sets it back when told to, and writes down who did it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from darkroom_cli.doctor import collect as gathering
from darkroom_cli.doctor import repair
from darkroom_cli.doctor.checkout import runbook_sections
from darkroom_cli.doctor.facts import Facts, Missing
from darkroom_cli.drill.opened import OpenDrill
from darkroom_cli.stack import operators
from repository.expand_template import resources
from tests.support.stack import OPTIONS, FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.doctor.sound import KEY, SOUND, VARIABLES, deployed

WORKER = "TranscodeImageFunction"
WRONG_BUCKET = {"MESSAGE_KEY": KEY, **VARIABLES[WORKER], "ORIGINALS_BUCKET": "another"}
RIGHT_BUCKET = WRONG_BUCKET | {"ORIGINALS_BUCKET": "originals"}


def as_deployed(live: Mapping[str, Mapping[str, str]]) -> Facts:
    """The facts of a stack whose worker has these variables, and was deployed with the right bucket."""
    properties: dict[str, dict[str, Any]] = {
        name: {
            "Environment": {"Variables": RIGHT_BUCKET if name == WORKER else function.variables},
            "ReservedConcurrentExecutions": function.reserved,
        }
        for name, function in SOUND.functions.items()
    }
    for name, queue in SOUND.queues.items():
        properties[name] = {"RedrivePolicy": {"deadLetterTargetArn": queue.dead_letters}}
    functions = {**SOUND.functions, WORKER: replace(SOUND.functions[WORKER], variables=live[WORKER])}
    return deployed(replace(SOUND, functions=functions), **properties)


@dataclass
class RepairedStack(FakeStack):
    """A stack whose functions have `variables`; Lambda refuses to change those that `refused` names.

    It is its own client of Lambda, and its own record of the drill that is open.
    """

    variables: dict[str, dict[str, str]] = field(default_factory=lambda: {WORKER: dict(WRONG_BUCKET)})
    change: Callable[[Facts], Facts] = lambda facts: facts
    open: OpenDrill | None = None
    refused: str = ""

    def client(self, _: str) -> RepairedStack:
        return self

    def find(self) -> OpenDrill | None:
        return self.open

    def physical_id(self, logical_id: str) -> str:
        return logical_id

    def get_function_configuration(self, **asked: Any) -> dict[str, Any]:
        return {"Environment": {"Variables": self.variables[asked["FunctionName"]]}}

    def update_function_configuration(self, **asked: Any) -> None:
        if asked["FunctionName"] == self.refused:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "UpdateFunctionConfiguration")
        self.variables[asked["FunctionName"]] = dict(asked["Environment"]["Variables"])


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> RepairedStack:
    fake = RepairedStack()
    fake.world.now = 5_000
    monkeypatch.setattr(operators, "open_stack", lambda *_: fake)
    monkeypatch.setattr(gathering, "gather", lambda *_, **__: fake.change(as_deployed(fake.variables)))
    monkeypatch.setattr(repair, "open_drills", lambda stack: stack)
    return fake


@pytest.mark.guards("drift-repair-consent")
def test_without_yes_it_says_what_it_would_set_back_and_changes_nothing(run: Run, stack: RepairedStack) -> None:
    result = run("doctor", "--repair")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Would change 1 setting of shop to what it was deployed with:",
        f"  {WORKER}: its variable ORIGINALS_BUCKET is another, and it was deployed as originals",
        "Nothing was changed. --yes does it; --only RESOURCE leaves out the others.",
    ]
    assert stack.variables[WORKER] == WRONG_BUCKET and stack.audit_log.lines == []


def test_with_yes_it_is_set_back_and_the_audit_log_says_by_whom(run: Run, stack: RepairedStack) -> None:
    result = run("doctor", "--repair", "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Changed 1 setting of shop") and "not set back" not in result.stdout
    assert stack.variables[WORKER] == RIGHT_BUCKET
    assert stack.audit_log.actions == [("repair", "begun"), ("repair", "done")]
    assert stack.audit_log.lines[0].entry.targets == (f"{WORKER}.Environment.Variables.ORIGINALS_BUCKET",)
    again = run("doctor", "--repair", "--yes")
    assert again.exit_code == 0 and again.stdout.startswith("Nothing of shop that can be set back was changed")
    assert len(stack.audit_log.lines) == 2, "nothing was done, so nothing is written down"


def test_nothing_is_changed_while_the_audit_log_is_silent(run: Run, stack: RepairedStack) -> None:
    stack.audit_log.is_down = True
    assert run("doctor", "--repair", "--yes").exit_code == 1
    assert stack.variables[WORKER] == WRONG_BUCKET


@pytest.mark.guards("drift-open-drill-excluded")
@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_what_an_open_drill_has_changed_is_left_to_its_undo(
    run: Run, stack: RepairedStack, more: tuple[str, ...]
) -> None:
    stack.open = OpenDrill(name="overload", token="t", settings=(), began_at=1_000, expires_at=9_000)
    result = run("doctor", "--repair", *more)
    assert result.exit_code == 1 and f"./darkroom drill undo{OPTIONS}" in result.stderr
    assert stack.variables[WORKER] == WRONG_BUCKET


@pytest.mark.guards("drift-no-repair-while-deploying")
def test_nothing_is_changed_during_a_deployment(run: Run, stack: RepairedStack) -> None:
    stack.change = lambda facts: replace(facts, status="UPDATE_IN_PROGRESS")
    result = run("doctor", "--repair", "--yes")
    assert result.exit_code == 1 and "UPDATE_IN_PROGRESS" in result.stderr
    assert stack.variables[WORKER] == WRONG_BUCKET


def test_only_the_chosen_resource_is_set_back(run: Run, stack: RepairedStack) -> None:
    assert "Nothing of shop" in run("doctor", "--repair", "--yes", "--only", "FastLane").stdout
    assert stack.variables[WORKER] == WRONG_BUCKET
    unknown = run("doctor", "--repair", "--yes", "--only", "FastLan")
    assert unknown.exit_code == 1 and "no resource FastLan" in unknown.stderr
    assert run("doctor", "--repair", "--yes", "--only", WORKER).exit_code == 0
    assert stack.variables[WORKER] == RIGHT_BUCKET


@pytest.mark.guards("drift-repair-failure-isolated")
def test_one_that_is_refused_is_reported_and_keeps_none_of_the_others(
    run: Run, stack: RepairedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = replace(SOUND.event_sources["FastLane"], is_enabled=False)
    stack.refused = WORKER
    stack.change = lambda facts: replace(facts, event_sources={**facts.event_sources, "FastLane": off})
    written: list[str] = []
    mapping = "AWS::Lambda::EventSourceMapping"
    monkeypatch.setattr(repair, "WRITES", {**repair.WRITES, mapping: lambda _, drift: written.append(drift.setting)})
    result = run("doctor", "--repair", "--yes", "--json")
    settings = {setting["resource"]: setting for setting in json.loads(result.stdout)["settings"]}
    assert result.exit_code == 1 and written == ["Enabled"]
    assert "AccessDenied" in settings[WORKER]["failure"] and settings[WORKER]["set_back"] is False
    assert (settings["FastLane"]["failure"], settings["FastLane"]["set_back"]) == (None, False), "it was read again"


def test_what_could_not_be_read_is_said_and_is_no_sound_end(run: Run, stack: RepairedStack) -> None:
    stack.change = lambda facts: replace(facts, alarms=Missing("AWS refuses DescribeAlarms"))
    result = run("doctor", "--repair", "--yes")
    assert result.exit_code == 1 and "Not all could be compared: AWS refuses DescribeAlarms" in result.stdout
    assert stack.variables[WORKER] == RIGHT_BUCKET
    stack.change = lambda facts: replace(facts, deployed=Missing("AWS refuses GetTemplate"))
    result = run("doctor", "--repair", "--yes")
    assert result.exit_code == 1 and "AWS refuses GetTemplate" in result.stderr


@pytest.mark.parametrize("words", [("--yes",), ("--only", "A"), ("--repair", "--production"), ("--repair", "--all")])
def test_words_that_mean_nothing_together_are_not_understood(
    run: Run, stack: RepairedStack, words: tuple[str, ...]
) -> None:
    assert run("doctor", *words).exit_code == 2


# ── At three in the morning ──────────────────────────────────────────────────────────────────────────────────────────

FIRING = ["AttemptsFailingAlarm", "ImagesGivenUpAlarm", "ApiErrorsAlarm", "FunctionErrorsAlarm"]
"""What a wrong bucket in a function's variable rings."""


@pytest.mark.guards("drift-manual-change-repaired")
@pytest.mark.parametrize("alarm", FIRING)
def test_a_wrong_bucket_is_healed_by_the_runbook_alone(run: Run, stack: RepairedStack, alarm: str) -> None:
    sections = runbook_sections()
    described = str(resources("AWS::CloudWatch::Alarm")[alarm]["AlarmDescription"])
    section = sections[described.partition("docs/runbook.md#")[2].partition("'")[0].strip(' ".}')]
    assert "[Drift](#drift)" in section, "where the alarm's mail leads"
    examined = run("doctor")
    assert f"{WORKER}: its variable ORIGINALS_BUCKET is another" in examined.stdout
    (advised,) = {line for line in examined.stdout.splitlines() if "--repair" in line}
    assert f"./darkroom doctor --repair{OPTIONS}" in advised and "Deploy this checkout" not in examined.stdout
    drift = sections["drift"].replace("\\\n", " ")
    for command in ("doctor", "doctor --repair", "doctor --repair --yes"):
        assert f'./darkroom {command} --stack "$STACK"' in drift
    assert run("doctor", "--repair").exit_code == 0
    assert run("doctor", "--repair", "--yes").exit_code == 0
    assert stack.variables[WORKER] == RIGHT_BUCKET
    assert "ORIGINALS_BUCKET" not in run("doctor").stdout
