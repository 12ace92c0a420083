"""Checks the types that the page's modules say in JSDoc, and those of the operators' page, with TypeScript.

Those of the client that teams copy are checked most strictly.

Usage: python -m checks.page_types, after `scripts/setup/environments.sh node`
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from checks.node_packages import NoNodePackages, install
from repository.report import ROOT

_NODE = ROOT / ".darkroom" / "venvs" / "node" / "bin"
_INSTALLED = ROOT / ".darkroom" / "typescript"


def main() -> int:
    """Returns TypeScript's exit status, or 2 if it cannot be installed."""
    path = os.pathsep.join((str(_NODE), os.environ["PATH"]))
    try:
        install(Path(__file__).with_name("typescript"), _INSTALLED, path=path)
    except NoNodePackages as missing:
        print(f"The page's types were not checked: {missing}", file=sys.stderr)
        return 2
    compiler = _INSTALLED / "node_modules" / ".bin" / "tsc"
    projects = [str(ROOT / "layers" / "page" / name) for name in ("tsconfig.json", "tsconfig.client.json")]
    statuses = [
        subprocess.run([compiler, "--project", project], env={**os.environ, "PATH": path}, check=False).returncode
        for project in projects
    ]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
