"""`darkroom doctor`: what it finds, what it advises, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import pytest
import typer

from console.api.client import ApiError
from console.doctor import commands as doctor
from console.doctor import work as doctor_work
from console.doctor.work import CHECKS, Check, Finding
from darkroom.domain.errors import Retryable
from proof.fakes import World
from proof.fakes.pictures import jpeg
from tests.unit.console.conftest import Run


@dataclass
class FakeStack:
    """A deployed stack over the fakes. It is Saturday, 21 November 2026, 09:00 UTC."""

    world: World = field(default_factory=World)
    explained: Callable[[], AbstractContextManager[None]] = nullcontext

    def __post_init__(self) -> None:
        self.images = self.world.images


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    fake = FakeStack()
    monkeypatch.setattr(doctor, "reach", lambda *_: fake)
    return fake


def spoil(stack: FakeStack) -> str:
    image_id = stack.world.submit(jpeg()).image.image_id
    stack.images.unreadable[image_id] = stack.images.rows.pop(image_id)
    return image_id


def test_a_sound_stack_is_said_in_one_line(run: Run, stack: FakeStack) -> None:
    stack.world.submit(jpeg())
    result = run("doctor")
    assert (result.exit_code, result.stdout) == (0, "rows: this version can read every row that was checked.\n")
    assert json.loads(run("doctor", "--json").stdout) == {
        "sound": True,
        "checks": [{"name": "rows", "sound": True, "failure": None, "advice": None, "findings": []}],
    }


def test_unreadable_rows_are_listed_with_what_to_do_and_nothing_is_changed(run: Run, stack: FakeStack) -> None:
    image_id = spoil(stack)
    before = dict(stack.images.unreadable)
    result = run("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "rows: 1 rows that this version cannot read."
    assert lines[2].split() == ["id", "tenant", "waiting_since", "next_look_at", "reason"]
    facts = [image_id, "default", "2026-11-21T09:00:00.000Z", "2026-11-21T09:20:00.000Z", "invented", "later"]
    assert lines[3].split() == facts
    assert "A newer version wrote them: deploy it again" in lines[-1]
    assert stack.images.unreadable == before


def test_json_has_them_all(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_work, "_SHOWN", 1)
    ids = {spoil(stack), spoil(stack)}
    assert "  … and 1 more; --json has them all." in run("doctor").stdout
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    (check,) = document["checks"]
    assert (result.exit_code, document["sound"], check["sound"]) == (1, False, False)
    assert {finding["id"] for finding in check["findings"]} == ids
    assert check["findings"][0]["waiting_since"] == "2026-11-21T09:00:00.000Z"
    assert "deploy it again" in check["advice"]


def test_rows_of_ended_images_are_looked_at_when_told_to(run: Run, stack: FakeStack) -> None:
    image_id = spoil(stack)
    ended = replace(stack.images.unreadable[image_id], due_at=None, waiting_since=None)
    stack.images.unreadable[image_id] = ended
    assert run("doctor").exit_code == 0
    result = run("doctor", "--all")
    assert result.exit_code == 1 and image_id in result.stdout


def test_a_check_that_cannot_be_made_keeps_no_other_from_being_made(
    stack: FakeStack, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(_: object) -> list[Finding]:
        raise ApiError("AWS refuses Query (AccessDenied)")

    silent = Check(name="silent", sound="", wrong="", advice="", look=cannot)
    with pytest.raises(typer.Exit) as ended:
        doctor_work.examine(stack, whole_table=False, as_json=False, checks=(silent, *CHECKS))  # type: ignore[arg-type]
    assert ended.value.exit_code == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "silent: could not be checked. AWS refuses Query (AccessDenied)"
    assert told[1].startswith("rows: this version can read")


def test_a_table_that_does_not_answer_is_no_sound_stack(
    run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    from console.stack.operators import explained  # noqa: PLC0415

    def fails(*_: object) -> None:
        raise Retryable("reading the due index: ThrottlingException")

    stack.explained = lambda: explained("shop", "eu-west-1", is_local=False)
    monkeypatch.setattr(stack.images, "due", fails)
    result = run("doctor")
    assert result.exit_code == 1 and "AWS did not answer" in result.stdout
