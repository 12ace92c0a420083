"""Remembers which layers the emulator has, so that a redeployment builds and uploads only what changed.

Copying, packing and comparing 66 MB of third-party packages takes most of a deployment, and they rarely change.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import yaml

from embedded_aws import paths
from embedded_aws.build import fingerprint
from embedded_aws.stack import STACK_NAME

if TYPE_CHECKING:
    from embedded_aws.paths import State


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The inputs of the layers at one moment: the folder of each, and the files that define its build."""

    instructions: str
    folders: dict[str, str]

    @classmethod
    def now(cls) -> Sources:
        """Fingerprints of the files as they are now."""
        pins = [paths.ROOT / name for name in (".python-version", "requirements/sam.txt")]
        folders = [folder for folder in (paths.ROOT / "layers").iterdir() if folder.is_dir()]
        return cls(
            instructions=fingerprint([paths.TEMPLATE, paths.SAMCONFIG, *pins]),
            folders={str(folder): fingerprint(_files(folder)) for folder in folders},
        )


@dataclass(frozen=True, kw_only=True)
class DeployedLayer:
    """A layer, the fingerprint of the folder it was built from, and the URI of its archive in the emulator's S3."""

    folder: str
    fingerprint: str
    uri: str


@dataclass(frozen=True, kw_only=True)
class DeployedLayers:
    """The layers that the emulator has, by logical id."""

    instructions: str
    layers: dict[str, DeployedLayer]

    @classmethod
    def read(cls, state: State) -> DeployedLayers:
        """The layers of the last deployment; none before the first."""
        try:
            document = json.loads(state.deployed_layers.read_bytes())
        except FileNotFoundError:
            return cls(instructions="", layers={})
        layers = {name: DeployedLayer(**layer) for name, layer in document["layers"].items()}
        return cls(instructions=document["instructions"], layers=layers)

    def unchanged(self, sources: Sources) -> dict[str, str]:
        """The S3 URIs of the layers that a build would only make again."""
        if self.instructions != sources.instructions:
            return {}
        return {
            name: layer.uri
            for name, layer in self.layers.items()
            if sources.folders.get(layer.folder) == layer.fingerprint
        }

    def write_after(self, state: State, sources: Sources, built_template: Path) -> None:
        """Add the layers that were built from `sources` and are now deployed."""
        # Next to the build's folder SAM CLI records which layer it built from which folder.
        built = tomllib.loads((built_template.parent.parent / "build.toml").read_text())["layer_build_definitions"]
        resources = deployed_template(boto3.client("cloudformation"))["Resources"]
        layers = {name: layer for name, layer in self.layers.items() if name in self.unchanged(sources)}
        for definition in built.values():
            name, folder = definition["layer_name"], definition["codeuri"]
            if folder in sources.folders:
                uri = resources[name]["Properties"]["ContentUri"]
                layers[name] = DeployedLayer(folder=folder, fingerprint=sources.folders[folder], uri=uri)
        now = DeployedLayers(instructions=sources.instructions, layers=layers)
        state.deployed_layers.write_text(json.dumps(asdict(now), indent=2))


def deployed_template(cloudformation: Any) -> dict[str, Any]:
    """The template as `sam deploy` sent it: its layers refer to their archives in S3."""
    body = cloudformation.get_template(StackName=STACK_NAME, TemplateStage="Original")["TemplateBody"]
    document: dict[str, Any] = yaml.safe_load(body) if isinstance(body, str) else body
    return document


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
