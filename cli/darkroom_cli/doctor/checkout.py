"""What this checkout says about a stack: its template with the stack's names, its runbook, and its source files."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import darkroom
from darkroom_cli.doctor.facts import Checkout, CouldNotBeRead, Queue, SecretFacts, StateMachine, TableFacts
from darkroom_cli.doctor.template import Values, filled_in
from darkroom_cli.places import IS_CHECKOUT, ROOT

if TYPE_CHECKING:
    from darkroom_cli.stack.operators import Stack

CORE_LAYER, PARTS_LAYER = "CoreLayer", "PartsLayer"

SLICES_OF_PARTS = frozenset({"webhooks", "events", "usage", "imports", "egress", "edge", "bulk"})
"""The slices of the package that are in the layer of optional parts, as layers/core/Makefile says."""


type FillIn = Callable[[Mapping[str, Any], Mapping[str, str]], tuple[dict[str, str], dict[str, dict[str, Any]]]]
"""Makes the types and properties of a template's resources with such parameters, as the stack has or would have them.
"""


def filler_of(
    stack: Stack,
    stack_id: str,
    *,
    queues: Mapping[str, Queue],
    tables: Mapping[str, TableFacts],
    state_machines: Mapping[str, StateMachine],
    secrets: Mapping[str, SecretFacts],
    others: Sequence[Mapping[str, Any]],
) -> FillIn:
    """Fills in templates with the stack's names. `others` have an ARN each. What could not be read of
    the stack is unknown here."""
    _, partition, _, region, account, _ = stack_id.split(":", 5)
    names = {name: physical_id for name, (_, physical_id) in stack.resources.items()}
    names |= {
        "AWS::Partition": partition,
        "AWS::Region": region,
        "AWS::AccountId": account,
        "AWS::StackName": stack.name,
        "AWS::StackId": stack_id,
        "AWS::URLSuffix": "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
    }
    attributes: dict[tuple[str, str], str] = {}
    for things in (queues, tables, state_machines, *others):
        with suppress(CouldNotBeRead):
            attributes |= {(name, "Arn"): thing.arn for name, thing in things.items()}
    with suppress(CouldNotBeRead):
        attributes |= {(name, "QueueName"): queue.name for name, queue in queues.items()}
    with suppress(CouldNotBeRead):
        attributes |= {(name, "Name"): machine.name for name, machine in state_machines.items()}
    with suppress(CouldNotBeRead):
        attributes |= {(name, "StreamArn"): table.stream_arn for name, table in tables.items() if table.stream_arn}
    with suppress(CouldNotBeRead):  # a secret is named by its ARN
        names |= {name: secret.arn for name, secret in secrets.items()}
        attributes |= {(name, "Id"): secret.arn for name, secret in secrets.items()}
    for name, physical_id in stack.physical_ids("AWS::S3::Bucket").items():
        attributes[name, "Arn"] = f"arn:{partition}:s3:::{physical_id}"
    for name, physical_id in stack.physical_ids("AWS::Logs::LogGroup").items():
        attributes[name, "Arn"] = f"arn:{partition}:logs:{region}:{account}:log-group:{physical_id}:*"

    def fill_in(
        template: Mapping[str, Any], parameters: Mapping[str, str]
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        return filled_in(template, Values(template, parameters=parameters, names=names, attributes=attributes))

    return fill_in


def checkout_of(stack: Stack, fill_in: FillIn) -> Checkout:
    """What this checkout would deploy with the stack's parameters."""
    parameters = stack.parameters
    types, resources = fill_in(_template(parameters.get("SnapStart", "None")), parameters)
    return Checkout(
        types=types,
        resources=resources,
        runbook=runbook_sections(),
        sources=source_files(stack.physical_ids("AWS::Lambda::Function")),
    )


def _template(snap_start: str) -> Mapping[str, Any]:
    """The expanded template with that value of `SnapStart`, the only parameter that it is expanded by."""
    if not IS_CHECKOUT:
        installed: Mapping[str, Any] = json.loads((ROOT / f"template.{snap_start}.json").read_text())
        return installed
    from repository.expand_template import expanded_template  # noqa: PLC0415 - SAM's translator takes a second to import

    return expanded_template(snap_start=snap_start)


def deployed_resources(body: Any, parameters: Mapping[str, str], fill_in: FillIn) -> dict[str, dict[str, Any]]:
    """The properties of the resources of a template that CloudFormation keeps, which is text if it is YAML."""
    if isinstance(body, str):
        import yaml  # noqa: PLC0415 - as above
        from samtranslator.yaml_helper import intrinsics_multi_constructor  # noqa: PLC0415 - as above

        class Loader(yaml.CSafeLoader):
            """Reads what SAM's translator does, ten times as fast."""

        Loader.add_multi_constructor("!", intrinsics_multi_constructor)
        body = yaml.load(body, Loader=Loader)  # noqa: S506 - a safe one
    return fill_in(body, parameters)[1]


def runbook_sections() -> dict[str, str]:
    """The runbook's sections by their anchors, as GitHub makes them."""
    parts = re.split(r"^## (.+)$", (ROOT / "docs" / "runbook.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-"): text
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def source_files(functions: Iterable[str]) -> dict[str, dict[str, str]]:
    """The hashes of this checkout's source files, by the paths at which they are deployed: each function's, and the
    layer's. A function without a folder here has none."""
    hashes = {}
    for name in functions:
        folder = ROOT / "functions" / re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Function")).lower()
        if folder.is_dir():
            hashes[name] = {file.name: _hash(file.read_bytes()) for file in sorted(folder.glob("*.py"))}
    (core,) = map(Path, darkroom.__path__)
    for file in sorted(core.rglob("*.py")):
        of_part = not SLICES_OF_PARTS.isdisjoint(file.relative_to(core).with_suffix("").parts)
        layer = hashes.setdefault(PARTS_LAYER if of_part else CORE_LAYER, {})
        layer[f"python/{file.relative_to(core.parent)}"] = _hash(file.read_bytes())
    return hashes


def hashes_of(archive: bytes) -> dict[str, str]:
    """The hashes of the Python files of a deployment package, by their paths."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: _hash(opened.read(name)) for name in opened.namelist() if name.endswith(".py")}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
