"""A template's values as CloudFormation would deploy them: conditions decided, names filled in, the rest unknown."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom_cli.doctor.facts import CouldNotBeRead
from darkroom_cli.doctor.template import UNKNOWN, Values, agree, at, filled_in, lasting_name

TEMPLATE = {
    "Parameters": {
        "Encryption": {"Type": "String", "Default": "aws"},
        "Fast": {"Type": "Number", "Default": 20},
        "Origins": {"Type": "CommaDelimitedList", "Default": ""},
    },
    "Conditions": {
        "Ours": {"Fn::Equals": [{"Ref": "Encryption"}, "customer"]},
        "NotOurs": {"Fn::Not": [{"Condition": "Ours"}]},
        "Both": {"Fn::And": [{"Condition": "Ours"}, {"Condition": "NotOurs"}]},
        "Either": {"Fn::Or": [{"Condition": "Ours"}, {"Condition": "NotOurs"}]},
        "HasOrigins": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Origins"}]}, ""]}]},
        "Hidden": {"Fn::Equals": [{"Fn::ImportValue": "x"}, "y"]},
        "Odd": {"Fn::Contains": []},
    },
    "Resources": {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 60, "Key": {"Ref": "AWS::NoValue"}}},
        "Key": {"Type": "AWS::KMS::Key", "Condition": "Ours"},
        "CoreLayer0123456789": {"Type": "AWS::Lambda::LayerVersion"},
    },
}


def values(**parameters: str) -> Values:
    return Values(
        TEMPLATE,
        parameters=parameters,
        names={"Queue": "https://queue", "AWS::Region": "eu-west-1"},
        attributes={("Queue", "Arn"): "arn:queue", ("Queue", "QueueName"): "queue"},
    )


@pytest.mark.parametrize(
    ("written", "deployed"),
    [
        ("text", "text"),
        ({"Ref": "Fast"}, "20"),
        ({"Ref": "Queue"}, "https://queue"),
        ({"Ref": "Gone"}, UNKNOWN),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:queue"),
        ({"Fn::GetAtt": "Queue.QueueName"}, "queue"),
        ({"Fn::GetAtt": ["Queue", "Other"]}, UNKNOWN),
        ({"Fn::If": ["Ours", "yes", "no"]}, "no"),
        ({"Fn::Sub": "${Queue.Arn}/${AWS::Region}/x"}, "arn:queue/eu-west-1/x"),
        ({"Fn::Sub": "$.a and ${!Literal}"}, "$.a and ${Literal}"),
        ({"Fn::Sub": ["${A}-${Queue}", {"A": {"Ref": "Fast"}}]}, "20-https://queue"),
        ({"Fn::Sub": "${Gone}/x"}, UNKNOWN),
        ({"Fn::Join": ["-", ["a", {"Ref": "Fast"}]]}, "a-20"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Gone"}]]}, UNKNOWN),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Select": [1, {"Fn::Split": ["/", "a/b"]}]}, "b"),
        ({"Fn::ImportValue": "x"}, UNKNOWN),
        ([{"Ref": "AWS::NoValue"}, "a"], ["a"]),
        ({"a": {"Fn::If": ["Ours", "x", {"Ref": "AWS::NoValue"}]}, "b": 1}, {"b": 1}),
    ],
)
def test_each_function_of_cloudformation(written: Any, deployed: Any) -> None:
    assert values().of(written) == deployed


@pytest.mark.parametrize(
    ("condition", "parameters", "holds"),
    [
        ("Ours", {}, False),
        ("Ours", {"Encryption": "customer"}, True),
        ("NotOurs", {}, True),
        ("Both", {}, False),
        ("Either", {}, True),
        ("HasOrigins", {}, False),
        ("HasOrigins", {"Origins": "https://a,https://b"}, True),
    ],
)
def test_conditions_are_decided_by_parameters(condition: str, parameters: dict[str, str], holds: bool) -> None:
    assert values(**parameters).holds(condition) is holds


@pytest.mark.parametrize("condition", ["Hidden", "Odd"])
def test_a_condition_that_cannot_be_decided_says_so(condition: str) -> None:
    with pytest.raises(CouldNotBeRead):
        values().holds(condition)


def test_only_resources_whose_condition_holds_are_there_and_hashes_are_not_names() -> None:
    types, resources = filled_in(TEMPLATE, values())
    assert types == {"Queue": "AWS::SQS::Queue", "CoreLayer": "AWS::Lambda::LayerVersion"}
    assert resources["Queue"] == {"VisibilityTimeout": 60}
    assert "Key" in filled_in(TEMPLATE, values(Encryption="customer"))[0]
    assert lasting_name("Queue0123456789", "AWS::SQS::Queue") == "Queue0123456789"


@pytest.mark.guards("doctor-hidden-parameter", case="True")
@pytest.mark.parametrize("is_there", [True, False])
def test_what_depends_on_a_parameter_that_is_not_shown_is_as_in_the_stack(is_there: bool) -> None:
    hidden = Values(
        TEMPLATE, parameters={"Encryption": "****"}, names={"Key": "key"} if is_there else {}, attributes={}
    )
    assert ("Key" in filled_in(TEMPLATE, hidden)[0]) is is_there


def test_a_path_leads_into_a_value() -> None:
    assert at({"a": {"b": 1}}, "a.b") == 1
    assert at({"a": {"b": 1}}, "a.c") is None
    assert at({"a": 1}, "a.b") is None
    assert at({"a": UNKNOWN}, "a.b") is UNKNOWN


@pytest.mark.guards("doctor-list-parts-matched-once", case="expected6-actual6-False")
@pytest.mark.parametrize(
    ("expected", "actual", "agreed"),
    [
        (UNKNOWN, 1, True),
        ("20", 20, True),
        (20.0, 20, True),
        (True, "true", True),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["a"], False),
        (["a"], ["a", "b"], False),
        (["a", "a"], ["a", "b"], False),
        ([{"Id": "a", "Of": {"Period": "60"}}], [{"Id": "a", "Of": {"Period": 60, "Unit": "Count"}}], True),
        ([{"Id": "a"}, {"Id": "b"}], [{"Id": "b"}, {"Id": "a"}], True),
        ([{"Id": "a", "Of": {"Period": 60}}], [{"Id": "a", "Of": {"Period": 300}}], False),
        ([{"Id": "a", "Of": UNKNOWN}], [{"Id": "a", "Of": {"Period": 300}}], True),
        ([{"Id": "a", "Of": 1}], [{"Id": "a"}], False),
        (None, None, True),
        (None, 5, False),
        (5, None, False),
        (1, True, False),
    ],
)
def test_values_agree_that_mean_the_same(expected: Any, actual: Any, agreed: bool) -> None:
    assert agree(expected, actual) is agreed
