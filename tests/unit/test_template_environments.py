"""What functions are told fits into Lambda's 4 KB, in every region and with one lane more, for the longest stack name
that the page of the deployment allows."""

from __future__ import annotations

import json
import re
from typing import Any

import botocore.session
import pytest

from repository.expand_template import expanded_template, raw_template, resources
from repository.report import ROOT

MAX_ENVIRONMENT_BYTES = 4096
"""Lambda measures the variables as JSON (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""

ONE_MORE_LANE = "Bulk"
"""The lane that docs/changing.md adds as its example."""

MAX_NAME = {
    "AWS::SQS::Queue": 80,
    "AWS::S3::Bucket": 63,
    "AWS::DynamoDB::Table": 255,
    "AWS::SNS::Topic": 256,
    "AWS::StepFunctions::StateMachine": 80,
    "AWS::SecretsManager::Secret": 512,
}
"""Names that CloudFormation makes are shortened to what the service takes."""

FREE_TEXT = 64
"""The length of a parameter's value that the template does not limit, such as the name of a claim."""

EDGE_ITEM = 140
"""The length of the longest of the edge's items: the ARN of a function, whose name has up to 64 characters."""

VARIABLES = {name: it["Environment"]["Variables"] for name, it in resources("AWS::Lambda::Function").items()}
PARAMETERS = raw_template()["Parameters"]
KINDS = {name: it["Type"] for name, it in expanded_template()["Resources"].items()} | {
    f"{ONE_MORE_LANE}{queue}": "AWS::SQS::Queue" for queue in ("Queue", "DeadLetters")
}


def longest_stack_name() -> str:
    """A name as long as the page of the deployment allows, of the 128 characters that CloudFormation takes."""
    (length,) = re.findall(r"stack's name has at most (\d+) characters", (ROOT / "docs" / "deploy.md").read_text())
    return "s" * int(length)


def places() -> list[tuple[str, str, str]]:
    """The partition, region and domain of each region that has Lambda."""
    session = botocore.session.get_session()
    partitions = session.get_component("data_loader").load_data("endpoints")["partitions"]
    return [
        (partition["partition"], region, partition["dnsSuffix"])
        for partition in partitions
        for region in partition["regions"]
    ]


class Deployed:
    """What references of the template resolve to in a region."""

    def __init__(self, stack: str, partition: str, region: str, domain: str) -> None:
        self._stack, self._partition, self._region, self._domain = stack, partition, region, domain
        self._pseudo = {
            "AWS::StackName": stack,
            "AWS::Partition": partition,
            "AWS::Region": region,
            "AWS::URLSuffix": domain,
            "AWS::AccountId": "1" * 12,
        }

    def text(self, value: Any) -> str | None:
        """The longest text that a value becomes; None for no value."""
        match value:
            case {"Ref": "AWS::NoValue"}:
                return None
            case {"Ref": str(name)}:
                return self._reference(name)
            case {"Fn::GetAtt": [str(name), "Arn" | "Id"]}:
                return self._arn(name)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([\w:]+)\}", lambda match: self._reference(match[1]), text)
            case {"Fn::Select": [int(), {"Fn::Split": [",", {"Fn::Sub": "${Edge},,,,,"}]}]}:
                return "x" * EDGE_ITEM
            case {"Fn::If": [_, then, otherwise]}:
                return max((self.text(then), self.text(otherwise)), key=lambda text: len(text or ""))
            case str():
                return value
            case _:
                raise ValueError(f"nobody knows how long {value} becomes")

    def _reference(self, name: str) -> str:
        if name in self._pseudo:
            return self._pseudo[name]
        if name.endswith("Concurrency"):
            return "1000"
        if (parameter := PARAMETERS.get(name)) is not None:
            return "x" * max(map(len, map(str, parameter.get("AllowedValues", ["x" * FREE_TEXT]))))
        match KINDS[name]:
            case "AWS::SQS::Queue":
                return f"https://sqs.{self._region}.{self._domain}/{'1' * 12}/{self._name(name)}"
            case "AWS::S3::Bucket" | "AWS::DynamoDB::Table":
                return self._name(name)
            case _:
                return self._arn(name)

    def _name(self, name: str) -> str:
        return f"{self._stack}-{name}-{'X' * 13}"[: MAX_NAME[KINDS[name]]]

    def _arn(self, name: str) -> str:
        return f"arn:{self._partition}:secretsmanager:{self._region}:{'1' * 12}:stateMachine:{self._name(name)}-123456"


def with_one_more_lane(variables: dict[str, Any]) -> dict[str, Any]:
    """The variables that a function has once the lane is there."""
    more = dict(variables)
    more[f"{ONE_MORE_LANE.upper()}_QUEUE_URL"] = {"Ref": f"{ONE_MORE_LANE}Queue"}
    more[f"{ONE_MORE_LANE.upper()}_CONCURRENCY"] = {"Ref": f"{ONE_MORE_LANE}Concurrency"}
    queues = more.get("DEAD_LETTER_QUEUES", {}).get("Fn::Sub", "")
    lane = f"{ONE_MORE_LANE.lower()}=${{{ONE_MORE_LANE}DeadLetters}}"
    if "SlowDeadLetters" in queues and lane not in queues:
        more["DEAD_LETTER_QUEUES"] = {"Fn::Sub": f"{queues},{lane}"}
    return more


@pytest.mark.parametrize("name", VARIABLES)
def test_what_a_function_is_told_fits_into_its_environment_whatever_the_stack_is_called(name: str) -> None:
    variables = with_one_more_lane(VARIABLES[name])
    stack = longest_stack_name()
    for place in places():
        deployed = Deployed(stack, *place)
        texts = {variable: text for variable, value in variables.items() if (text := deployed.text(value)) is not None}
        assert len(json.dumps(texts, separators=(",", ":"))) <= MAX_ENVIRONMENT_BYTES, place
