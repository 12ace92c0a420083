"""DynamoDB's attribute values, of the types that our rows have: texts, whole numbers, truth values, lists, and maps,
which are dictionaries or dataclasses there.

boto3's own module for all types imports the whole of boto3, which takes 20 to 30 ms of every cold start.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any


def to_attributes(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes for plain values by their names, without those that are None. Raises TypeError for a type that no
    row has."""
    return {name: _to_attribute(value) for name, value in plain.items() if value is not None}


def _to_attribute(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": str(value)}  # a StrEnum is a text too
        case tuple() | list():
            return {"L": [_to_attribute(part) for part in value]}
        case dict():
            return {"M": to_attributes(value)}
        case _ if is_dataclass(value):
            return {"M": to_attributes(vars(value))}
        case _ if hasattr(value, "model_dump_json"):
            return {"S": value.model_dump_json(exclude_defaults=True)}  # guard: rows-recipe-without-defaults
        case _:
            raise TypeError(f"no attribute has the type {type(value).__name__}")


def from_attributes(item: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values of attributes by their names. Raises ValueError, with the name, for a number that is not whole
    and for a type that no row has."""
    plain = {}
    for name, attribute in item.items():
        try:
            plain[name] = _from_attribute(attribute)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return plain


def _from_attribute(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return int(value)
        case "L":
            return [_from_attribute(part) for part in value]
        case "M":
            return from_attributes(value)
        case _:
            raise ValueError(f"an attribute of type {kind}")
