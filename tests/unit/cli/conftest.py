"""A fake API, a command line that talks to it, and waits that take no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner, Result

from darkroom_cli import main
from darkroom_cli.stack import operators
from darkroom_client import client, polling
from tests.support.stack import FakeStack
from tests.unit.cli.fake_api import FakeApi

_command = cache(get_command)

type Run = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as fake:
        yield fake


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """The stack that every command reaches."""
    fake = FakeStack()
    monkeypatch.setattr(operators, "open_stack", lambda *_: fake)
    return fake


@pytest.fixture
def run(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `darkroom` with arguments against the fake, in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DARKROOM_STATE_DIR", str(tmp_path / "no stack runs here"))
    monkeypatch.setenv("DARKROOM_URL", api.url)
    monkeypatch.delenv("DARKROOM_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(polling, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(client, "pause_before_retry", lambda *policy, **attempt: 0.0)
    # Building the commands from their signatures takes longer than most tests, and always gives the same result.
    monkeypatch.setattr(testing, "_get_command", _command)
    runner = CliRunner()
    return lambda *arguments, stdin=None: runner.invoke(
        main.whole(), [str(argument) for argument in arguments], input=stdin
    )
