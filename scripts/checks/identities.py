"""What must stay as it is for a resource to be the same one after a deployment: its stack, its logical id, its type,
and the properties that CloudFormation can only set when it creates it (cfn-lint has AWS's own schemas).

Usage: python -m checks.identities [TEMPLATE] > tests/unit/former_resources.txt    (of the release before)
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repository.expand_template import NESTED_STACK, TEMPLATE, expanded_template, without_loops
from repository.report import ROOT

OUTER = "outer"
MADE_ANEW = ("AWS::Lambda::LayerVersion", "AWS::Lambda::Version", "AWS::ApiGatewayV2::Deployment")
"""What each deployment that changes it makes anew, by design."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of one resource; `fixed` is the JSON of its create-only properties, by their paths."""

    stack: str
    name: str
    kind: str
    fixed: str

    def __str__(self) -> str:
        return f"{self.stack} {self.name} {self.kind} {self.fixed}"


def read_changes(text: str) -> frozenset[str]:
    """The resources that are deleted or replaced on purpose: those in lines that begin with @."""
    return frozenset(name for line in text.splitlines() if line.startswith("@") for name in line[1:].split())


def changed(before: Mapping[str, Identity], after: Mapping[str, Identity]) -> frozenset[str]:
    """The resources that a deployment of `after` to a stack of `before` deletes or replaces."""
    return frozenset(name for name, identity in before.items() if after.get(name) != identity)


def read_identities(text: str) -> Mapping[str, Identity]:
    """The identities in lines as `str` makes them, by logical id."""
    fields = (line.split(" ", 3) for line in text.splitlines() if not line.startswith(("#", "@")))
    return {name: Identity(stack=stack, name=name, kind=kind, fixed=fixed) for stack, name, kind, fixed in fields}


def identities(path: Path = TEMPLATE) -> Mapping[str, Identity]:
    """Those of a template and of the stacks in it, with all that a parameter can ask for, by logical id."""
    stacks = {
        inner: name
        for name, resource in without_loops(path)["Resources"].items()
        if resource["Type"] == NESTED_STACK
        for inner in without_loops(ROOT / resource["Properties"]["TemplateURL"])["Resources"]
    }
    return {
        name: Identity(
            stack=stacks.get(name, OUTER),
            name=name,
            kind=resource["Type"],
            fixed=json.dumps(_fixed(resource), sort_keys=True, separators=(",", ":")),
        )
        for name, resource in sorted(expanded_template(path=path)["Resources"].items())
        if resource["Type"] not in MADE_ANEW
    }


def _fixed(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {
        path: value
        for path in create_only(resource["Type"])
        if (value := _at(resource.get("Properties", {}), path.split("/"))) is not None
    }


@functools.cache
def create_only(kind: str) -> Sequence[str]:
    """The properties of a type of resource whose change replaces it, as paths."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # noqa: PLC0415 -- it takes three seconds

    schema: Any = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    paths = [*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ())]
    return sorted({path.removeprefix("/properties/") for path in paths})


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


if __name__ == "__main__":
    for identity in identities(*map(Path, sys.argv[1:2])).values():
        sys.stdout.write(f"{identity}\n")
