"""On macOS everything that talks to a deployed stack works: nothing of Linux is needed to import it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repository.report import ROOT

pytestmark = pytest.mark.promise("installed-command")

AS_ON_MACOS = """
import importlib, os, pkgutil, select, signal, sys, sysconfig, urllib.request

import rich.live, typer  # they know how to run there

sysconfig.get_config_vars()  # it reads this Python's own file

sys.platform = "darwin"
for module, names in {
    os: "copy_file_range memfd_create pidfd_open posix_fadvise sched_getaffinity setns splice unshare",
    select: "epoll", signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
}.items():
    for name in names.split():
        delattr(module, name)

class NothingOfLinux:
    @staticmethod
    def find_spec(name, path, target=None):
        is_of_the_emulator = name.startswith("local_aws.") and not name.startswith("local_aws.stacks")
        if is_of_the_emulator or name.partition(".")[0] in ("libfaketime", "ministack", "uvloop"):
            raise ImportError(f"{name} needs Linux")

def no_proc(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(arguments[0])

sys.meta_path.insert(0, NothingOfLinux)
sys.addaudithook(no_proc)
"""

OTHERS = "import boto3, httpx, pydantic, starlette.applications, uvicorn  # so do they"

IMPORT_ALL = """
import darkroom_cli, darkroom_client

imported = 0
for package in (darkroom_cli, darkroom_client):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(("darkroom_cli.local", "darkroom_cli.__main__")):
            importlib.import_module(found.name)
            imported += 1
assert "darkroom_cli.local" not in sys.modules
print(imported)
"""

RUN = """
from darkroom_cli.main import main

main()
"""


def on_macos(program: str, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + AS_ON_MACOS + program, *arguments],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in ("cli", "layers/core", "scripts", "."))}
        | {"COLUMNS": "100", "DARKROOM_STATE_DIR": "/no stack runs here"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_can_be_imported_there() -> None:
    done = on_macos(IMPORT_ALL, before=OTHERS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def test_the_help_says_which_commands_need_linux() -> None:
    text = on_macos(RUN, "--help").stdout
    _, needing_linux = text.split("On Linux, in a checkout")
    assert "local" in needing_linux and "build" in needing_linux
    assert "make run" not in text


def test_a_command_that_needs_linux_says_so_and_what_to_do() -> None:
    run = on_macos(RUN, "local", "up", "--access", "keys")
    assert run.returncode == 1
    assert (
        run.stderr
        == "error: `darkroom local` needs Linux and a checkout of Darkroom: run it there as `./darkroom local`.\n"
    )


def test_without_a_stack_a_command_asks_for_a_deployed_one() -> None:
    run = on_macos(RUN, "status", "0" * 26)
    assert run.returncode == 1
    assert run.stderr.startswith("error: No local stack runs here: name a deployed stack: --url URL")


def test_the_command_of_a_checkout_starts_without_setsid_and_proc(tmp_path: Path) -> None:
    checkout, programs = tmp_path / "checkout", tmp_path / "bin"
    (checkout / ".darkroom").mkdir(parents=True)
    programs.mkdir()
    for name in (".darkroom/venvs", ".python-version", "cli", "layers", "requirements", "scripts"):
        (checkout / name).symlink_to(ROOT / name)
    text = (ROOT / "darkroom").read_text()
    assert "/proc/uptime" in text
    (checkout / "darkroom").write_text(text.replace("/proc/", "/no-proc/"))
    for name in ("sh", "cat", "cksum", "dirname", "mkdir"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "uname").write_text('#!/bin/sh\n[ "$1" = -m ] && echo arm64 || echo Darwin\n')
    (programs / "uname").chmod(0o755)
    for shell in ("sh", "bash"):  # the second one finds the first one's bytecode
        done = subprocess.run(
            [str(shutil.which(shell)), checkout / "darkroom", "status", "0" * 26],
            env={"PATH": str(programs), "DARKROOM_STATE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("error: The local stack is not running."), done.stderr
