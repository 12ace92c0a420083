"""The command as a package: installed outside of the checkout, it works on a stack without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from repository.report import ROOT
from tests.local.local_stack import PHOTO, LocalStack, document_in

pytestmark = pytest.mark.promise("installed-command")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A new environment with the command, and an empty folder in which it runs. Its dependencies are the tests' own."""

    venv: Path
    folder: Path
    variables: Mapping[str, str]

    def __call__(
        self, *arguments: str, program: str = "darkroom", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.venv / "bin" / program, *arguments],
            cwd=self.folder,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, stack: LocalStack) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DARKROOM_"))}
    for project in ("layers/core", "cli"):
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, cwd=ROOT / project, env=outside, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=True)
    (site_packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", *folder.glob("*.whl")], cwd=folder, env=outside, check=True)
    (empty := folder / "empty").mkdir()
    variables = outside | {"DARKROOM_STATE_DIR": str(stack.state), "COLUMNS": "100"}
    return Installed(venv=folder / "venv", folder=empty, variables=variables)


def test_it_runs_without_the_checkout(installed: Installed) -> None:
    where = installed(
        "-c", "import darkroom, darkroom_cli, darkroom_client; print(darkroom_cli.__file__)", program="python"
    )
    assert "/venv/lib/" in where.stdout, where.stderr
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert installed("--version").stdout == f"darkroom {version}\n"


def test_its_help_names_the_command_as_it_is_typed_and_what_needs_linux(installed: Installed) -> None:
    run = installed("--help")
    assert run.returncode == 0 and run.stderr == ""
    assert "darkroom upload photo.jpg" in run.stdout and "On Linux, in a checkout" in run.stdout
    of_a_command = installed("dlq", "replay", "--help")
    assert "darkroom dlq replay" in of_a_command.stdout
    assert "./darkroom" not in run.stdout + of_a_command.stdout


@pytest.mark.parametrize("arguments", [("local", "up", "--help"), ("build",), ("drill", "all")])
def test_what_needs_linux_and_a_checkout_says_so(installed: Installed, arguments: tuple[str, ...]) -> None:
    run = installed(*arguments)
    assert run.returncode == 1
    assert "needs Linux and a checkout of Darkroom" in run.stderr and "Traceback" not in run.stderr


def test_it_finds_in_a_stack_what_the_checkout_finds(installed: Installed, stack: LocalStack) -> None:
    run = installed("doctor", "--all", "--json")
    assert run.stdout, run.stderr
    of_the_package, of_the_checkout = (
        {check["name"]: check["status"] for check in document_in(stdout)["checks"]}
        for stdout in (run.stdout, stack.darkroom("doctor", "--all", "--json").stdout)
    )
    assert of_the_package == of_the_checkout


def test_it_adds_a_tenant_and_lists_images(installed: Installed) -> None:
    added = installed("tenants", "add", "installed")
    assert added.returncode == 0, added.stderr
    assert "darkroom keys create installed" in added.stdout and "./darkroom" not in added.stdout
    assert "installed" in installed("tenants", "ls").stdout
    listed = installed("ls", "--json")
    assert listed.returncode == 0, listed.stderr
    assert "images" in document_in(listed.stdout)


def test_the_example_on_the_page_about_the_client_works(installed: Installed, stack: LocalStack) -> None:
    (example,) = re.findall(r"```python\n(.+?)```", (ROOT / "docs" / "client.md").read_text(), re.DOTALL)
    shutil.copy(PHOTO, installed.folder / "photo.jpg")
    done = installed("-c", example, program="python", DARKROOM_URL=stack.api_url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and (installed.folder / "thumb.jpg").read_bytes()[:2] == b"\xff\xd8"


def test_where_no_stack_runs_it_asks_for_one(installed: Installed, tmp_path: Path) -> None:
    run = installed("ls", DARKROOM_STATE_DIR=str(tmp_path))
    assert run.stderr == "error: No local stack runs here: name a deployed stack: --stack NAME [--region REGION].\n"
