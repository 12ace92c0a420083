"""Packages for Node.js that Darkroom is compared with or tested against, installed from their lock file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class NoNodePackages(Exception):
    """They cannot be used here; the message says why and what to do."""


class NoNode(NoNodePackages):
    """This machine has no Node.js, or no npm."""


def install(folder: Path, into: Path, *, path: str | None = None) -> None:
    """Installs what the lock file in `folder` names, if `into` does not have it yet, with the Node.js on `path` (by
    default this machine's own). Raises NoNodePackages."""
    path = path or os.environ["PATH"]
    for program in ("node", "npm"):
        if shutil.which(program, path=path) is None:
            raise NoNode(f"there is no {program}: install Node.js 20 or later with npm")
    lock = (folder / "package-lock.json").read_bytes()
    stamp = into / ".stamp"
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(folder / name, into)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=into, env={**os.environ, "PATH": path}, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise NoNodePackages(f"npm could not install what {folder.name} names: {done.stderr.strip()}")
    stamp.write_bytes(lock)  # the last step: an interrupted installation lacks it and is redone
