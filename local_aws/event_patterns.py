"""Which events the filters of an event source let through
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def passes(filters: Sequence[Mapping[str, str]], event: Mapping[str, Any]) -> bool:
    """Whether any of the filters, as a template has them, lets the event through."""
    return any(matches(event, json.loads(event_filter["Pattern"])) for event_filter in filters)


def matches(event: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    """Whether an event has all that a pattern wants: values at the ends of their paths. What lacks an object lacks all
    values in it, numbers match numbers only, and of a list one element is enough."""
    return all(
        any(matches(event, alternative) for alternative in wanted)
        if name == "$or"
        else _has(event.get(name), wanted, exists=name in event)
        for name, wanted in pattern.items()
    )


def _has(value: Any, wanted: Any, *, exists: bool) -> bool:
    if isinstance(wanted, Mapping):
        return matches(value if isinstance(value, Mapping) else {}, wanted)
    values = (value if isinstance(value, list) else [value]) if exists and not isinstance(value, Mapping) else []
    return isinstance(wanted, list) and any(_follows(values, rule) for rule in wanted)


def _follows(values: list[Any], rule: Any) -> bool:
    if not isinstance(rule, Mapping):
        return any(_equals(value, rule) for value in values)
    operator, operand = next(iter(rule.items()))
    if operator == "exists":
        return bool(values) is bool(operand)
    if operator == "anything-but":
        excluded = operand if isinstance(operand, list) else [operand]
        return bool(values) and not any(_follows(values, excluded_rule) for excluded_rule in excluded)
    if operator == "numeric":
        return any(_is_in_range(value, operand) for value in values)
    return any(isinstance(value, str) and _compare(value, operator, operand) for value in values)


def _equals(value: Any, wanted: Any) -> bool:
    # To Python, true is 1.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _is_in_range(value: Any, conditions: list[Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    compared = {
        "=": lambda bound: value == bound,
        ">": lambda bound: value > bound,
        ">=": lambda bound: value >= bound,
        "<": lambda bound: value < bound,
        "<=": lambda bound: value <= bound,
    }
    return all(compared[operator](bound) for operator, bound in zip(conditions[::2], conditions[1::2], strict=True))


def _compare(value: str, operator: str, operand: str) -> bool:
    if operator == "prefix":
        return value.startswith(operand)
    if operator == "suffix":
        return value.endswith(operand)
    return operator == "equals-ignore-case" and value.casefold() == operand.casefold()
