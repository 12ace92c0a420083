"""The command as a package: installed outside of the checkout, it works on a stack without it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from repository.report import ROOT
from tests.local.local_stack import LocalStack, document_in

type Installed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, stack: LocalStack) -> Installed:
    """Runs the `darkroom` of a new environment, in an empty folder. Its dependencies are those of the tests, and what
    the wheels declare is compared with them."""
    folder = tmp_path_factory.mktemp("installed")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DARKROOM_"))}
    wheels = folder / "wheels"
    for project in ("layers/core", "cli"):
        build: list[str | Path] = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            wheels,
        ]
        subprocess.run(build, cwd=ROOT / project, env=outside, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=True)
    bin_folder = folder / "venv" / "bin"
    (site_packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip: list[str | Path] = [bin_folder / "python", "-m", "pip", "--disable-pip-version-check"]
    install: list[str | Path] = [*pip, "install", "--quiet", "--no-deps", "--no-index", *wheels.glob("*.whl")]
    subprocess.run(install, cwd=folder, env=outside, check=True)
    (empty := folder / "empty").mkdir()

    def run(*arguments: str, program: str = "darkroom", state: Path = stack.state) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bin_folder / program, *arguments],
            cwd=empty,
            env=outside | {"DARKROOM_STATE_DIR": str(state), "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_it_runs_without_the_checkout(installed: Installed) -> None:
    where = installed(
        "-c", "import darkroom, darkroom_cli, darkroom_client; print(darkroom_cli.__file__)", program="python"
    )
    assert "/venv/lib/" in where.stdout, where.stderr
    assert installed("--version").stdout == "darkroom 0.1.0\n"


def test_its_help_names_the_command_as_it_is_typed_and_what_needs_linux(installed: Installed) -> None:
    told = installed("--help")
    assert told.returncode == 0 and told.stderr == ""
    assert "darkroom upload photo.jpg" in told.stdout and "On Linux, in a checkout" in told.stdout
    of_a_command = installed("dlq", "replay", "--help")
    assert "darkroom dlq replay" in of_a_command.stdout
    assert "./darkroom" not in told.stdout + of_a_command.stdout


@pytest.mark.parametrize("arguments", [("local", "up", "--help"), ("build",), ("drill", "all")])
def test_what_needs_linux_and_a_checkout_says_so(installed: Installed, arguments: tuple[str, ...]) -> None:
    told = installed(*arguments)
    assert told.returncode == 1
    assert "needs Linux and a checkout of Darkroom" in told.stderr and "Traceback" not in told.stderr


def test_it_finds_in_a_stack_what_the_checkout_finds(installed: Installed, stack: LocalStack) -> None:
    told = installed("doctor", "--all", "--json")
    assert told.stdout, told.stderr
    found, of_the_checkout = (
        {check["name"]: check["status"] for check in document_in(stdout)["checks"]}
        for stdout in (told.stdout, stack.darkroom("doctor", "--all", "--json").stdout)
    )
    assert found == of_the_checkout


def test_it_adds_a_tenant_and_lists_images(installed: Installed) -> None:
    added = installed("tenants", "add", "installed")
    assert added.returncode == 0, added.stderr
    assert "darkroom keys create installed" in added.stdout and "./darkroom" not in added.stdout
    assert "installed" in installed("tenants", "ls").stdout
    listed = installed("ls", "--json")
    assert listed.returncode == 0, listed.stderr
    assert "images" in document_in(listed.stdout)


def test_where_no_stack_runs_it_asks_for_one(installed: Installed, tmp_path: Path) -> None:
    told = installed("ls", state=tmp_path)
    assert told.stderr == "error: No local stack runs here: name a deployed stack: --stack NAME [--region REGION].\n"
