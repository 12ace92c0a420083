"""What a template says about a deployed stack: its values with the stack's parameters and names filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from darkroom_cli.doctor.facts import CouldNotBeRead


class Unknown:
    """Stands for a value that only CloudFormation knows."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()
_NOTHING: Final = object()

# SAM and CloudFormation name a layer's version, a function's and an API's deployment after what is in them.
_NAMED_BY_CONTENT = ("AWS::Lambda::LayerVersion", "AWS::Lambda::Version")
_HASH = re.compile(r"[0-9a-f]{10}$")


def lasting_name(logical_id: str, kind: str) -> str:
    """A logical id without the hash that changes with each deployment of other content."""
    return _HASH.sub("", logical_id) if kind in _NAMED_BY_CONTENT else logical_id


NOT_SHOWN = "****"
"""What CloudFormation shows of a parameter with NoEcho
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html)."""


class NotShown(CouldNotBeRead):
    """A condition depends on a parameter whose value CloudFormation does not show."""


class Values:
    """Fills in a template's values. `names` are what Ref gives, of resources and pseudo parameters; `attributes` are
    what GetAtt gives, by the resource's logical id and the attribute."""

    def __init__(
        self,
        template: Mapping[str, Any],
        *,
        parameters: Mapping[str, str],
        names: Mapping[str, str],
        attributes: Mapping[tuple[str, str], str],
    ) -> None:
        self._conditions: Mapping[str, Any] = template.get("Conditions", {})
        defaults = {
            name: parameter["Default"]
            for name, parameter in template.get("Parameters", {}).items()
            if "Default" in parameter
        }
        lists = {
            name
            for name, parameter in template.get("Parameters", {}).items()
            if parameter["Type"] == "CommaDelimitedList"
        }
        known: dict[str, Any] = {**defaults, **parameters}
        self._hidden = {name for name, value in known.items() if value == NOT_SHOWN}  # guard: doctor-hidden-parameter
        self._names: dict[str, Any] = {
            **names,
            **{name: str(value).split(",") if name in lists else str(value) for name, value in known.items()},
            **dict.fromkeys(self._hidden, UNKNOWN),
        }
        self._attributes = attributes
        self._mappings: Mapping[str, Any] = template.get("Mappings", {})

    def holds(self, condition: str) -> bool:
        """Whether a condition of the template holds. Raises CouldNotBeRead if that depends on what is unknown."""
        return self._is_true(self._conditions[condition])

    def makes(self, logical_id: str, resource: Mapping[str, Any]) -> bool:
        """Whether the template makes a resource; one that depends on a parameter that is not shown, if the stack has
        it."""
        try:
            return "Condition" not in resource or self.holds(resource["Condition"])
        except NotShown:
            return logical_id in self._names

    def _is_true(self, condition: Any) -> bool:
        match condition:
            case {"Fn::Equals": [left, right]}:
                values = self.of(left), self.of(right)
                if any(isinstance(side, dict) and side.get("Ref") in self._hidden for side in (left, right)):
                    raise NotShown(f"the template's condition {condition} depends on a parameter that is not shown")
                if UNKNOWN in values:
                    raise CouldNotBeRead(f"the template's condition {condition} depends on something unknown")
                return _same(*values)
            case {"Fn::Not": [inner]}:
                return not self._is_true(inner)
            case {"Fn::And": list(inner)}:
                return all(map(self._is_true, inner))
            case {"Fn::Or": list(inner)}:
                return any(map(self._is_true, inner))
            case {"Condition": str(name)}:
                return self.holds(name)
            case _:
                raise CouldNotBeRead(f"the template's condition {condition} is of an unknown kind")

    def of(self, value: Any) -> Any:
        """A value as CloudFormation would deploy it; UNKNOWN, also within it, where only CloudFormation knows."""
        value_of_it = self._of(value)
        return None if value_of_it is _NOTHING else value_of_it

    def _of(self, value: Any) -> Any:  # noqa: PLR0912 - a row per function of CloudFormation
        match value:
            case {"Ref": "AWS::NoValue"}:
                return _NOTHING
            case {"Ref": str(name)}:
                return self._names.get(name, UNKNOWN)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attributes.get((name, attribute), UNKNOWN)
            case {"Fn::GetAtt": str(text)}:
                name, _, attribute = text.partition(".")
                return self._attributes.get((name, attribute), UNKNOWN)
            case {"Fn::If": [str(condition), then, otherwise]}:
                return self._of(then if self.holds(condition) else otherwise)
            case {"Fn::Sub": [str(text), dict(variables)]}:
                return self._filled_in(text, {name: self.of(inner) for name, inner in variables.items()})
            case {"Fn::Sub": str(text)}:
                return self._filled_in(text, {})
            case {"Fn::Join": [str(separator), inner]}:
                parts = self.of(inner)
                return UNKNOWN if parts is UNKNOWN or UNKNOWN in parts else separator.join(map(str, parts))
            case {"Fn::Split": [str(separator), inner]}:
                text = self.of(inner)
                return UNKNOWN if text is UNKNOWN else str(text).split(separator)
            case {"Fn::Select": [place, inner]}:
                several = self.of(inner)
                return UNKNOWN if several is UNKNOWN else several[int(place)]
            case {"Fn::FindInMap": [str(mapping), key, name]}:
                return self._mappings.get(mapping, {}).get(self.of(key), {}).get(self.of(name), UNKNOWN)
            case dict() if any(name.startswith("Fn::") for name in value):
                return UNKNOWN
            case dict():
                inner = {name: self._of(element) for name, element in value.items()}
                return {name: element for name, element in inner.items() if element is not _NOTHING}
            case list():
                return [element for element in map(self._of, value) if element is not _NOTHING]
            case _:
                return value

    def _filled_in(self, text: str, variables: Mapping[str, Any]) -> Any:
        parts: list[str] = []
        for literal, name in re.findall(r"((?:[^$]|\$(?!\{))*)(?:\$\{([^}]+)\}|$)", text):
            parts.append(literal)
            if name.startswith("!"):
                parts.append(f"${{{name[1:]}}}")
            elif name:
                value = variables.get(name, self._named(name))
                if not isinstance(value, str | int | float):
                    return UNKNOWN
                parts.append(str(value))
        return "".join(parts)

    def _named(self, name: str) -> Any:
        resource, _, attribute = name.partition(".")
        return self._attributes.get((resource, attribute), UNKNOWN) if attribute else self._names.get(name, UNKNOWN)


def filled_in(template: Mapping[str, Any], values: Values) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The types and the properties of the resources that a template makes with these values, by their logical ids
    without hashes."""
    types, resources = {}, {}
    for logical_id, resource in template["Resources"].items():
        if not values.makes(logical_id, resource):
            continue
        name = lasting_name(logical_id, resource["Type"])
        types[name] = resource["Type"]
        resources[name] = values.of(resource.get("Properties", {}))
    return types, resources


def at(properties: Mapping[str, Any], path: str) -> Any:
    """The value at a path like `ScalingConfig.MaximumConcurrency`; None where there is none."""
    value: Any = properties
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return value if value is UNKNOWN else None
        value = value.get(name)
    return value


def agree(expected: Any, actual: Any) -> bool:
    """Whether a deployed value is what the template says, as far as that is known and it says anything: numbers and
    their texts are equal, and so are lists in any order."""
    if expected is UNKNOWN:  # guard: doctor-unresolved-not-compared
        return True
    match expected, actual:
        case dict(), dict():
            return all(name in actual and agree(element, actual[name]) for name, element in expected.items())
        case list(), list() | tuple():
            return UNKNOWN in expected or _agree_in_any_order(expected, list(actual))
    return _same(expected, actual)


def _agree_in_any_order(expected: list[Any], left: list[Any]) -> bool:
    for element in expected:
        if (place := next((number for number, other in enumerate(left) if agree(element, other)), None)) is None:
            return False
        del left[place]  # guard: doctor-list-parts-matched-once
    return not left


def _same(left: Any, right: Any) -> bool:
    return bool(_text(left) == _text(right))


def _text(value: Any) -> Any:
    match value:
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            return value
