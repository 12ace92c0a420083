"""What is newer on the package index, and which libraries in the layers are due for a comparison with advisories.

    python -m checks.outdated [--release]

Everything is a warning, but for a release: then a library that was not compared for 45 days, a list that differs from
what is installed and a known vulnerability are failures. What could not be asked is said, never taken for sound.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from checks.libraries import LIST, LOCKS, differences, installed, listed, not_compared, pinned

_UV, _AUDIT = Path(".darkroom/venvs/uv/bin/uv"), Path(".darkroom/venvs/audit/bin/pip-audit")
_GROUP_LOCKS = {f"layer-{lock.parent.name}": lock for lock in LOCKS}

type RunCommand = Callable[[Sequence[str], str], subprocess.CompletedProcess[str]]
"""Runs a command with a text as its input."""


@dataclass(kw_only=True)
class OutdatedReport:
    """What there is to say, in sections, and whether a release may not have it."""

    sections: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    is_unfit: bool = False

    def add(self, title: str, lines: Sequence[str], *, unfit: bool = False) -> None:
        """A section; `unfit` if a release may not have it unless it is empty."""
        self.sections.append((title, lines))
        self.is_unfit |= unfit and bool(lines)


class NotRun(Exception):
    """A question that could not be asked, and why."""


def direct_dependencies(project: Mapping[str, Any]) -> dict[Path, set[str]]:
    """The packages that pyproject.toml names, by the lock file that pins them."""
    return {
        _GROUP_LOCKS.get(group, Path(f"requirements/{group}.txt")): {
            re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()
            for requirement in names
            if isinstance(requirement, str)
        }
        for group, names in project["dependency-groups"].items()
    }


def newer(locked: Mapping[str, Mapping[str, str]], run: RunCommand) -> list[str]:
    """The packages of the lock files of which the index has another version than is pinned.

    Raises NotRun.
    """
    names = sorted({name for packages in locked.values() for name in packages})
    asked = [str(_UV), "pip", "compile", "-", "--no-deps", "--quiet", "--no-config", "--python-version", "3.13"]
    try:
        done = run([*asked, "--no-header", "--no-annotate", "--no-emit-index-url"], "\n".join(names))
    except OSError as error:
        raise NotRun(f"uv did not start: {error.strerror}") from error
    if done.returncode:  # guard: outdated-index-failure-told
        raise NotRun(_last_line(done.stderr))
    newest = dict(re.findall(r"^([\w.-]+)==(\S+)", done.stdout, re.MULTILINE))
    if missing := [name for name in names if name not in newest]:  # guard: outdated-omission-told
        raise NotRun(f"uv did not say what is the newest of {', '.join(missing)}")
    return [
        f"{name} {version} → {newest[name]} ({lock})"
        for lock, packages in locked.items()
        for name, version in sorted(packages.items())
        if newest[name] != version
    ]


def vulnerable(run: RunCommand) -> tuple[list[str], str]:
    """The known vulnerabilities of the layers' packages, by pip-audit, and why some were not compared, if so.

    It succeeds, too, if its service knew none of the packages. Raises NotRun.
    """
    files = [argument for lock in LOCKS for argument in ("--requirement", str(lock))]
    options = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    try:
        done = run([str(_AUDIT), *files, *options], "")
    except OSError as error:
        raise NotRun(f"pip-audit did not start: {error.strerror}") from error
    try:
        packages = {package["name"]: package for package in json.loads(done.stdout)["dependencies"]}
    except (ValueError, KeyError) as error:
        raise NotRun(_last_line(done.stderr)) from error
    asked = {name: package["vulns"] for name, package in packages.items() if "vulns" in package}
    expected = sorted({name for lock in LOCKS for name in pinned(lock)})
    unasked = [name for name in expected if name not in asked]
    reason = packages.get(unasked[0], {}).get("skip_reason", "it was left out") if unasked else ""
    if unasked == expected:  # guard: outdated-empty-audit-told
        raise NotRun(reason)
    vulnerabilities = [
        f"{name} {packages[name]['version']}: {vulnerability['id']}"
        for name, vulns in asked.items()
        for vulnerability in vulns
    ]
    return vulnerabilities, f"not run for {', '.join(unasked)}: {reason}" if unasked else ""


def report(project: Mapping[str, Any], listing: str, today: date, run: RunCommand) -> OutdatedReport:
    """All sections."""
    made = OutdatedReport()
    entries = listed(listing)
    made.add(f"{LIST} differs from what is installed", differences(installed(), entries), unfit=True)
    locked = {
        str(lock): {name: version for name, version in pinned(lock).items() if lock in LOCKS or name in direct}
        for lock, direct in direct_dependencies(project).items()
    }
    try:
        made.add("Newer on the package index", newer(locked, run))
    except NotRun as why:
        made.add("Newer on the package index", [f"not asked: {why}"])
    try:
        vulnerabilities, left_out = vulnerable(run)
        made.add("Known vulnerabilities, by pip-audit", vulnerabilities, unfit=True)
        made.add("Left out by pip-audit", [left_out] if left_out else [])
    except NotRun as why:
        made.add("Known vulnerabilities, by pip-audit", [f"not run: {why}"])
    made.add("Not compared with advisories for 45 days", not_compared(entries, today), unfit=True)
    return made


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1].strip()


def _run(command: Sequence[str], said: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=said, capture_output=True, text=True, check=False)


def main() -> int:
    """Prints the report; fails for a release that may not have it."""
    parser = argparse.ArgumentParser(prog="checks.outdated", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--release", action="store_true", help="fail if a release may not have what is found")
    arguments = parser.parse_args()
    project = tomllib.loads(Path("pyproject.toml").read_text())
    made = report(project, LIST.read_text(), datetime.now(UTC).date(), _run)
    for title, lines in made.sections:
        print(f"{title}: {'none' if not lines else ''}".rstrip())
        for line in lines:
            print(f"  {line}")
    if made.is_unfit:
        print("A release may not have this: CONTRIBUTING.md says what to do.")
    return int(made.is_unfit and arguments.release)


if __name__ == "__main__":
    sys.exit(main())
