"""What the embedded AWS is given of Darkroom: its names, its files, the first key and how its API answers."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from darkroom_cli.delivery.parameters import parameters_of
from darkroom_cli.places import ROOT
from darkroom_cli.stack.local import HOME, STATE_VARIABLE
from local_aws.processes import Interrupts
from local_aws.project import Check, Extension, Probe, Project, give

KEYS = "keys"
"""The value of the template's `Access` that requires keys."""

OURS = ("anonymous", KEYS)
"""Those with which the stack has, or needs, a credential of its own; tokens and signatures are made elsewhere."""


def _credential(outputs: Mapping[str, str], interrupts: Interrupts) -> str | None:
    # Imported here because it imports boto3, which other commands should not wait for.
    from darkroom_cli.local.first_key import make_first_key  # noqa: PLC0415

    return make_first_key(outputs["TenantsTableName"], interrupts) if outputs["Access"] == KEYS else None


def _probe(outputs: Mapping[str, str], api_key: str | None) -> Probe:
    behind = ("AuthorizeRequestFunction", "ReadImageFunction")
    if outputs["Access"] not in OURS:  # what needs no credential
        return Probe(path="/openapi.json", status=HTTPStatus.OK, content_type="application/json", behind=behind)
    return Probe(
        # Any well-formed id of no image. Our function answers it with a problem document; API Gateway never does.
        path="/images/00000000000000000000000000/status",
        status=HTTPStatus.NOT_FOUND,
        content_type="application/problem+json",
        headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
        behind=behind,
    )


PROJECT = Project(
    name="darkroom",
    root=ROOT,
    home=HOME,
    setup=ROOT / "scripts" / "setup" / "environments.sh",
    state_variable=STATE_VARIABLE,
    command="./darkroom local",
    start="make run",
    probe=_probe,
    credential=_credential,
    pins=("extensions/observability.yaml", ".python-version", "requirements/sam.txt"),
    # The functions that the first photo would have to wait for.
    initialised_ahead=(
        *("ReadImageFunction", "SubmitImageFunction", "TranscodeImageFunction", "AuthorizeRequestFunction"),
    ),
    extensions=(
        Extension(
            name="delivery",
            template=ROOT / "extensions" / "delivery.yaml",
            parameters=lambda outputs: {
                **parameters_of("darkroom-local", outputs, {}),
                "OnRequestConcurrency": "2",
            },
            given_back=lambda outputs: {"Edge": outputs["Edge"]},
            environments=("node",),
        ),
    ),
    check=Check(
        name="reading the presets",
        module="darkroom_cli.local.preset_check",
        folders=(ROOT / "scripts", ROOT / "cli", ROOT / "layers" / "core", ROOT),
        log="presets",
    ),
)

give(PROJECT)
