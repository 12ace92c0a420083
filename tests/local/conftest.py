"""The local stack that the tests of this folder share: the real template, started once as a user starts it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.local_stack import LocalStack, shared_stack


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in this hook, and would otherwise be called first
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` all tests that use the shared stack run in one worker, so there is only one."""
    for item in items:
        if "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("stack"))


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The stack that serves, with the real template."""
    with shared_stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


@pytest.fixture
def another_stack(stack: LocalStack, tmp_path: Path) -> LocalStack:
    """A stack of the same checkout that is not running yet, and starts in seconds."""
    other = LocalStack(state=tmp_path / "state")
    other.borrow_downloads(stack.state)
    return other
