"""The `aws` commands of the runbook and of other pages exist, and so do the runbook's resources: nobody
finds one missing at three in the morning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from repository.expand_template import expanded_template
from repository.report import ROOT

pytestmark = pytest.mark.promise("alarms-and-runbook")

PAGES = {page.stem: page.read_text().replace("\\\n", " ") for page in sorted((ROOT / "docs").glob("*.md"))}
RUNBOOK = PAGES["runbook"]

OF_THE_COMMAND_LINE = {
    ("dynamodb", "wait"): {"table-name"},
    ("logs", "tail"): {"since", "format", "filter-pattern"},
    ("s3", "cp"): set(),
    ("s3", "ls"): {"recursive"},
    ("s3", "rb"): {"force"},
    ("sns", "subscribe"): {"topic-arn", "protocol", "notification-endpoint"},
    ("cloudformation", "deploy"): {"region", "stack-name", "template-file", "parameter-overrides"},
}
"""What `aws` has besides the services' own operations, with the options that we use."""

CALLED_OTHERWISE = {"s3api": "s3"}
"""Services that `aws` has under another name than the SDKs."""

OF_EVERY_OPERATION = {"query", "output", "no-paginate"}


def commands(page: str, start: str) -> list[str]:
    """The page's commands that begin like this, each to the end of its line, its pipe or its substitution."""
    code = [*re.findall(r"```sh\n(.*?)```", page, re.DOTALL), *re.findall(r"`([^`\n]+)`", page)]
    return [command for block in code for command in re.findall(rf"(?:^|[\s(;])({start} [^\n|;#]*)", block)]


def options(command: str) -> set[str]:
    """The long options of a command, without those of a command substituted into it."""
    return set(re.findall(r"\s--([a-z][a-z-]+)", re.sub(r'"?\$\([^()]*(\([^()]*\)[^()]*)*\)"?', "VALUE", command)))


@pytest.mark.parametrize("page", PAGES)
def test_every_aws_command_is_one_that_aws_has(page: str) -> None:
    session = botocore.session.get_session()
    lines = commands(PAGES[page], "aws")
    assert len(lines) > {"runbook": 20, "deploy": 5}.get(page, -1)
    for command in lines:
        service, operation = command.split()[1:3]
        if (service, operation) in OF_THE_COMMAND_LINE:
            known = OF_THE_COMMAND_LINE[service, operation]
        else:
            model = session.get_service_model(CALLED_OTHERWISE.get(service, service))
            (name,) = [name for name in model.operation_names if xform_name(name, "-") == operation]
            shape: Any = model.operation_model(name).input_shape
            known = {xform_name(member, "-") for member in (shape.members if shape else ())}
            known |= {f"no-{member}" for member in known} | OF_EVERY_OPERATION
        assert options(command) <= known, command


def resources_named() -> Iterator[str]:
    yield from re.findall(r"\b(?:resource|sources|messages|invoke) ([A-Z]\w+)", RUNBOOK)
    yield from re.findall(r"`([A-Z]\w+Logs)`", RUNBOOK)


@pytest.mark.parametrize("name", sorted(set(resources_named())))
def test_every_resource_that_it_asks_for_is_in_the_stack(name: str) -> None:
    assert name in expanded_template()["Resources"]
