"""The set-up with which most tests of operations begin."""

import pytest

from tests.support.fakes import World


@pytest.fixture
def world() -> World:
    return World()
