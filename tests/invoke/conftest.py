"""One embedded stack for all functions; every test needs a Docker engine, in which `sam local invoke` runs them."""

from collections.abc import Iterator

import pytest

from local_aws import docker_engine as engine
from local_aws.docker_engine import NoDockerEngine
from tests.invoke.deployed_stack import DeployedStack
from tests.local.local_stack import shared_stack
from tests.support.fakes.pictures import jpeg


@pytest.fixture(scope="session", autouse=True)
def docker_engine() -> str:
    """The engine's address. Without one nothing can run; with CI=true the tier then fails (checks.test_tiers)."""
    try:
        return engine.host()
    except NoDockerEngine as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def stack(docker_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedStack]:
    """The real templates, deployed, with everything disabled that runs by itself."""
    with shared_stack(tmp_path_factory.mktemp("stack"), "--delivery") as local:
        deployed = DeployedStack(local)
        deployed.publish(jpeg(120, 90))
        deployed.quieten()
        yield deployed
