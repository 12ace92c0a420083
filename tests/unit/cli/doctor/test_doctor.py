"""`darkroom doctor`: what it prints, what it advises, and its exit status."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
import typer
from rich.console import Console
from rich.text import Text

from darkroom.domain.kernel.errors import Retryable
from darkroom_cli.doctor import collect as gathering
from darkroom_cli.doctor import work as doctor_work
from darkroom_cli.doctor.checks import Check, Finding
from darkroom_cli.doctor.facts import CouldNotBeRead, Facts, Missing
from darkroom_cli.doctor.work import CHECKLIST, CHECKS
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError
from repository.report import ROOT
from tests.support.fakes.pictures import jpeg
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.doctor.sound import SOUND

OF_ROWS = (doctor_work.ROWS, doctor_work.LISTED)


@pytest.fixture
def stack(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    stack.facts = SOUND
    monkeypatch.setattr(gathering, "gather", lambda stack, on_progress: stack.facts)
    return stack


def spoil(stack: FakeStack) -> str:
    image_id: str = stack.world.submit(jpeg()).image.image_id
    stack.images.unreadable[image_id] = stack.images.rows.pop(image_id)
    return image_id


def test_a_sound_stack_is_said_line_by_line(run: Run, stack: FakeStack) -> None:
    stack.world.submit(jpeg())
    result = run("doctor")
    assert result.exit_code == 0
    for check in CHECKLIST:
        assert f"{check.question}" in result.stdout
    assert "  ✓ senders may only send, on each queue\n" in result.stdout
    assert "  \N{EN DASH} messages survive a broker's restart: docs/decisions/0033-operators-tools.md" in result.stdout
    assert "  · no API key is old or forgotten: only asked with --production\n" in result.stdout
    assert "\nNot asked without --production: that the messages' key is younger than a year; " in result.stdout
    assert "✗" not in result.stdout


def test_a_production_stack_is_asked_everything(run: Run, stack: FakeStack) -> None:
    result = run("doctor", "--production")
    assert result.exit_code == 0
    assert "·" not in result.stdout and "Not asked" not in result.stdout
    stack.facts = replace(SOUND, parameters={**SOUND.parameters, "Access": "anonymous"})
    assert run("doctor").exit_code == 0
    result = run("doctor", "--production")
    assert result.exit_code == 1
    assert "      Access: it is anonymous: everybody may upload, read and delete\n" in result.stdout


def test_what_is_wrong_is_said_with_its_remedy_and_the_reason_for_it(run: Run, stack: FakeStack) -> None:
    stack.facts = replace(SOUND, queues={**SOUND.queues, "FastQueue": replace(SOUND.queues["FastQueue"], policy=())})
    result = run("doctor")
    lines = result.stdout.splitlines()
    place = lines.index("  ✗ everything travels by TLS, and what comes without is refused")
    assert result.exit_code == 1
    assert lines[place + 1] == "      FastQueue: its policy does not refuse what comes without TLS"
    assert lines[place + 2].startswith("      → Deploy this checkout again")
    assert lines[place + 3] == "      Why: docs/decisions/0028-roles-and-encryption.md"
    assert "1 wrong." in lines[-2]


def test_json_has_each_check(run: Run, stack: FakeStack) -> None:
    stack.facts = replace(SOUND, queues={**SOUND.queues, "FastQueue": replace(SOUND.queues["FastQueue"], policy=())})
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    checks = {check["name"]: check for check in document["checks"]}
    assert (result.exit_code, document["stack"], document["sound"], document["production"]) == (1, "shop", False, False)
    assert checks.keys() == {check.name for check in CHECKS} | {"rows", "listed"}
    assert checks["tls-only"]["status"] == "wrong" and checks["tls-only"]["group"] == "Security"
    assert checks["tls-only"]["findings"] == [
        {"id": "FastQueue", "reason": "its policy does not refuse what comes without TLS"}
    ]
    assert checks["senders-only-send"]["status"] == "sound" and checks["senders-only-send"]["advice"] is None
    assert checks["survives-a-restart"]["status"] == "decided"
    assert checks["api-keys"]["status"] == "not asked" and checks["api-keys"]["not_asked"]


@pytest.mark.guards("doctor-unknown-not-sound")
def test_what_could_not_be_checked_is_said_with_the_reason_and_keeps_no_other_from_being_said(
    run: Run, stack: FakeStack
) -> None:
    stack.facts = replace(SOUND, quotas=Missing("AWS refuses ListServiceQuotas (AccessDenied)"))
    result = run("doctor")
    assert result.exit_code == 1
    assert "  ? no quota of the account is near its limit\n" in result.stdout
    assert "      could not be checked: AWS refuses ListServiceQuotas (AccessDenied)\n" in result.stdout
    assert "  ✓ senders may only send, on each queue\n" in result.stdout


def test_unreadable_rows_are_listed_with_what_to_do_and_nothing_is_changed(run: Run, stack: FakeStack) -> None:
    image_id = spoil(stack)
    before = dict(stack.images.unreadable)
    result = run("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    place = lines.index("  ✗ this version can read every row that was checked")
    assert lines[place + 1].split() == ["id", "tenant", "waiting_since", "next_look_at", "reason"]
    facts = [image_id, "default", "2026-11-21T09:00:00.000Z", "2026-11-21T09:20:00.000Z", "invented", "later"]
    assert lines[place + 2].split() == facts
    assert "A newer version wrote them: deploy it again" in lines[place + 3]
    assert stack.images.unreadable == before


def test_json_has_them_all(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_work, "_SHOWN", 1)
    ids = {spoil(stack), spoil(stack)}
    assert "  … and 1 more; --json has them all." in run("doctor").stdout
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    check = document["checks"][-2]
    assert (result.exit_code, document["sound"], check["name"], check["status"]) == (1, False, "rows", "wrong")
    assert {finding["id"] for finding in check["findings"]} == ids
    assert check["findings"][0]["waiting_since"] == "2026-11-21T09:00:00.000Z"
    assert "deploy it again" in check["advice"]


@pytest.mark.parametrize(
    ("asked", "missing", "said"),
    [
        (("removed",), 1, "1 image of the first page of rows (--all reads the others): no list shows them"),
        (("removed", "--all"), 2, "2 images of the whole table: no list shows them"),
        (("kept", "--all"), 1, "1 image of the whole table: lists use the former index"),
        (("kept", "--all"), 0, "the former index is not needed any more"),
        (("kept",), 0, None),
        (("removed", "--all"), 0, None),
    ],
)
def test_images_that_an_earlier_version_accepted_are_missing_in_lists_until_they_are_enlisted(
    run: Run, stack: FakeStack, asked: tuple[str, ...], missing: int, said: str | None
) -> None:
    index, *options = asked
    stack.facts = replace(SOUND, parameters={**SOUND.parameters, "NewestIndex": index})
    stack.images.of_before |= {stack.world.submit(jpeg()).image.image_id for _ in range(missing)}
    result = run("doctor", *options)
    assert result.exit_code == (0 if said is None else 1)
    if said is not None:
        assert f"ImagesTable: {said}" in result.stdout
        assert "Add them with ./darkroom tenants enlist --yes" in result.stdout


@pytest.mark.guards("isolated-doctor-check")
def test_a_check_that_cannot_be_made_keeps_no_other_from_being_made(
    stack: FakeStack, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(_: Facts) -> Iterator[Finding]:
        raise CouldNotBeRead("AWS refuses Query (AccessDenied)")
        yield

    silent = Check(name="silent", group="Some", question="it speaks", look=cannot)
    with pytest.raises(typer.Exit) as ended:
        doctor_work.examine(stack, whole_table=False, production=False, as_json=False, checks=(silent, *CHECKS))  # type: ignore[arg-type]
    assert ended.value.exit_code == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:3] == ["  ? it speaks", "      could not be checked: AWS refuses Query (AccessDenied)"]
    assert "  ✓ senders may only send, on each queue" in printed


@pytest.mark.guards("isolated-doctor-rows", case="due")
@pytest.mark.guards("isolated-doctor-unlisted", case="unlisted")
@pytest.mark.parametrize("read", ["due", "unlisted"])
def test_a_table_that_does_not_answer_is_no_sound_stack(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise Retryable("reading the due index: ThrottlingException")

    monkeypatch.setattr(stack.images, read, fails)
    result = run("doctor")
    assert result.exit_code == 1 and "AWS did not answer" in result.stdout
    assert "  ✓ senders may only send, on each queue\n" in result.stdout


def test_a_stack_that_cannot_be_reached_is_one_error(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Facts:
        raise ApiError("AWS cannot be reached")

    monkeypatch.setattr(gathering, "gather", fails)
    result = run("doctor")
    assert (result.exit_code, result.stdout) == (1, "")


def test_every_check_that_can_find_something_says_what_to_do_and_every_other_names_a_decision() -> None:
    for check in (*CHECKS, *OF_ROWS):
        can_find = check.look is not None or check.look_in_production is not None or check in OF_ROWS
        assert check.remedy if can_find else check.decisions, check.name
        assert (check.look_in_production is None) == (not check.in_production), check.name


def test_every_decision_that_is_named_exists() -> None:
    for check in (*CHECKS, *OF_ROWS):
        for name in check.decisions:
            assert (ROOT / "docs" / "decisions" / f"{name}.md").exists(), name


def test_findings_wrap_at_the_width_of_a_terminal_and_names_stay_whole(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.facts = replace(SOUND, queues={**SOUND.queues, "FastQueue": replace(SOUND.queues["FastQueue"], policy=())})
    terminal = io.StringIO()
    out = Console(file=terminal, force_terminal=True, width=60, no_color=True, highlight=False, emoji=False)
    monkeypatch.setattr(display, "output", lambda: out)
    run("doctor")
    lines = Text.from_ansi(terminal.getvalue()).plain.splitlines()
    place = lines.index("      FastQueue: its policy does not refuse what comes")
    assert lines[place + 1] == "        without TLS"
    assert lines[place + 2].startswith("      → Deploy this checkout again")
    (why,) = [at for at, line in enumerate(lines) if line.startswith("      Why:")]
    assert max(map(len, lines[place:why])) <= 60
    assert "docs/decisions/0028-roles-and-encryption.md" in " ".join(lines[why : why + 2])
