"""The emulators that the tests of the emulator share: one as the local stack runs it, and one without corrections."""

from collections.abc import Iterator

import httpx
import pytest

from local_aws.tests.emulator_server import EmulatorServer, emulator_server


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorServer]:
    """The emulator with all its shims and guards, as the local stack runs it."""
    with emulator_server(tmp_path_factory.mktemp("emulator")) as server:
        yield server


@pytest.fixture(scope="session")
def enforcing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorServer]:
    """The same with IAM evaluated."""
    with emulator_server(tmp_path_factory.mktemp("enforcing"), "--enforce-iam") as server:
        yield server


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorServer]:
    """MiniStack as it is: a test that uses it shows the gap that a shim or guard closes."""
    with emulator_server(tmp_path_factory.mktemp("stock"), "--stock") as server:
        yield server


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    """A client for the APIs under test, which ignores any proxy of the machine."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client
