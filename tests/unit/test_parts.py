"""A stack without some of its optional parts: what it has not, what it keeps, and that nothing in it dangles."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

import pytest

from darkroom.parts import PARTS
from repository.expand_template import deployed, raw_template, with_all_parts

PARAMETERS = tuple(part.capitalize() for part in PARTS)
EVERYTHING: dict[str, str] = {}
CORE = dict.fromkeys(PARAMETERS, "false")
VARIANTS = {
    "everything": EVERYTHING,
    "without webhooks": {"Webhooks": "false", "Usage": "false"},  # which needs its events
    "without usage": {"Usage": "false"},
    "without imports": {"Imports": "false"},
    "without page": {"Page": "false"},
    "without bulk": {"Bulk": "false"},
    "core": CORE,
}
STATELESS = (
    *("AWS::Lambda::Function", "AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping"),
    *("AWS::Lambda::EventInvokeConfig", "AWS::Lambda::LayerVersion", "AWS::Events::Rule", "AWS::IAM::Role"),
    *("AWS::CloudWatch::Alarm", "AWS::SNS::Subscription"),
)
"""What may go with a part: it holds nothing, and is made again as it was."""

CHANGED_IN_PLACE = (
    *("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"),
    *("AWS::CloudWatch::CompositeAlarm", "AWS::CloudFormation::Stack"),
)


@functools.cache
def stack(variant: str) -> dict[str, Any]:
    return deployed(Environment="prod", Access="keys", **VARIANTS[variant])


def of(variant: str, kind: str) -> set[str]:
    return {name for name, resource in stack(variant).items() if resource["Type"] == kind}


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_dangles(variant: str) -> None:
    text = json.dumps(stack(variant))
    names = {
        *re.findall(r'"Ref": "(\w+)"', text),
        *re.findall(r'"Fn::GetAtt": \["(\w+)"', text),
        *re.findall(r"\$\{(\w+)[.}]", text),
    }
    absent = stack("everything").keys() - stack(variant).keys()
    assert names & absent == set()
    shown = {name: output for name, output in raw_template()["Outputs"].items() if output.get("Condition") is None}
    assert not [name for name in absent if f'"{name}"' in json.dumps(shown)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_holds_something_is_in_every_stack_and_is_the_same(variant: str) -> None:
    everything = stack("everything")
    gone = {name: everything[name]["Type"] for name in everything.keys() - stack(variant).keys()}
    assert set(gone.values()) <= set(STATELESS)
    for name, resource in stack(variant).items():
        if resource["Type"] not in (*STATELESS, *CHANGED_IN_PLACE):
            assert resource == everything[name], name


def test_the_core_alone_has_14_functions_and_routes_of_its_own() -> None:
    assert len(of("core", "AWS::Lambda::Function")) <= 14
    paths = stack("core")["Api"]["Properties"]["Body"]["paths"]
    assert not [path for path in paths if path.startswith(("/webhooks", "/app"))]
    settings = stack("core")["ApiApiGatewayDefaultStage"]["Properties"]["RouteSettings"]
    assert not [route for route in settings if "/app" in route], "the gateway refuses settings of no route"


@pytest.mark.parametrize(
    ("variable", "variant", "names"),
    [
        ("ENDPOINTS_TABLE", "without webhooks", {"SubmitImageFunction", "BeginUploadFunction"}),
        ("USAGE_TABLE", "without usage", {"SubmitImageFunction", "BeginUploadFunction", "ReadImageFunction"}),
        ("FETCH_QUEUE_URL", "without imports", {"SubmitImageFunction"}),
        ("PAUSES_TABLE", "without bulk", {"TranscodeImageFunction", "SweepDueImagesFunction", "ReadImageFunction"}),
    ],
)
def test_the_core_is_told_of_a_part_only_where_it_is(variable: str, variant: str, names: set[str]) -> None:
    for name in names:
        environments = [
            stack(parts)[name]["Properties"]["Environment"]["Variables"] for parts in ("everything", variant)
        ]
        assert [variable in variables for variables in environments] == [True, False], name


def test_usage_asks_for_the_events() -> None:
    rule = raw_template()["Rules"]["UsageNeedsEvents"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "Usage"}, "true"]}
    assert rule["Assertions"][0]["Assert"] == {"Fn::Equals": [{"Ref": "Webhooks"}, "true"]}


def test_each_part_is_deployed_unless_somebody_leaves_it_out() -> None:
    for name in PARAMETERS:
        parameter = raw_template()["Parameters"][name]
        assert (parameter["Default"], parameter["AllowedValues"]) == ("true", ["true", "false"])
    assert with_all_parts({"Fn::If": ["WithPage", 1, 2]}) == 1
