"""Keeps the layers that were deployed, so that a deployment, also to the next emulator, builds and packs only what
changed.

Copying, packing and comparing 66 MB of third-party packages takes most of a deployment, and they rarely change.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3

from local_aws.build import build_instructions, fingerprint, sources_in
from local_aws.project import given

if TYPE_CHECKING:
    from local_aws.paths import State


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The inputs of the layers at one moment: the folder of each in `layers`, and the files that define its build."""

    instructions: str
    folders: dict[str, str]

    @classmethod
    def now(cls) -> Sources:
        """Fingerprints of the files as they are now."""
        folders = [folder for folder in (given().root / "layers").iterdir() if folder.is_dir()]
        return cls(
            instructions=fingerprint(build_instructions()),
            folders={folder.name: fingerprint(sources_in(folder)) for folder in folders},
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
        """The layers of the last deployment whose archives are there; none before the first."""
        try:
            document = json.loads(_record(state).read_bytes())
        except FileNotFoundError:
            return cls(instructions="", layers={})
        layers = {
            name: DeployedLayer(**layer) for name, layer in document["layers"].items() if _archive(state, name).exists()
        }
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
        """Add the layers that were built from `sources` and are now deployed, and keep their archives."""
        # Next to the build's folder SAM CLI records which layer it built from which folder.
        built = tomllib.loads((built_template.parent.parent / "build.toml").read_text())["layer_build_definitions"]
        resources = deployed_template(boto3.client("cloudformation"), given().stack_name)["Resources"]
        layers = {name: layer for name, layer in self.layers.items() if name in self.unchanged(sources)}
        s3 = boto3.client("s3")
        state.layers.mkdir(parents=True, exist_ok=True)
        for definition in built.values():
            name, folder = definition["layer_name"], Path(definition["codeuri"]).name
            if folder in sources.folders and name not in layers:
                uri = resources[name]["Properties"]["ContentUri"]
                layers[name] = DeployedLayer(folder=folder, fingerprint=sources.folders[folder], uri=uri)
                _replace(_archive(state, name), s3.get_object(**_place(uri))["Body"].read())
        now = DeployedLayers(instructions=sources.instructions, layers=layers)
        _replace(_record(state), json.dumps(asdict(now), indent=2).encode())


def restore(state: State) -> None:
    """Give a new emulator the bucket of deployments, with the archives that were kept."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=_bucket())
    for name, layer in DeployedLayers.read(state).layers.items():
        s3.put_object(**_place(layer.uri), Body=_archive(state, name).read_bytes())


def _bucket() -> str:
    name: str = tomllib.loads(given().samconfig.read_text())["local"]["deploy"]["parameters"]["s3_bucket"]
    return name


def _place(uri: str) -> Any:
    """The bucket and the key of an S3 URI, as the arguments of a call."""
    parts = urlsplit(uri)
    return {"Bucket": parts.netloc, "Key": parts.path.removeprefix("/")}


def _record(state: State) -> Path:
    return state.layers / "layers.json"


def _archive(state: State, name: str) -> Path:
    return state.layers / f"{name}.zip"


def _replace(file: Path, content: bytes) -> None:
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(file)


def deployed_template(cloudformation: Any, stack_name: str) -> dict[str, Any]:
    """The template as `sam deploy` sent it: its layers refer to their archives in S3."""
    document: dict[str, Any] = cloudformation.get_template(StackName=stack_name, TemplateStage="Original")[
        "TemplateBody"
    ]
    return document
