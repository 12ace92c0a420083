"""When `sam build` runs: not if the last build read the same files, and always if it might not have; and with what, for
AWS."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from darkroom_cli.local.project import PROJECT
from local_aws import build as module
from local_aws import project
from local_aws.failures import CommandFailed
from local_aws.paths import State
from local_aws.processes import Interrupts
from local_aws.project import given
from repository.report import ROOT

DEPLOYED = {"CoreLayer": "s3://deployments/core"}


class Checkout:
    """A checkout of a few files, and a `sam build` that copies its template and counts how often it runs."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.state = State(folder=root / "state")
        self.builds: list[list[str]] = []
        self.fails = False
        monkeypatch.setattr(project, "_projects", [replace(PROJECT, root=root)])
        monkeypatch.setattr(module, "_sam_build", self._sam_build)
        layer = {"Properties": {"ContentUri": "layers/core"}}
        self.write("template.yaml", yaml.safe_dump({"Resources": {"CoreLayer": layer}}))
        for name in ("samconfig.toml", *PROJECT.pins, *SOURCES):
            self.write(name, "")

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def build(self, deployed: dict[str, str] | None = None) -> Path:
        return module.build(self.state, interrupts=Interrupts(), show=lambda _: None, deployed_layers=deployed)

    def _sam_build(
        self,
        _state: State,
        template: Path,
        folder: Path,
        excluded: Iterable[str],
        *,
        interrupts: object,
        show: Callable[[str], None],
    ) -> None:
        self.builds.append(list(excluded))
        (folder / "build").mkdir(parents=True, exist_ok=True)
        (folder / "build" / "template.yaml").write_text(template.read_text())
        if self.fails:
            raise CommandFailed("sam build", 1, folder / "log")


SOURCES = ("functions/read_image/app.py", "layers/core/darkroom/__init__.py", "layers/core/Makefile")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return Checkout(tmp_path, monkeypatch)


def uri(template: Path) -> str:
    content_uri: str = json.loads(template.read_text())["Resources"]["CoreLayer"]["Properties"]["ContentUri"]
    return content_uri


def test_what_was_built_from_the_same_files_is_used_again(checkout: Checkout) -> None:
    assert checkout.build() == checkout.build()
    checkout.write("functions/read_image/__pycache__/app.pyc", "")
    checkout.build()
    assert checkout.builds == [[]]


@pytest.mark.parametrize(
    "name", [*SOURCES, "functions/new/app.py", "template.yaml", "samconfig.toml", ".python-version"]
)
@pytest.mark.parametrize("deployed", [{}, DEPLOYED], ids=["whole", "partial"])
def test_an_edit_of_any_file_builds_again(checkout: Checkout, name: str, deployed: dict[str, str]) -> None:
    checkout.build(deployed)
    checkout.write(name, "# edited\n" + (checkout.root / "template.yaml").read_text())
    checkout.build(deployed)
    assert len(checkout.builds) == 2


@pytest.mark.guards("build-failed-leftovers-unused")
def test_a_build_that_failed_is_made_again(checkout: Checkout) -> None:
    checkout.build()
    checkout.write(SOURCES[0], "edited")
    checkout.fails = True
    with pytest.raises(CommandFailed):
        checkout.build()
    checkout.write(SOURCES[0], "")
    checkout.fails = False
    checkout.build()
    assert len(checkout.builds) == 3, "the folder has what the failed one left"


def test_a_whole_build_serves_with_layers_that_were_deployed_since(checkout: Checkout) -> None:
    checkout.build()
    assert uri(checkout.build(DEPLOYED)) == DEPLOYED["CoreLayer"]
    assert uri(checkout.build()) == "layers/core", "what the next emulator deploys"
    assert checkout.builds == [[]]


def test_a_partial_build_is_none_of_the_layer_that_it_left_out(checkout: Checkout) -> None:
    assert uri(checkout.build(DEPLOYED)) == DEPLOYED["CoreLayer"]
    assert uri(checkout.build(DEPLOYED | {"CoreLayer": "s3://deployments/again"})) == "s3://deployments/again"
    assert checkout.builds == [["CoreLayer"]]
    checkout.build()
    assert checkout.builds == [["CoreLayer"], []]


def test_a_build_that_was_removed_is_made_again(checkout: Checkout) -> None:
    checkout.build().with_name("template.yaml").unlink()
    checkout.build()
    assert len(checkout.builds) == 2


@pytest.fixture
def for_aws(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The runs of SAM CLI for AWS, each with its command, and whether it found downloads."""
    runs: list[dict[str, Any]] = []

    def run(_name: str, command: list[str], **options: Any) -> None:
        runs.append({"command": command, "found": (checkout.root / ".aws-sam" / "deps").exists(), **options})
        checkout.write(".aws-sam/deps/package", "")
        if checkout.fails:
            raise CommandFailed("sam build", 1, checkout.root / "log")

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "_check", lambda *_: None)
    overrides = '["Environment=prod", "Architecture=arm64"]'
    checkout.write("samconfig.toml", f"[local]\n[prod.global.parameters]\nparameter_overrides = {overrides}\n")
    return runs


def build_for_aws(checkout: Checkout, **parameters: str) -> None:
    module.build_for_aws(checkout.state, "prod", parameters=parameters, interrupts=Interrupts(), show=lambda _: None)


@pytest.mark.guards("build-half-download-dropped")
def test_a_build_for_aws_takes_no_half_download(checkout: Checkout, for_aws: list[dict[str, Any]]) -> None:
    checkout.fails = True
    with pytest.raises(CommandFailed):
        build_for_aws(checkout)
    checkout.fails = False
    build_for_aws(checkout)
    build_for_aws(checkout)
    assert [run["found"] for run in for_aws] == [False, False, True]


@pytest.mark.guards("build-failed-deploys-nothing")
def test_after_a_failed_build_for_aws_there_is_nothing_to_deploy(
    checkout: Checkout, for_aws: list[dict[str, Any]]
) -> None:
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text())
    deployed = {configured[name]["deploy"]["parameters"]["template_file"] for name in ("staging", "prod")}
    assert deployed == {".aws-sam/build/template.yaml"}, "SAM CLI would take the template that was not built"
    build_for_aws(checkout)
    checkout.write(".aws-sam/build/template.yaml", "an earlier build")
    checkout.fails = True
    with pytest.raises(CommandFailed):
        build_for_aws(checkout)
    assert not (checkout.root / ".aws-sam" / "build").exists()


@pytest.mark.guards("build-interpreter-with-pip")
def test_a_build_for_aws_has_a_python_with_pip_the_callers_credentials_and_no_variable_of_this_python(
    checkout: Checkout, for_aws: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "shop")
    monkeypatch.setenv("PYTHONPATH", "scripts")
    build_for_aws(checkout)
    environment = for_aws[0]["environment"]
    assert environment["PATH"].split(os.pathsep)[0] == str(given().sam.parent)
    assert environment["AWS_PROFILE"] == "shop" and "PYTHONPATH" not in environment
    assert for_aws[0]["folder"] == checkout.root, "there `sam deploy` looks for the result"


@pytest.mark.parametrize(
    ("parameters", "overrides"),
    [({}, []), ({"Architecture": "x86_64"}, ["--parameter-overrides", 'Environment="prod"', 'Architecture="x86_64"'])],
)
def test_a_build_for_aws_takes_its_parameters_from_the_configuration_but_those_that_are_chosen(
    checkout: Checkout, for_aws: list[dict[str, Any]], parameters: dict[str, str], overrides: list[str]
) -> None:
    build_for_aws(checkout, **parameters)
    options = ["--config-file", str(given().samconfig), "--config-env", "prod", *overrides]
    assert for_aws[0]["command"] == [*module.sam_command(), "build", *options]


def test_the_local_stack_is_not_built_for_aws(checkout: Checkout, for_aws: list[dict[str, Any]]) -> None:
    assert module.environments_of_aws() == ["prod"]


@pytest.mark.parametrize("name", ["template.yaml", "extensions/observability.yaml"])
def test_sam_writes_out_what_a_template_names_by_an_alias(name: str) -> None:
    # CloudFormation takes no aliases (docs/decisions/0030-the-template.md).
    written = subprocess.run(
        [
            *(PROJECT.sam.parent / "python", "-c"),
            "import sys, samcli.yamlhelper as it; print(it.yaml_dump(it.yaml_parse(sys.stdin.read())))",
        ],
        input=(ROOT / name).read_text(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Resources:" in written
    named = [event for event in yaml.parse(written, yaml.SafeLoader) if getattr(event, "anchor", None)]
    assert named == []
    assert "<<:" not in written
