"""Which records an event source's filter lets through
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html), as far as template.yaml uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def passes(filters: Sequence[Mapping[str, str]], record: Mapping[str, Any]) -> bool:
    """Whether any of the filters' patterns matches the record. Raises NotImplementedError for a rule it lacks."""
    return any(_matches(json.loads(one["Pattern"]), record) for one in filters)


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:
    """Whether all keys of a pattern match: an object looks into the value, a list holds alternatives for a leaf."""
    for key, wanted in pattern.items():
        part = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(wanted, Mapping):
            if not _matches(wanted, part):
                return False
        elif not any(_is_met(rule, part) for rule in wanted):
            return False
    return True


def _is_met(rule: Any, leaf: Any) -> bool:
    match rule:
        case str():
            return bool(leaf == rule)
        case {"exists": bool(expected)}:
            return (leaf is not None) == expected
    raise NotImplementedError(f"the rule {rule!r}: teach it here")
