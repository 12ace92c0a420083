"""The one local stack of this tier: the real template, started once as a user starts it."""

from collections.abc import Iterator

import httpx
import pytest

from tests.local.keyed import client
from tests.local.local_stack import LocalStack, shared_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The stack that serves, with the real template."""
    with shared_stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


@pytest.fixture
def api(stack: LocalStack) -> Iterator[httpx.Client]:
    """A plain HTTP client at the API's root."""
    with client(stack, None) as api:
        yield api
