"""Compares what two templates deploy: the same resources, each with the same properties, after all transforms.

Usage: python -m checks.compare_templates OLD NEW    (git show main:template.yaml > build/old.yaml)

Prints the differences and exits with 1 if there are any. Order is ignored where CloudFormation ignores it: the members
of an object, the resources that a resource depends on, and the parts of a policy statement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from repository.expand_template import Template, expanded_template

SECTIONS = ("Parameters", "Rules", "Conditions", "Resources", "Outputs")


def differences(old: Template, new: Template) -> Iterator[str]:
    """One line for each place where two expanded templates differ."""
    for section in SECTIONS:
        before, after = old.get(section, {}), new.get(section, {})
        yield from (f"{section}: {name} is gone" for name in sorted(before.keys() - after.keys()))
        yield from (f"{section}: {name} is new" for name in sorted(after.keys() - before.keys()))
        for name in sorted(before.keys() & after.keys()):
            yield from _differing(_ordered(before[name]), _ordered(after[name]), f"{section}: {name}")


def _differing(before: Any, after: Any, place: str) -> Iterator[str]:
    match before, after:
        case dict(), dict():
            for key in sorted(before.keys() | after.keys()):
                yield from _differing(before.get(key, _NOTHING), after.get(key, _NOTHING), f"{place}.{key}")
        case list(), list() if len(before) == len(after):
            for number, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from _differing(old, new, f"{place}[{number}]")
        case _:
            # In Python True == 1, and in a template that is only parsed "1" != 1.
            if (type(before), before) != (type(after), after):
                yield f"{place}: {_shown(before)} → {_shown(after)}"


class _Nothing:
    """Stands for a missing value."""


_NOTHING = _Nothing()


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value, sort_keys=True)


def _ordered(value: Any, key: str = "") -> Any:
    """Return the value in one spelling, so that values that mean the same to CloudFormation compare equal."""
    match value:
        case {"Fn::GetAtt": str(text)}:
            return {"Fn::GetAtt": text.split(".", 1)}
        case dict():
            is_statement = "Effect" in value
            return {
                name: _sorted(inner, name) if is_statement or name == "DependsOn" else _ordered(inner, name)
                for name, inner in value.items()
            }
        case list():
            return [_ordered(inner) for inner in value]
        case _:
            return value


def _sorted(value: Any, name: str) -> Any:
    """Return a list whose order does not matter; a single value is its short form."""
    if name not in ("Action", "Resource", "DependsOn"):
        return _ordered(value)
    return sorted(map(_ordered, value if isinstance(value, list) else [value]), key=_shown)


def main(arguments: Sequence[str]) -> int:
    """Compare two files; return 1 if they differ."""
    if len(arguments) != 2:
        print(__doc__)
        return 2
    old, new = (expanded_template(path=Path(argument)) for argument in arguments)
    differing = list(differences(old, new))
    print(*differing, f"{len(differing)} differences in {len(new['Resources'])} resources", sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
