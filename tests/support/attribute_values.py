"""Values of DynamoDB's attributes in moto's answers, written as they are: moto asks each for every type that there is,
under every name that it might have, which takes a quarter of the time of a test that reads rows."""

from __future__ import annotations

from typing import Any

from moto.core.model import StructureShape
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models.dynamo_type import DynamoType

_serialize_structure = BaseJSONSerializer._serialize_type_structure


def serialize_structure(
    serializer: BaseJSONSerializer, serialized: Any, value: Any, shape: StructureShape, key: str
) -> None:
    """Takes the place of the serializer's method."""
    if shape.name == "AttributeValue" and type(value) is dict and value.keys() <= _KINDS:
        serialized[key] = _plain(value)
    else:
        _serialize_structure(serializer, serialized, value, shape, key)


_KINDS = frozenset({"S", "N", "SS", "NS", "M", "L", "NULL", "BOOL"})
"""All but bytes, which nothing stores."""


def _plain(value: dict[str, Any] | DynamoType) -> dict[str, Any]:
    ((kind, content),) = (value.to_json() if isinstance(value, DynamoType) else value).items()
    if kind == "M":
        return {kind: {name: _plain(each) for name, each in content.items()}}
    if kind == "L":
        return {kind: [_plain(each) for each in content]}
    return {kind: str(content) if kind == "N" else content}
