"""With SnapStart the API runs published versions; each deployment leaves it on the newest code, layers and values."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.local.keyed import client
from tests.local.local_stack import LocalStack, copy_of_the_checkout, edit

FUNCTIONS = (
    "AuthorizeRequest",
    "SubmitImage",
    "BeginUpload",
    "ReadImage",
    "DeleteImage",
    "RescheduleImage",
    "ManageWebhooks",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with SnapStart and keys that runs from a copy of the checkout, which a test may edit."""
    folder = tmp_path_factory.mktemp("published")
    copied = LocalStack(state=folder / "state", checkout=copy_of_the_checkout(folder / "checkout"))
    with copied.serving("--snap-start", "--access", "keys"):
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


def deploy(stack: LocalStack, file: str, before: str, after: str) -> None:
    """Replace a passage, and deploy."""
    edit(stack.checkout / file, before, after)
    deployed = stack.darkroom("local", "deploy")
    assert deployed.returncode == 0, deployed.stdout


def test_changed_code_is_live_in_the_only_version(published: LocalStack) -> None:
    before = versions(published)
    deploy(published, "functions/read_image/app.py", "max-age=300", "max-age=301")
    assert get(published, "/openapi.json").headers["Cache-Control"] == "private, max-age=301"
    after = versions(published)
    changed = {function for function in FUNCTIONS if after[function]["Version"] != before[function]["Version"]}
    assert changed == {"ReadImage"}


def test_a_changed_layer_is_live_in_every_function(published: LocalStack) -> None:
    before = versions(published)
    deploy(published, "layers/core/darkroom/http/api.py", "There is nothing at this path.", "Nothing is here.")
    assert get(published, "/nowhere").json()["detail"].startswith("Nothing is here.")
    after = versions(published)
    assert all(after[function]["Version"] != before[function]["Version"] for function in FUNCTIONS)


def test_the_changed_value_of_a_parameter_is_live(published: LocalStack) -> None:
    cloudformation = published.client("cloudformation")
    (stack,) = cloudformation.describe_stacks(StackName="darkroom-local")["Stacks"]
    body = cloudformation.get_template(StackName="darkroom-local", TemplateStage="Original")["TemplateBody"]
    template = {"Bucket": "darkroom-local-deployments", "Key": "the-same.template"}
    published.client("s3").put_object(**template, Body=body if isinstance(body, str) else json.dumps(body))
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
    values = {version["Environment"]["Variables"]["FAST_CONCURRENCY"] for version in versions(published).values()}
    assert values == {"7"}
    assert get(published, "/images").status_code == 200
