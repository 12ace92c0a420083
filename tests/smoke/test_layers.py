"""The deployed layers: each module has bytecode that Lambda's Python takes, so that no cold start compiles it."""

from __future__ import annotations

import importlib.util
import io
import marshal
import sys
import zipfile
from pathlib import PurePosixPath
from types import CodeType
from urllib.parse import urlsplit

import pytest

from local_aws.layers import deployed_template
from repository.expand_template import raw_template
from tests.local.local_stack import LocalStack

LAYERS = [
    name
    for name, resource in raw_template()["Resources"].items()
    if resource["Type"] == "AWS::Serverless::LayerVersion"
]
MAGIC_NUMBER = 3571
"""Of Lambda's runtime, every final release of Python 3.13 (cpython: Include/internal/pycore_magic_number.h)."""

IS_CHECKED_HASH = 0b11
"""The flags of bytecode that holds its source's hash and is compared with it (PEP 552)."""


@pytest.fixture(scope="module")
def archives(stack: LocalStack) -> dict[str, dict[str, bytes]]:
    """The content of each deployed layer."""
    deployed = deployed_template(stack.client("cloudformation"), stack.record.stack_name)["Resources"]
    contents = {}
    for name in LAYERS:
        place = urlsplit(deployed[name]["Properties"]["ContentUri"])
        answer = stack.client("s3").get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
        with zipfile.ZipFile(io.BytesIO(answer["Body"].read())) as archive:
            contents[name] = {member: archive.read(member) for member in archive.namelist() if not member.endswith("/")}
    return contents


def test_every_module_of_every_layer_has_valid_bytecode(archives: dict[str, dict[str, bytes]]) -> None:
    assert sys.version_info[:2] == (3, 13), "the runtime's Python reads this bytecode"
    together = {name: content for archive in archives.values() for name, content in archive.items()}
    sources = [name for name in together if name.endswith(".py") and _is_a_module(name)]
    assert len(sources) > 500
    wrong = [f"{name}: {problem}" for name in sources if (problem := _problem_of(name, together))]
    assert wrong == []


def _is_a_module(name: str) -> bool:
    return all(part.isidentifier() for part in PurePosixPath(name).with_suffix("").parts)  # a wheel's data has dots


def _problem_of(name: str, together: dict[str, bytes]) -> str | None:
    path = PurePosixPath(name)
    compiled = together.get(str(path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"))
    if compiled is None:
        return "no bytecode"
    if int.from_bytes(compiled[:2], "little") != MAGIC_NUMBER or compiled[2:4] != b"\r\n":
        return "the bytecode of another Python"
    if int.from_bytes(compiled[4:8], "little") != IS_CHECKED_HASH:
        return "bytecode that is not compared by its hash"
    if compiled[8:16] != importlib.util.source_hash(together[name]):
        return "the bytecode of another source"
    code = marshal.loads(compiled[16:])
    if not isinstance(code, CodeType) or code.co_filename != f"/opt/{name}":
        return "its tracebacks show another path"
    return None


def test_the_layer_of_bytecode_holds_nothing_but_that_and_botocores_models(
    archives: dict[str, dict[str, bytes]],
) -> None:
    assert {PurePosixPath(name).suffix for name in archives["BytecodeLayer"]} == {".pyc", ".marshal"}


def test_no_layer_depends_on_the_processor_but_those_that_say_so(archives: dict[str, dict[str, bytes]]) -> None:
    with_machine_code = {
        name for name, files in archives.items() if any(content[:4] == b"\x7fELF" for content in files.values())
    }
    assert with_machine_code == {"DependenciesLayer", "ImagingLayer"}


def test_the_layer_of_the_core_holds_the_core_and_nothing_beside_it(archives: dict[str, dict[str, bytes]]) -> None:
    assert {"/".join(PurePosixPath(name).parts[:2]) for name in archives["CoreLayer"]} == {"python/darkroom"}
