"""Stacks of the real template, each started as a user starts it. The tests of a file share theirs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.elsewhere import Elsewhere, settings_that_lead_elsewhere
from tests.local.local_stack import LocalStack, have_build


@pytest.fixture(scope="session", autouse=True)
def build(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The checkout is built once for all stacks."""
    have_build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that serves."""
    stack = LocalStack(state=tmp_path_factory.mktemp("stack"))
    with stack.serving():
        yield stack


@pytest.fixture
def another_stack(tmp_path: Path) -> LocalStack:
    """A stack that is not running yet, and starts in seconds."""
    stack = LocalStack(state=tmp_path / "state")
    stack.borrow_build()
    return stack


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    """Where the machine's AWS settings lead, which must not be asked anything."""
    with settings_that_lead_elsewhere(tmp_path / "home") as elsewhere:
        yield elsewhere
