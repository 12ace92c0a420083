"""template.yaml as CloudFormation deploys it: loops written out by cfn-lint, then expanded by SAM's own translator.

All code that reads the template reads it through this module, so a resource in a loop looks like any other resource.

Usage: python -m repository.expand_template [TEMPLATE [SNAP_START]] > build/template.expanded.json
"""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repository.report import ROOT

TEMPLATE = ROOT / "template.yaml"
OBSERVABILITY = ROOT / "extensions" / "observability.yaml"
DELIVERY = ROOT / "extensions" / "delivery.yaml"

LANGUAGE_EXTENSIONS = "AWS::LanguageExtensions"
NESTED_STACK = "AWS::CloudFormation::Stack"

type Template = dict[str, Any]


class _NoManagedPolicies:
    """No managed policies: the template names none, so there is no need to ask an account for them."""

    def load(self) -> dict[str, str]:
        return {}


def raw_template(path: Path = TEMPLATE) -> Template:
    """The file itself, with its loops expanded and CloudFormation's tags in their long forms."""
    return without_loops(path)


@functools.cache
def _raw(path: Path) -> Template:
    return without_loops(path)


def without_loops(path: Path, *, snap_start: str = "None") -> Template:
    """A template after `AWS::LanguageExtensions`: each `Fn::ForEach` is expanded and each mapping lookup is replaced by
    its value. Raises ValueError if that is not possible."""
    text = path.read_text()
    template: Template = json.loads(_without_loops(path, text, snap_start))
    return template


@functools.cache
def _without_loops(path: Path, text: str, snap_start: str) -> str:
    # Importing cfn-lint takes three seconds, and parsing the file a third of one.
    return _kept(f"{snap_start}\0{text}", lambda: _written_out(path, _parsed(text), snap_start))


def _kept(source: str, make: Callable[[], Template]) -> str:
    """The JSON of what is made of a source, which stays under build/ until that or this module changes."""
    name = hashlib.sha256(f"{source}\0{Path(__file__).read_text()}".encode()).hexdigest()
    kept = ROOT / "build" / "templates" / f"{name}.json"
    if not kept.exists():
        made = json.dumps(make())
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(made)
        unfinished.replace(kept)
    return kept.read_text()


def _parsed(text: str) -> Template:
    from samtranslator.yaml_helper import yaml_parse  # noqa: PLC0415 - a third of a second, for what is mostly cached

    parsed: Template = yaml_parse(text)
    return parsed


def _written_out(path: Path, template: Template, snap_start: str) -> Template:
    transforms = template.get("Transform", [])
    if LANGUAGE_EXTENSIONS not in transforms:
        return template
    from cfnlint.template import Template as LintedTemplate  # noqa: PLC0415
    from cfnlint.template.transforms._language_extensions import language_extension  # noqa: PLC0415

    known = {"SnapStart": snap_start}
    decided = copy.deepcopy(template)
    decided["Resources"] = _looked_up(template["Resources"], template.get("Mappings", {}), known)
    problems, written_out = language_extension(LintedTemplate(str(path), decided, regions=["us-east-1"]))
    if problems:
        raise ValueError(f"{path}: {problems[0].message}")
    for section in ("Resources", "Outputs"):  # cfn-lint also reorders conditions
        template[section] = _filled_in(written_out.get(section, {}))
    template.pop("Mappings", None)
    template.pop("Metadata", None)
    template["Transform"] = [name for name in transforms if name != LANGUAGE_EXTENSIONS]
    return template


def _within(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with each of its members changed; itself if it has none."""
    match value:
        case dict():
            return {name: change(inner) for name, inner in value.items()}
        case list():
            return [change(inner) for inner in value]
        case _:
            return value


def _looked_up(value: Any, mappings: Template, parameters: Mapping[str, str]) -> Any:
    """The value of each of the parameters, and what is looked up by it, as CloudFormation does it: cfn-lint knows only
    defaults."""
    match value:
        case {"Fn::FindInMap": [str(mapping), str(key), {"Ref": str(name)}]} if name in parameters:
            return mappings[mapping][key][parameters[name]]
        case {"Ref": str(name)} if name in parameters:
            return parameters[name]
        case _:
            return _within(value, lambda inner: _looked_up(inner, mappings, parameters))


def _filled_in(value: Any) -> Any:
    """Each `Fn::Sub` variable that comes from a mapping or a loop, put into the text itself, as CloudFormation does."""
    match value:
        case {"Fn::Sub": [str(text), dict(variables)]} if None not in (known := [*map(_in_text, variables.values())]):
            for name, it in zip(variables, known, strict=True):
                text = text.replace(f"${{{name}}}", str(it))
            return {"Fn::Sub": text} if "${" in text else text
        case _:
            return _within(value, _filled_in)


def _in_text(value: Any) -> str | None:
    """A value of an `Fn::Sub` variable as it appears in the text."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Sub": str(text)}:
            return text
        case _:
            return None


@functools.cache
def _expanded(path: Path, snap_start: str) -> Template:
    expanded: Template = json.loads(_expanded_text(path, snap_start))
    return expanded


@functools.cache
def _expanded_text(path: Path, snap_start: str) -> str:
    template = without_loops(path, snap_start=snap_start)
    nested: dict[str, Path] = {}
    for logical_id, resource in template["Resources"].items():  # as `sam package` writes them
        if resource["Type"] == NESTED_STACK:
            nested[logical_id] = ROOT / resource["Properties"]["TemplateURL"]
            resource["Properties"]["TemplateURL"] = "https://s3.us-east-1.amazonaws.com/bucket/key"
        for name in ("CodeUri", "ContentUri"):
            if name in resource.get("Properties", {}):
                resource["Properties"][name] = "s3://bucket/key"
        if "DefinitionUri" in resource.get("Properties", {}):  # inline, so that linters see it
            definition = ROOT / resource["Properties"].pop("DefinitionUri")
            resource["Properties"]["Definition"] = _parsed(definition.read_text())
    source = json.dumps([template, importlib.metadata.version("aws-sam-translator")])
    expanded: Template = json.loads(_kept(source, lambda: _by_sam(template)))
    for stack, its_template in nested.items():
        expanded["Resources"] |= _resources_in(its_template, expanded["Resources"][stack], expanded)
    return json.dumps(expanded)


def _by_sam(template: Template) -> Template:
    from samtranslator.translator.transform import transform  # noqa: PLC0415 - a second, for what is mostly kept

    # It decides no condition, so what these parameters are makes no difference.
    parameters = {"Environment": "prod", "Access": "iam", "Architecture": "arm64", "AlarmEmail": ""}
    with _nobodys_aws():
        expanded: Template = transform(template, parameters, _NoManagedPolicies())
    return expanded


def _resources_in(path: Path, stack: Template, outer: Template) -> Template:
    """The resources of the template of a stack in the stack, as if they were the outer template's own: under the
    condition of the stack, besides their own, and with what it gives for each parameter. Raises ValueError if the two
    templates contradict each other."""
    given = stack["Properties"]["Parameters"]
    inner = without_loops(path)
    if given.keys() != inner["Parameters"].keys():
        raise ValueError(f"parameters given and declared differ: {given.keys() ^ inner['Parameters'].keys()}")
    if differing := {name for name, it in inner["Conditions"].items() if outer["Conditions"].get(name) != it}:
        raise ValueError(f"conditions mean something else in the template: {differing}")
    if shared := inner["Resources"].keys() & outer["Resources"].keys():
        raise ValueError(f"both templates have {shared}")
    resources = {name: _standing_for(resource, given) for name, resource in inner["Resources"].items()}
    for resource in resources.values():
        both = [each["Condition"] for each in (stack, resource) if "Condition" in each]
        resource["Properties"] = decided_once(resource["Properties"], frozenset(both))
        if both:
            resource["Condition"] = "And".join(both)
            outer["Conditions"].setdefault(resource["Condition"], {"Fn::And": [{"Condition": each} for each in both]})
    return resources


def _standing_for(value: Any, given: Mapping[str, Any]) -> Any:
    """A value of a template with what its parameters are given."""
    match value:
        case {"Ref": str(name)} if name in given:
            match given[name]:
                case {"Fn::Join": [",", list(members)]}:
                    return members
                case it:
                    return it
        case {"Fn::Sub": str(text)}:
            for name, it in given.items():
                text = text.replace(f"${{{name}}}", _in_text(it) or f"${{{name}}}")
            return {"Fn::Sub": text}
        case _:
            return _within(value, lambda inner: _standing_for(inner, given))


@contextmanager
def _nobodys_aws() -> Iterator[None]:
    """Give the translator, which asks botocore for a partition, a region and none of the developer's own settings."""
    ambient = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in ambient:
        del os.environ[name]
    os.environ.update(AWS_DEFAULT_REGION="us-east-1", AWS_CONFIG_FILE=os.devnull)
    try:
        yield
    finally:
        del os.environ["AWS_DEFAULT_REGION"], os.environ["AWS_CONFIG_FILE"]
        os.environ.update(ambient)


def _usual() -> Template:
    """The expanded template without snapshots: the kept one itself, which nobody may change."""
    return _expanded(TEMPLATE, "None")


def expanded_template(*, path: Path = TEMPLATE, snap_start: str = "None") -> Template:
    """The expanded template, with its conditions unresolved, and with the resources of stacks in the stack."""
    expanded: Template = json.loads(_expanded_text(path, snap_start))
    return expanded


def resources(kind: str, path: Path = TEMPLATE) -> dict[str, Template]:
    """The properties of all resources of one type, by logical id, in a stack that is observed and has all parts."""
    return {
        name: with_all_parts(resource.get("Properties", {}))
        for name, resource in _expanded(path, "None")["Resources"].items()
        if resource["Type"] == kind
    }


def with_all_parts(value: Any) -> Any:
    """A value as it is in a stack that is observed and has all optional parts, as it is by default."""
    match value:
        case {"Fn::If": [str(condition), then, _]} if _is_of_a_part(condition):
            return with_all_parts(then)
        case dict():
            chosen = {name: with_all_parts(inner) for name, inner in value.items()}
            absent = {name for name in chosen if chosen[name] == _NOTHING != value[name]}
            return {name: inner for name, inner in chosen.items() if name not in absent}
        case _:
            return _within(value, with_all_parts)


def _is_of_a_part(condition: str) -> bool:
    """Whether a condition is that of an optional part, which is there by default."""
    return condition.startswith("With") or condition == "HasObservability"


def http_api(access: str) -> Template:
    """The API's definition as it is deployed with this `Access`: its routes and their integrations."""
    body = _usual()["Resources"]["Api"]["Properties"]["Body"]
    definition: Template = _filled_in(with_parameters(body, Access=access))
    return definition


def access_log(access: str) -> str:
    """The format of the gateway's log with this `Access`, with what only a stack knows as variables of `Fn::Sub`."""
    (stage,) = resources("AWS::ApiGatewayV2::Stage").values()
    match _filled_in(with_parameters(stage["AccessLogSettings"]["Format"], Access=access)):
        case {"Fn::Sub": str(text)} | str(text):
            return text
        case unknown:
            raise ValueError(f"{unknown} is no text")


def with_parameters(value: Any, **parameters: str) -> Any:
    """A value with what its conditions choose in a stack that has these parameters, and defaults for the others."""
    match value:
        case {"Fn::If": [condition, then, otherwise]}:
            return with_parameters(then if _holds({"Condition": condition}, parameters) else otherwise, **parameters)
        case _:
            return _within(value, lambda inner: with_parameters(inner, **parameters))


def _conditions() -> Template:
    """All conditions, with those of what is in a stack in the stack under a condition of its own."""
    conditions: Template = _usual()["Conditions"]
    return conditions


def _holds(condition: Any, parameters: Mapping[str, str]) -> bool:
    match condition:
        case {"Condition": str(name)}:
            return _holds(_conditions()[name], parameters)
        case {"Fn::Equals": [{"Ref": str(name)} | {"Fn::Join": ["", {"Ref": str(name)}]}, value]}:  # or an empty list
            chosen = parameters[name] if name in parameters else _raw(TEMPLATE)["Parameters"][name]["Default"]
            return bool(chosen == value)
        case {"Fn::Not": [inner]}:
            return not _holds(inner, parameters)
        case {"Fn::Or": [*inner]}:
            return any(_holds(condition, parameters) for condition in inner)
        case {"Fn::And": [*inner]}:
            return all(_holds(condition, parameters) for condition in inner)
        case _:
            raise ValueError(f"it depends on what only a stack knows: {condition}")


def deployed(**parameters: str) -> dict[str, Template]:
    """The resources of a stack that has these parameters, by logical id, without what has no value there."""
    return {
        name: _without_nothing(with_parameters(resource, **parameters))
        for name, resource in _usual()["Resources"].items()
        if "Condition" not in resource or _holds({"Condition": resource["Condition"]}, parameters)
    }


_NOTHING = {"Ref": "AWS::NoValue"}


def _without_nothing(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_nothing(inner) for name, inner in value.items() if inner != _NOTHING}
        case list():
            return [_without_nothing(inner) for inner in value if inner != _NOTHING]
        case _:
            return value


def decided_once(value: Any, known: frozenset[str] = frozenset()) -> Any:
    """A template for linters: SAM asks within a condition for the same condition again."""
    match value:
        case {"Fn::If": [str(condition), then, _]} if condition in known:
            return decided_once(then, known)
        case {"Fn::If": [str(condition), then, otherwise]}:
            chosen = decided_once(then, known | {condition})
            return {"Fn::If": [condition, chosen, decided_once(otherwise, known)]}
        case _:
            return _within(value, lambda inner: decided_once(inner, known))


def is_optional(value: Any) -> bool:
    """Whether a stack has none of it unless a parameter asks for it."""
    match value:
        case {"Fn::If": [str(condition), _, {"Ref": "AWS::NoValue"}]}:
            return not _is_of_a_part(condition)
    return False


def referred(value: Any) -> str | None:
    """The logical id that a Ref or a GetAtt refers to."""
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
    arguments = dict(zip(("path", "snap_start"), sys.argv[1:], strict=False))
    path = Path(arguments.pop("path", TEMPLATE))
    json.dump(decided_once(expanded_template(path=path, **arguments)), sys.stdout, indent=2)
