"""An edit is live after the next deployment, whatever was cached; a failed one says why and the stack keeps serving.

With SnapStart the API runs published versions: each deployment leaves it on the newest code, layers and values. All
other functions run without.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.local.keyed import client
from tests.local.local_stack import PHOTO, LocalStack, copy_of_the_checkout, edit, wait_until
from tests.support.fakes.pictures import encoded, picture

FUNCTIONS = (
    "AuthorizeRequest",
    "SubmitImage",
    "BeginUpload",
    "ReadImage",
    "DeleteImage",
    "RescheduleImage",
    "ManageWebhooks",
)

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
    parameters = ("--set", "ExtraInputFormats=avif,heic", "--set", "MaxUploadBytes=5000000")
    with copied.serving("--snap-start", "--access", "keys", *parameters):
        yield copied


def versions(stack: LocalStack) -> dict[str, dict[str, Any]]:
    """The one version of each of the API's functions, to which its alias leads."""
    by_function = {}
    resources = stack.client("cloudformation").describe_stack_resources(StackName="darkroom-local")["StackResources"]
    names = {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}
    functions = stack.client("lambda")
    for function in FUNCTIONS:
        name = names[f"{function}Function"]
        (alias,) = functions.list_aliases(FunctionName=name)["Aliases"]
        listed = functions.list_versions_by_function(FunctionName=name)["Versions"]
        (version,) = [version for version in listed if version["Version"] != "$LATEST"]
        assert (alias["Name"], alias["FunctionVersion"]) == ("live", version["Version"])
        assert version["SnapStart"] == {"ApplyOn": "PublishedVersions", "OptimizationStatus": "On"}
        by_function[function] = version
    return by_function


def get(stack: LocalStack, path: str) -> httpx.Response:
    """The API's answer to the stack's own key, past any proxy of the machine."""
    with client(stack, stack.record.api_key) as api:
        return api.get(path)


def test_an_edited_handler_is_live_in_the_only_version(edited: LocalStack) -> None:
    before = versions(edited)
    edit(edited.checkout / "functions" / "read_image" / "app.py", "max-age=300", "max-age=301")
    edit(
        edited.checkout / "functions" / "count_usage" / "app.py", 'logger.info("counted"', 'logger.info("counted anew"'
    )
    deploy(edited)
    assert get(edited, "/openapi.json").headers["Cache-Control"] == "private, max-age=301"
    after = versions(edited)
    changed = {function for function in FUNCTIONS if after[function]["Version"] != before[function]["Version"]}
    assert changed == {"ReadImage"}


def test_an_edited_preset_is_live_in_every_function(edited: LocalStack) -> None:
    before = versions(edited)
    presets = edited.checkout / "layers" / "core" / "darkroom" / "domain" / "recipes" / "presets.py"
    edit(presets, '"name": "thumb", "width": 256', '"name": "thumb", "width": 250')
    deploy(edited)
    uploaded = edited.darkroom("upload", PHOTO, "--wait")
    assert uploaded.returncode == 0, uploaded.stdout
    (document,) = edited.client("dynamodb").scan(TableName=edited.outputs["ImagesTableName"])["Items"]
    assert "250" in str(document)
    wait_until(lambda: "counted anew" in edited.darkroom("logs", "count_usage").stdout, "one without a version is live")
    after = versions(edited)
    assert all(after[function]["Version"] != before[function]["Version"] for function in FUNCTIONS)


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


def test_the_changed_value_of_a_parameter_is_live(edited: LocalStack) -> None:
    cloudformation = edited.client("cloudformation")
    (stack,) = cloudformation.describe_stacks(StackName="darkroom-local")["Stacks"]
    body = cloudformation.get_template(StackName="darkroom-local", TemplateStage="Original")["TemplateBody"]
    template = {"Bucket": "darkroom-local-deployments", "Key": "the-same.template"}
    edited.client("s3").put_object(**template, Body=json.dumps(body))
    cloudformation.update_stack(
        StackName="darkroom-local",
        TemplateURL="https://s3.us-east-1.amazonaws.com/{Bucket}/{Key}".format(**template),
        Parameters=[
            {"ParameterKey": "FastConcurrency", "ParameterValue": "7"}
            if parameter["ParameterKey"] == "FastConcurrency"
            else {"ParameterKey": parameter["ParameterKey"], "UsePreviousValue": True}
            for parameter in stack["Parameters"]
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    cloudformation.get_waiter("stack_update_complete").wait(
        StackName="darkroom-local", WaiterConfig={"Delay": 1, "MaxAttempts": 120}
    )
    values = {version["Environment"]["Variables"]["FAST_CONCURRENCY"] for version in versions(edited).values()}
    assert values == {"7"}
    assert get(edited, "/images").status_code == 200


def test_a_faulty_preset_is_refused_before_anything_is_built(edited: LocalStack) -> None:
    presets = edited.checkout / "layers" / "core" / "darkroom" / "domain" / "recipes" / "presets.py"
    sound = presets.read_text()
    edit(presets, '"name": "medium", "width": 800', '"name": "medium", "width": 0')
    failed = edited.darkroom("local", "deploy")
    presets.write_text(sound)
    assert failed.returncode == 1
    assert "domain/recipes/presets.py: standard.variants.1.width" in failed.stdout
    assert "nothing was built" in failed.stdout
    assert get(edited, "/nowhere").status_code == 404


def test_a_failed_deployment_names_the_resource_and_the_stack_serves_on(edited: LocalStack) -> None:
    template = edited.checkout / "template.yaml"
    sound = template.read_text()
    edit(template, "\nOutputs:", _BROKEN_QUEUE)
    failed = edited.darkroom("local", "deploy")
    template.write_text(sound)
    assert failed.returncode == 1
    assert "BrokenQueue (AWS::SQS::Queue)" in failed.stdout
    assert get(edited, "/nowhere").status_code == 404


def test_of_a_function_that_cannot_start_its_own_exception_is_shown_until_it_is_mended(edited: LocalStack) -> None:
    handler = edited.checkout / "functions" / "read_image" / "app.py"
    sound = handler.read_text()
    handler.write_text(f"{sound}\nraise RuntimeError('no such setting')\n")
    failed = edited.darkroom("local", "deploy")
    assert failed.returncode == 1
    assert "ReadImageFunction: RuntimeError: no such setting" in failed.stdout
    assert "raise RuntimeError('no such setting')" in failed.stdout
    handler.write_text(sound)
    deploy(edited)


def deploy(stack: LocalStack, *options: str) -> None:
    """Deploy the edits."""
    deployed = stack.darkroom("local", "deploy", *options)
    assert deployed.returncode == 0, deployed.stdout
