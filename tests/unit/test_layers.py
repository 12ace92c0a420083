"""The layers agree: the bytecode is that of the very packages, and the models are those of the very botocore."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.loaders import Loader
from botocore.session import Session

from darkroom.aws.kernel.models import SERVICES, ModelLoader
from repository.report import ROOT

WITHOUT_MODULES = {"pyvips-binary"}


def pins(layer: str) -> dict[str, str]:
    """Each package of a layer, with its version and hashes."""
    text = (ROOT / "layers" / layer / "requirements.txt").read_text()
    return {block.partition("==")[0]: block.strip() for block in re.split(r"(?m)^(?=[a-z])", text) if "==" in block}


def test_the_bytecode_is_of_all_packages_and_of_the_same_versions() -> None:
    packages = pins("dependencies") | pins("imaging")
    assert pins("bytecode") == {name: pin for name, pin in packages.items() if name not in WITHOUT_MODULES}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> type[ModelLoader]:
    """A loader of models where the layer of bytecode lies over that with botocore."""
    folder = tmp_path_factory.mktemp("layers")
    packages, data = Path(botocore.__file__).parents[1], folder / "botocore" / "data"
    data.mkdir(parents=True)
    for part in ("endpoints.json", "partitions.json", "sdk-default-configuration.json", "_retry.json", *SERVICES):
        (shutil.copytree if part in SERVICES else shutil.copy)(packages / "botocore" / "data" / part, data / part)
    subprocess.run([sys.executable, ROOT / "layers" / "bytecode" / "models.py", packages, folder], check=True)

    class Layered(ModelLoader):
        BUILTIN_DATA_PATH = str(data)

    return Layered


def session_with(loader: Loader) -> Session:
    session = Session()
    session.register_component("data_loader", loader)
    session.set_credentials("key", "secret")
    return session


@pytest.mark.parametrize("service", SERVICES)
def test_the_layers_models_are_botocores_without_the_documentation(service: str, models: type[ModelLoader]) -> None:
    ours, botocores = models(), Loader()
    for kind in ("service-2", "endpoint-rule-set-1"):
        complete, loaded = (loader.load_service_model(service, kind) for loader in (botocores, ours))
        assert loaded != complete, "it is the layer's"
        assert loaded == undocumented(complete)


def undocumented(document: Any) -> Any:
    if isinstance(document, list):
        return [undocumented(item) for item in document]
    if not isinstance(document, dict):
        return document
    emptied = {name: "" for name, value in document.items() if (name, type(value)) == ("documentation", str)}
    return {name: undocumented(value) for name, value in document.items()} | emptied


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1", "xx-new-1"])
def test_clients_of_the_layers_models_call_the_same_places(region: str, models: type[ModelLoader]) -> None:
    ours, botocores = session_with(models()), session_with(Loader())
    for service in SERVICES:
        client, other = (session.create_client(service, region_name=region) for session in (ours, botocores))
        # The first part of it, without the signature.
        assert signed(client).split("?")[0] == signed(other).split("?")[0]


def signed(client: Any) -> str:
    """A request of the service's list, with its address."""
    lists = (
        "list_buckets",
        "list_functions",
        "list_queues",
        "list_secrets",
        "list_state_machines",
        "list_tables",
        "list_topics",
    )
    address: str = client.generate_presigned_url(next(name for name in lists if hasattr(client, name)))
    return address


@pytest.mark.guards("cold-start-botocore-version")
def test_models_of_another_botocore_are_not_used(models: type[ModelLoader], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore, "__version__", "1.0.0")
    model = models().load_service_model("sqs", "service-2")
    assert model["documentation"], "it is botocore's own"
