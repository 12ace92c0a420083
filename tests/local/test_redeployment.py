"""An edit is live after the next deployment, whatever was cached; a failed one says why and the stack keeps serving."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.local.local_stack import PHOTO, LocalStack, copy_of_the_checkout, edit
from tests.support.fakes.pictures import encoded, picture

_BROKEN_QUEUE = """
  BrokenQueue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 99999999

Outputs:"""


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that runs from a copy of the checkout, which a test may edit."""
    folder = tmp_path_factory.mktemp("edited")
    copied = LocalStack(state=folder / "state", checkout=copy_of_the_checkout(folder / "checkout"))
    with copied.serving("--set", "ExtraInputFormats=avif,heic", "--set", "MaxUploadBytes=5000000"):
        yield copied


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    """A client that ignores any proxy of the machine."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def test_an_edited_handler_is_live(edited: LocalStack, http: httpx.Client) -> None:
    edit(edited.checkout / "functions" / "read_image" / "app.py", "max-age=300", "max-age=301")
    deploy(edited)
    assert http.get(f"{edited.api_url}/openapi.json").headers["Cache-Control"] == "private, max-age=301"


def test_an_edited_preset_is_live(edited: LocalStack, tmp_path: Path) -> None:
    presets = edited.checkout / "layers" / "core" / "darkroom" / "domain" / "recipes" / "presets.py"
    edit(presets, '"name": "thumb", "width": 256', '"name": "thumb", "width": 250')
    deploy(edited)
    uploaded = edited.darkroom("upload", PHOTO, "--wait")
    assert uploaded.returncode == 0, uploaded.stdout
    (document,) = edited.client("dynamodb").scan(TableName=edited.outputs["ImagesTableName"])["Items"]
    assert "250" in str(document)


def test_a_deployment_keeps_the_parameters_of_the_stack_but_those_that_it_sets(
    edited: LocalStack, tmp_path: Path
) -> None:
    """Those with which the stack was started."""
    photo = tmp_path / "photo.avif"
    photo.write_bytes(encoded(picture(), "AVIF"))
    accepted = edited.darkroom("upload", photo, "--wait")
    assert accepted.returncode == 0, accepted.stdout
    deploy(edited, "--set", "ExtraInputFormats=")
    refused = edited.darkroom("upload", photo)
    assert (refused.returncode, "not accepted" in refused.stdout) == (1, True), refused.stdout
    assert (edited.running.parameters["ExtraInputFormats"], edited.running.parameters["MaxUploadBytes"]) == (
        "",
        "5000000",
    )


def test_of_a_function_that_cannot_start_its_own_exception_is_shown(edited: LocalStack) -> None:
    handler = edited.checkout / "functions" / "read_image" / "app.py"
    sound = handler.read_text()
    handler.write_text(f"{sound}\nraise RuntimeError('no such setting')\n")
    failed = edited.darkroom("local", "deploy")
    handler.write_text(sound)
    deploy(edited)
    assert failed.returncode == 1
    assert "ReadImageFunction: RuntimeError: no such setting" in failed.stdout
    assert "raise RuntimeError('no such setting')" in failed.stdout


def test_a_faulty_preset_is_refused_before_anything_is_built(edited: LocalStack, http: httpx.Client) -> None:
    presets = edited.checkout / "layers" / "core" / "darkroom" / "domain" / "recipes" / "presets.py"
    sound = presets.read_text()
    edit(presets, '"name": "medium", "width": 800', '"name": "medium", "width": 0')
    failed = edited.darkroom("local", "deploy")
    presets.write_text(sound)
    assert failed.returncode == 1
    assert "domain/recipes/presets.py: standard.variants.1.width" in failed.stdout
    assert "nothing was built" in failed.stdout
    assert http.get(f"{edited.api_url}/nowhere").status_code == 404


def test_a_failed_deployment_names_the_resource_and_the_stack_serves_on(edited: LocalStack, http: httpx.Client) -> None:
    template = edited.checkout / "template.yaml"
    sound = template.read_text()
    edit(template, "\nOutputs:", _BROKEN_QUEUE)
    failed = edited.darkroom("local", "deploy")
    assert failed.returncode == 1
    assert "BrokenQueue (AWS::SQS::Queue)" in failed.stdout
    assert http.get(f"{edited.api_url}/nowhere").status_code == 404

    template.write_text(sound)
    deploy(edited)


def deploy(stack: LocalStack, *options: str) -> None:
    """Deploy the edits."""
    deployed = stack.darkroom("local", "deploy", *options)
    assert deployed.returncode == 0, deployed.stdout
