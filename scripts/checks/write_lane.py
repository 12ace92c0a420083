"""Writes what the templates need for a new row of LANES: a copy of all that the last lane of tenants has.

python -m checks.write_lane LANE
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from darkroom.domain.kernel.lanes import LANES, Lane
from repository.expand_template import OBSERVABILITY, TEMPLATE


def with_lane(template: str, lane: Lane, model: Lane) -> str:
    """The template's text with everything of `lane`, each part after the same part of `model`."""
    name = model.name.capitalize()
    blocks = re.findall(rf"(?m)^  {name}(?:Concurrency|Pollers): .+\n(?:    .+\n)+", template)
    for number, parameter in enumerate(blocks):
        template = template.replace(parameter, f"\0{number}\n")
    text = "".join(_with_lane(line, lane, model) for line in template.splitlines(keepends=True))
    for number, parameter in enumerate(blocks):
        own = _renamed(parameter, lane, model).replace(
            f"Default: {model.concurrency},", f"Default: {lane.concurrency},"
        )
        text = text.replace(f"\0{number}\n", parameter + own)
    return text


def _with_lane(line: str, lane: Lane, model: Lane) -> str:
    """A line with the new lane beside the model in each list, or followed by its copy if all of it is the model's."""
    name, title = model.name, model.name.capitalize()
    if line.lstrip().startswith("#") or "_QUEUE_URL: !If " in line:  # whose queue another lane takes is no list
        return line
    in_lists = {
        rf"!(?:Ref|GetAtt) {title}(?:Queue|DeadLetters)(?:\.Arn)?(?=[,\]])": ", ",
        rf"(?<=[\[ ]){title}(?=[,\]])": ", ",
        rf"{name}=\$\{{{title}DeadLetters\}}": ",",
        rf"\$\{{{title}Concurrency\}}": " ",
        rf"(?<=\+ ){name}(?= \+)": " + ",
    }
    for item, separator in in_lists.items():
        line, replaced = re.subn(item, lambda it: it[0] + separator + _renamed(it[0], lane, model), line)  # noqa: B023 - called at once
        if replaced:
            return line
    of_model = (
        rf"\b{title}(?:Queue|DeadLetters|Concurrency|Pollers)\b|\b{name.upper()}_|\b{name}_"
        rf'|: "?{name} |"{name}"|^    {title}: {{'
    )
    if not re.search(of_model, line):
        return line
    copy = re.sub(r" #.*", "", _renamed(line, lane, model))
    if line.lstrip().startswith(("[", '{"')) and not line.endswith(",\n"):  # the last member of a list in JSON
        line = line.removesuffix("\n") + ",\n"
    copy = re.sub(rf"(\* |\"value\": ){model.sla_seconds}\b", rf"\g<1>{lane.sla_seconds}", copy)
    copy = copy.replace(f"BatchSize: {model.batch_size}", f"BatchSize: {lane.batch_size}")
    kept = "RetentionSeconds: {}"
    return line + copy.replace(kept.format(model.retention_seconds), kept.format(lane.retention_seconds))


def _renamed(text: str, lane: Lane, model: Lane) -> str:
    for spelling in (str.lower, str.capitalize, str.upper):
        text = text.replace(spelling(model.name), spelling(lane.name))
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the lane into the template; fails if it is not a row of LANES or already there."""
    parser = argparse.ArgumentParser(prog="python -m checks.write_lane", description="Writes a lane into the template.")
    parser.add_argument("lane", metavar="LANE")
    name = parser.parse_args(arguments).lane
    template = TEMPLATE.read_text()
    present = [each for each in LANES if f" {each.upper()}_QUEUE_URL:" in template]
    if name not in LANES:
        parser.error(f"first add the lane {name} to LANES in layers/core/darkroom/domain/kernel/lanes.py")
    if name in present:
        parser.error(f"the template already has the lane {name}")
    model = [each for each in present if LANES[each].tiers][-1]  # others belong to an optional part
    for file in (TEMPLATE, OBSERVABILITY):
        file.write_text(with_lane(file.read_text(), LANES[name], LANES[model]))
    print(f"The templates have the lane {name}: see git diff template.yaml extensions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
