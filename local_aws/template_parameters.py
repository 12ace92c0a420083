"""The parameters of the template, with the values that CloudFormation takes for each of them, and its rules.

They are checked before anything is built; CloudFormation says the same after the build.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from local_aws.project import given

NOT_SHOWN = "****"
"""What CloudFormation shows of a parameter with NoEcho."""

FIXED = {"Environment": "it is always `local` here", "Architecture": "it is this machine's here"}
"""The parameters that nobody chooses for a local stack, and why."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\"\\]")  # SAM CLI's option cannot express them


class InvalidParameter(ValueError):
    """A parameter or its value is not one of the template's; the message says what there is."""


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's tags as the functions that they are short for."""


def _function(loader: _Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    name = "Ref" if tag == "Ref" else f"Fn::{tag}"
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_scalar(node)} if isinstance(node, yaml.ScalarNode) else {}


_Loader.add_multi_constructor("!", _function)


def read(values: Iterable[str]) -> dict[str, str]:
    """The parameters of texts like `ExtraInputFormats=avif,heic`. Raises InvalidParameter."""
    known, chosen = _section("Parameters"), dict[str, str]()
    for text in values:
        name, equals, value = text.partition("=")
        if not known:
            raise InvalidParameter("The parameters in template.yaml cannot be read: without --set, the build says why.")
        if name not in known:
            raise InvalidParameter(f"The template has no parameter {name!r}. It has {', '.join(_choosable(known))}.")
        if not equals:
            raise InvalidParameter(f"{name} has no value. Write {name}=VALUE; {_allowed(known[name])}.")
        if name in FIXED:
            raise InvalidParameter(f"{name} cannot be chosen: {FIXED[name]}.")
        if chosen.setdefault(name, value) != value:
            raise InvalidParameter(f"{name} has two values. Name it once.")
        if not _is_allowed(value, known[name]):
            raise InvalidParameter(f"{name} cannot be {value!r}: {_allowed(known[name])}.")
    return chosen


def check_rules(values: Mapping[str, str]) -> None:
    """Raises InvalidParameter if the values contradict each other; a parameter without one has its default."""
    defaults = {name: str(parameter.get("Default", "")) for name, parameter in _section("Parameters").items()}
    all_values = {**defaults, **values, "Environment": "local"}
    for rule in _section("Rules").values():
        if _value(rule.get("RuleCondition", True), all_values):
            for assertion in rule["Assertions"]:
                if not _value(assertion["Assert"], all_values):
                    raise InvalidParameter(assertion["AssertDescription"])


def still_known(values: Mapping[str, str]) -> dict[str, str]:
    """Those of a stack's parameters that the template has and that may be chosen: what a deployment keeps."""
    shown = {
        name: value for name, value in values.items() if value != NOT_SHOWN
    }  # others keep the value that they have
    return {name: shown[name] for name in _choosable(_section("Parameters")) if name in shown}


def _choosable(known: Mapping[str, Any]) -> list[str]:
    return [name for name in known if name not in FIXED]


def _section(name: str) -> dict[str, Any]:
    """One section of the template: to read all of it takes a second. Empty if it cannot be read: the build says why."""
    lines = given().template.read_text().splitlines()
    if f"{name}:" not in lines:
        return {}
    begin = lines.index(f"{name}:") + 1
    end = next((number for number in range(begin, len(lines)) if re.match(r"[A-Za-z]", lines[number])), len(lines))
    try:
        section: dict[str, Any] = yaml.load("\n".join(lines[begin:end]), _Loader)  # noqa: S506 - it is a SafeLoader
    except yaml.YAMLError:
        return {}
    return section


def _is_allowed(value: str, parameter: Mapping[str, Any]) -> bool:
    if _UNWRITABLE.search(value):
        return False
    if "AllowedValues" in parameter and value not in map(str, parameter["AllowedValues"]):
        return False
    if parameter["Type"] == "Number":
        return _NUMBER.fullmatch(value) is not None and (
            parameter.get("MinValue", float(value)) <= float(value) <= parameter.get("MaxValue", float(value))
        )
    members = [each.strip() for each in value.split(",")] if parameter["Type"] == "CommaDelimitedList" else [value]
    pattern = re.compile(parameter.get("AllowedPattern", ".*"), re.ASCII)
    longest = parameter.get("MaxLength", len(value))
    return len(value) <= longest and all(pattern.fullmatch(member) for member in members)


def _allowed(parameter: Mapping[str, Any]) -> str:
    """What its values are, as the rest of a sentence."""
    if "AllowedValues" in parameter:
        return "it is one of " + ", ".join(repr(str(value)) for value in parameter["AllowedValues"])
    if parameter["Type"] == "Number":
        bounds = [
            f"{word} {parameter[bound]}"
            for word, bound in (("at least", "MinValue"), ("at most", "MaxValue"))
            if bound in parameter
        ]
        return " ".join(["it is a number,", " and ".join(bounds)]) if bounds else "it is a number"
    constraint = str(parameter.get("ConstraintDescription", "it is a text without quotes, backslashes and line breaks"))
    longest = f", at most {parameter['MaxLength']} characters" if "MaxLength" in parameter else ""
    return constraint.rstrip(".") + longest


def _value(expression: object, values: Mapping[str, str]) -> object:
    """The value of what rules are made of."""
    match expression:
        case {"Ref": str(name)}:
            return values[name]
        case {"Fn::Equals": [left, right]}:
            return _value(left, values) == _value(right, values)
        case {"Fn::Not": [negated]}:
            return not _value(negated, values)
        case {"Fn::And": list(all_of)}:
            return all(_value(operand, values) for operand in all_of)
        case {"Fn::Or": list(any_of)}:
            return any(_value(operand, values) for operand in any_of)
        case str() | bool():
            return expression
        case _:
            raise NotImplementedError(f"a rule of the template uses {expression}")
