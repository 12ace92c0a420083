"""`sam build` for the other processor: what is deployed holds machine code for that one alone."""

import platform
import subprocess
from pathlib import Path

import pytest

from embedded_aws import paths
from embedded_aws.build import prepare_sam, sam_environment
from embedded_aws.environment import NOWHERE, interpreter_folder, with_first_on_path, write_aws_config
from embedded_aws.paths import State

X86_64, ARM64 = 62, 183
"""Processors as ELF names them (`e_machine`)."""

OTHER, MACHINE = ("x86_64", X86_64) if platform.machine() in ("aarch64", "arm64") else ("arm64", ARM64)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    state = State(folder=folder / "state")
    state.temporary.mkdir(parents=True)
    prepare_sam(state)
    write_aws_config(state, NOWHERE, "of no use")  # `sam build` requires the profile, and calls no service
    subprocess.run(
        [
            *(paths.SAM, "build", "--config-env", "staging"),
            *("--parameter-overrides", "Environment=staging", f"Architecture={OTHER}"),
            *("--build-dir", folder / "build", "--cache-dir", folder / "cache"),
        ],
        cwd=paths.ROOT,
        env=with_first_on_path(sam_environment(state), interpreter_folder()),
        check=True,
        timeout=300,
    )
    return folder / "build"


def test_every_library_is_for_that_processor(built: Path) -> None:
    machines = {
        file.relative_to(built): int.from_bytes(head[18:20], "little")
        for file in built.rglob("*")
        if file.is_file() and (head := _head(file)).startswith(b"\x7fELF")
    }
    assert len(machines) > 20
    assert {file: machine for file, machine in machines.items() if machine != MACHINE} == {}


def test_the_bytecode_comes_along(built: Path) -> None:
    assert len(list((built / "BytecodeLayer").rglob("*.cpython-313.pyc"))) > 500
    assert len(list((built / "CoreLayer").rglob("*.cpython-313.pyc"))) > 100


def _head(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(20)
