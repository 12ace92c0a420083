"""Compares what two templates deploy: the same resources, each with the same properties, after all transforms.

Usage: python -m checks.compare_templates OLD NEW    (git show main:template.yaml > build/old.yaml)

Prints what differs and exits with 1. What has no order for CloudFormation has none here: the members of an object, what
a resource depends on, and the parts of a policy's statement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from checks.expand_template import Template, expanded_template

SECTIONS = ("Parameters", "Rules", "Conditions", "Resources", "Outputs")


def differences(old: Template, new: Template) -> Iterator[str]:
    """Each place at which two expanded templates differ, as a line."""
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
            for number, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from _differing(one, other, f"{place}[{number}]")
        case _:
            # 1 is True in Python, and "1" is not 1 in a template that is only read.
            if (type(before), before) != (type(after), after):
                yield f"{place}: {_shown(before)} → {_shown(after)}"


class _Nothing:
    """What is not there at all."""


_NOTHING = _Nothing()


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value, sort_keys=True)


def _ordered(value: Any, key: str = "") -> Any:
    """With one spelling for what CloudFormation reads the same way."""
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
    """A list whose order means nothing, of which a single value is the short form."""
    if name not in ("Action", "Resource", "DependsOn"):
        return _ordered(value)
    return sorted(map(_ordered, value if isinstance(value, list) else [value]), key=_shown)


def main(arguments: Sequence[str]) -> int:
    """Compare two files; 1 where they differ."""
    if len(arguments) != 2:
        print(__doc__)
        return 2
    old, new = (expanded_template(path=Path(argument)) for argument in arguments)
    found = list(differences(old, new))
    print(*found, f"{len(found)} differences in {len(new['Resources'])} resources", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
