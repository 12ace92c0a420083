"""What template.yaml says about the functions and their stores, as far as a simulation needs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_aws import event_patterns
from repository.expand_template import raw_template, resources, with_parameters
from repository.report import ROOT

_TEMPLATE: dict[str, Any] = raw_template()
RESOURCES: dict[str, dict[str, Any]] = _TEMPLATE["Resources"]


@dataclass(frozen=True, kw_only=True)
class EventSource:
    """A queue whose messages invoke a function, at most `batch_size` at a time."""

    queue: str
    batch_size: int


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """A table's stream, whose writes invoke a function if a filter lets them through."""

    table: str
    function: str
    batch_size: int
    filters: tuple[Mapping[str, str], ...]

    def passes(self, record: Mapping[str, Any]) -> bool:
        """Whether that write invokes the function."""
        return event_patterns.passes(self.filters, record)


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function as it is deployed; `environment` still refers to resources by their logical names."""

    name: str
    timeout_seconds: int
    environment: Mapping[str, Any]
    event_sources: tuple[EventSource, ...]

    @property
    def path(self) -> Path:
        """Its one file."""
        return ROOT / "functions" / self.name / "app.py"


def of_type(resource_type: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of that type, by logical name."""
    return {
        name: resource.get("Properties", {})
        for name, resource in RESOURCES.items()
        if resource["Type"] == resource_type
    }


def functions() -> dict[str, Function]:
    """All functions, by the name of their folder."""
    shared = _TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
    functions_by_name = {}
    sources = resources("AWS::Lambda::EventSourceMapping").values()
    for logical_id, properties in of_type("AWS::Serverless::Function").items():
        name = Path(properties["CodeUri"]).name
        functions_by_name[name] = Function(
            name=name,
            timeout_seconds=properties["Timeout"],
            environment=shared | properties.get("Environment", {}).get("Variables", {}),
            event_sources=tuple(
                EventSource(queue=logical_name(source["EventSourceArn"]), batch_size=source["BatchSize"])
                for source in sources
                if logical_name(source["FunctionName"]) == logical_id and not _is_stream(source)
            ),
        )
    return functions_by_name


def stream_source() -> StreamSource:
    """The stream of the images' rows, as events are made of it."""
    source = resources("AWS::Lambda::EventSourceMapping")["PublishEventsFunctionImagesTable"]
    function = of_type("AWS::Serverless::Function")[logical_name(source["FunctionName"])]
    return StreamSource(
        table=logical_name(source["EventSourceArn"]),
        function=Path(function["CodeUri"]).name,
        batch_size=source["BatchSize"],
        filters=tuple(source["FilterCriteria"]["Filters"]),
    )


def _is_stream(source: Mapping[str, Any]) -> bool:
    return bool(source["EventSourceArn"]["Fn::GetAtt"][1] == "StreamArn")


def logical_name(reference: Mapping[str, Any]) -> str:
    """The resource that a `!Ref` or a `!GetAtt` names."""
    target = reference.get("Ref") or reference["Fn::GetAtt"]
    return str(target if isinstance(target, str) else target[0]).partition(".")[0]


def resolved(value: Any, references: Mapping[str, str]) -> str:
    """A variable's value as Lambda shows it: `references` are the values of resources' `!Ref`."""
    defaults = {name: parameter.get("Default", "") for name, parameter in _TEMPLATE["Parameters"].items()}
    known = {**defaults, **references}
    match with_parameters(value, Environment="prod"):
        case {"Ref": name} | {"Fn::GetAtt": [name, "Id"]}:
            return str(known[name])
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{([^}]+)\}", lambda match: str(known[match[1]]), text)
        case {"Fn::Select": [int(place), {"Fn::Split": [str(separator), text]}]}:
            return resolved(text, references).split(separator)[place]
        case str() | int() | float() as plain:
            return str(plain)
    raise ValueError(f"the simulation cannot resolve {value!r}: teach it in {Path(__file__).name}")
