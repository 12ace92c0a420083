"""An earlier commit of this repository, built next to this one, so that both are measured in one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from repository.report import ROOT

_TREES = ROOT / "build" / "earlier"

# Runs in the earlier tree, with its own environment and its own tools.
_BUILD = """
import shutil, sys
from checks.initialise_functions import built_template
with built_template() as template:
    shutil.copytree(template.parent, sys.argv[1])
"""


def tree_of(commit: str) -> Path:
    """A clone of this repository at that commit, with its own environments; it is kept for the next run."""
    tree = checkout_of(commit)
    subprocess.run(["make", "--silent", "setup"], cwd=tree, env=environment_of(tree), check=True)
    return tree


def checkout_of(commit: str) -> Path:
    """The same without environments: only the files."""
    sha = _git(ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}")
    tree = _TREES / sha[:12]
    if not tree.exists():
        unfinished = tree.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _git(ROOT, "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(unfinished))
        _git(unfinished, "checkout", "--quiet", sha)
        unfinished.rename(tree)
    return tree


def build(tree: Path, folder: Path) -> Path:
    """The template that `sam build` makes in that tree; its files are put into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = tree / ".darkroom" / "venvs" / "dev" / "bin" / "python"
    subprocess.run([python, "-c", _BUILD, folder], cwd=tree, env=environment_of(tree), check=True)
    return folder / "template.yaml"


def environment_of(tree: Path) -> dict[str, str]:
    """The environment of a process that runs in that tree."""
    # Until November 2026, what is in `scripts` and `cli` was in `tools`.
    own = {"PYTHONPATH": "tools:scripts:cli:layers/core:.", "PYTHONPYCACHEPREFIX": str(tree / ".darkroom" / "bytecode")}
    return {**os.environ, **own}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"git {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr)
        raise SystemExit(2)
    return done.stdout.strip()
