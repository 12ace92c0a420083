"""template.yaml as CloudFormation gets it: expanded by the SAM translator that AWS runs.

Usage: python -m checks.expand_template > build/template.expanded.json
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]

type Template = dict[str, Any]


class _NoManagedPolicies:
    """The template names no managed policy, so no account is asked for them."""

    def load(self) -> dict[str, str]:
        return {}


def raw_template() -> Template:
    """The file itself, with CloudFormation's tags as their long forms."""
    return copy.deepcopy(_raw())


@functools.cache
def _raw() -> Template:
    template: Template = yaml_parse((ROOT / "template.yaml").read_text())
    return template


@functools.cache
def _expanded(environment: str, access: str) -> Template:
    parameters = {"Environment": environment, "Access": access, "Architecture": "arm64", "AlarmEmail": ""}
    template = raw_template()
    for resource in template["Resources"].values():  # as `sam package` leaves them
        for name in ("CodeUri", "ContentUri"):
            if name in resource.get("Properties", {}):
                resource["Properties"][name] = "s3://bucket/key"
        if "DefinitionUri" in resource.get("Properties", {}):  # in it, so that its checkers see it
            path = ROOT / resource["Properties"].pop("DefinitionUri")
            resource["Properties"]["Definition"] = yaml_parse(path.read_text())
    with _nobodys_aws():
        expanded: Template = transform(template, parameters, _NoManagedPolicies())
    return expanded


@contextmanager
def _nobodys_aws() -> Iterator[None]:
    """The translator asks botocore for a partition: it gets a region's, and none of the developer's own settings."""
    ambient = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in ambient:
        del os.environ[name]
    os.environ.update(AWS_DEFAULT_REGION="us-east-1", AWS_CONFIG_FILE=os.devnull)
    try:
        yield
    finally:
        del os.environ["AWS_DEFAULT_REGION"], os.environ["AWS_CONFIG_FILE"]
        os.environ.update(ambient)


def expanded_template(environment: str = "prod", access: str = "iam") -> Template:
    """The expanded template, with its conditions still in it."""
    return copy.deepcopy(_expanded(environment, access))


def resources(kind: str) -> dict[str, Template]:
    """The properties of all resources of one type, by logical id."""
    return {
        name: resource.get("Properties", {})
        for name, resource in expanded_template()["Resources"].items()
        if resource["Type"] == kind
    }


def http_api(access: str) -> Template:
    """The API's definition, its routes with their integrations, as it is deployed with this `Access`."""
    definition: Template = _decided(expanded_template(access=access)["Resources"]["Api"]["Properties"]["Body"], access)
    return definition


def _decided(value: Any, access: str) -> Any:
    match value:
        case {"Fn::If": [condition, then, otherwise]}:
            return _decided(then if _holds(raw_template()["Conditions"][condition], access) else otherwise, access)
        case dict():
            return {name: _decided(inner, access) for name, inner in value.items()}
        case list():
            return [_decided(inner, access) for inner in value]
        case _:
            return value


def _holds(condition: Any, access: str) -> bool:
    match condition:
        case {"Fn::Equals": [{"Ref": "Access"}, value]}:
            return bool(value == access)
        case {"Fn::Equals": [{"Fn::Join": ["", {"Ref": name}]}, value]}:  # a list that nobody has filled
            return bool(raw_template()["Parameters"][name]["Default"] == value)
        case {"Fn::Not": [inner]}:
            return not _holds(inner, access)
        case _:
            raise ValueError(f"the API depends on something other than Access: {condition}")


def referred(value: Any) -> str | None:
    """The logical id that a Ref or a GetAtt leads to."""
    match value:
        case {"Ref": str(name)}:
            return name
        case {"Fn::GetAtt": [str(name), *_]}:
            return name
        case {"Fn::GetAtt": str(name)}:
            return name.split(".")[0]
        case _:
            return None


if __name__ == "__main__":
    json.dump(expanded_template(), sys.stdout, indent=2)
