"""The template's own rules, evaluated as CloudFormation does: nobody deploys by mistake an API that is open to all, or
to nobody."""

import json
from uuid import uuid4

import botocore.exceptions
import pytest

from local_aws.tests.emulator_server import EmulatorServer
from repository.expand_template import raw_template

pytestmark = pytest.mark.promise("every-route")

pytest_plugins = ("local_aws.tests.emulator_fixtures",)


def deploy(emulator: EmulatorServer, environment: str, access: str, **further: str) -> None:
    """Create a stack with the template's parameters and rules, and a topic instead of its resources."""
    template = raw_template()
    body = {
        "Parameters": template["Parameters"],
        "Rules": template["Rules"],
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    }
    chosen = {"Environment": environment, "Access": access, **further}
    emulator.client("cloudformation").create_stack(
        StackName=f"rule-{uuid4().hex[:8]}",
        TemplateBody=json.dumps(body),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in chosen.items()],
    )


@pytest.mark.parametrize("environment", ["staging", "prod"])
def test_an_open_api_is_refused_outside_the_local_environment(emulator: EmulatorServer, environment: str) -> None:
    with pytest.raises(botocore.exceptions.ClientError, match="would let anybody upload"):
        deploy(emulator, environment, "anonymous")


@pytest.mark.parametrize("further", [{}, {"JwtIssuer": "https://issuer.example"}, {"JwtAudience": "darkroom"}])
def test_tokens_of_anybody_or_for_anybody_are_refused(emulator: EmulatorServer, further: dict[str, str]) -> None:
    with pytest.raises(botocore.exceptions.ClientError, match="needs JwtIssuer and JwtAudience"):
        deploy(emulator, "prod", "jwt", **further)


@pytest.mark.parametrize(
    ("further", "why"),
    [
        ({"ApiDomainName": "images.example.com"}, "needs ApiCertificate"),
        ({"ApiCertificate": "arn:aws:acm:eu-west-1:123456789012:certificate/1"}, "needs ApiCertificate"),
        ({"ExecuteApiEndpoint": "closed"}, "nobody could call the API"),
    ],
)
def test_an_api_that_nobody_could_call_is_refused(emulator: EmulatorServer, further: dict[str, str], why: str) -> None:
    with pytest.raises(botocore.exceptions.ClientError, match=why):
        deploy(emulator, "prod", "keys", **further)


@pytest.mark.parametrize(
    ("environment", "access"),
    [("local", "anonymous"), ("local", "keys"), ("staging", "keys"), ("prod", "keys"), ("prod", "iam")],
)
def test_all_else_is_deployed(emulator: EmulatorServer, environment: str, access: str) -> None:
    deploy(emulator, environment, access)


def test_tokens_of_a_named_issuer_are_deployed(emulator: EmulatorServer) -> None:
    deploy(emulator, "prod", "jwt", JwtIssuer="https://issuer.example", JwtAudience="one,two")
