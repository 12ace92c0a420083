"""Takes each guard of tests/guards.toml out of a copy of the repository and expects the tests that hold it to turn red.

A guard is a few lines without which the product looks right until something goes wrong: a fence, a condition, a
read-back. A test that stays green without them holds nothing. The product has no switch to turn a guard off: the text
itself is replaced, in a copy.

    python -m proof.guards [--jobs 2] [NAME …]    (all guards by default; NAME is a part of a guard's name)

Writes build/reports/guards.json. Exits with 1 where a guard was not caught, its text is not in its file exactly once,
or one of its tests is red already.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

from checks.report import Goal, write_report

ROOT = Path(__file__).parents[1]
GUARDS = Path("tests/guards.toml")

_TIMEOUT_SECONDS = 600
_VENVS = Path(".darkroom/venvs")
# pytest's exit statuses: https://docs.pytest.org/en/stable/reference/exit-codes.html
_ALL_PASSED, _SOME_FAILED = 0, 1

CAUGHT = "caught"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One guard: the text in `file` that is it, what stands there without it, and the tests that must turn red then."""

    name: str
    file: Path
    text: str
    replacement: str
    tests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How pytest ended: its exit status, the tests that failed by their node ids, and the end of what it printed."""

    exit_status: int
    failed: frozenset[str]
    said: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came of a guard's removal: `caught`, or what is wrong and what to do about it."""

    guard: Guard
    outcome: str
    seconds: float = 0.0
    said: str = ""

    @property
    def is_caught(self) -> bool:
        return self.outcome == CAUGHT


def read_guards(root: Path = ROOT) -> list[Guard]:
    """The guards of tests/guards.toml, in its order."""
    entries = tomllib.loads((root / GUARDS).read_text())["guard"]
    return [
        Guard(
            name=entry["name"],
            file=Path(entry["file"]),
            text=entry["text"],
            replacement=entry["replacement"],
            tests=tuple(entry["tests"]),
        )
        for entry in entries
    ]


def problem_of(guard: Guard, root: Path = ROOT) -> str | None:
    """Why a guard cannot be tried, by the files alone; None where it can."""
    path = root / guard.file
    if not path.is_file():
        return f"there is no {guard.file}: bring {GUARDS} up to date"
    code = path.read_text()
    found = code.count(guard.text)
    if not guard.text or found != 1:
        return f"its text is {found} times in {guard.file}, not once: bring {GUARDS} up to date"
    if guard.text == guard.replacement:
        return "its replacement is its text"
    if path.suffix == ".py":
        try:
            ast.parse(_without(guard, code))
        except SyntaxError as error:
            return f"{guard.file} is no Python without it: {error}"
    if not guard.tests:
        return "it names no test"
    unknown = [test for test in guard.tests if not _exists(test, root)]
    return f"there is no {', '.join(unknown)}" if unknown else None


def _without(guard: Guard, code: str) -> str:
    return code.replace(guard.text, guard.replacement)


def _exists(test: str, root: Path) -> bool:
    """Whether a node id's file has its function, or method of its class; parameters are pytest's to find."""
    file, *names = test.partition("[")[0].split("::")
    if not names or not (root / file).is_file():
        return False
    body: Sequence[ast.stmt] = _parsed(root / file).body
    for name in names:
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        # A state machine's test case is assigned, not defined: `TestCase = Machine.TestCase`.
        assigned = any(
            isinstance(target, ast.Name) and target.id == name
            for node in body
            if isinstance(node, ast.Assign)
            for target in node.targets
        )
        if not found:
            return assigned
        body = found[0].body
    return True


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def copy_of(root: Path, target: Path) -> Path:
    """The files of the repository as they lie there, changed and new ones too and ignored ones not, in `target`; the
    environments are linked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, destination = root / name, target / name
        if not source.is_symlink() and not source.is_file():
            continue  # removed, and not yet committed
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, destination, follow_symlinks=False)
    if (root / _VENVS).is_dir():
        (target / _VENVS).parent.mkdir(parents=True, exist_ok=True)
        (target / _VENVS).symlink_to(root / _VENVS)
    return target


def run_tests(copy: Path, tests: Iterable[str], *options: str) -> Run:
    """Runs the named tests in the copy, on the code of the copy."""
    report = copy / "build" / "removal.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", f"--junit-xml={report}", *options, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Run(exit_status=-1, failed=frozenset(), said=f"not over after {_TIMEOUT_SECONDS} seconds")
    said = (done.stdout + done.stderr)[-3000:]
    return Run(exit_status=done.returncode, failed=frozenset(_failed(report)), said=said)


def _environment() -> dict[str, str]:
    # Relative paths, so that nothing of the repository itself is imported. Bytecode is told from its source by second
    # and size, which two removals may share: none is written.
    return dict(os.environ) | {"PYTHONPATH": "tools:layers/core:.", "PYTHONDONTWRITEBYTECODE": "1"}


def _failed(report: Path) -> Iterator[str]:
    """The node ids of the tests that failed, by pytest's own report; an error in a fixture is no failure."""
    if not report.exists():
        return
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - the file is our own
        if case.find("failure") is not None:
            yield f"{case.get('classname')}::{case.get('name')}"


def turned_red(test: str, failed: Iterable[str]) -> bool:
    """Whether a test, by its node id, is among those that failed; any of its parameters will do where none is named."""
    file, *names = test.split("::")
    *classes, name = names
    case = "::".join([".".join([*Path(file).with_suffix("").parts, *classes]), name])
    return any(one == case or one.startswith(f"{case}[") for one in failed)


def remove(guard: Guard, copy: Path) -> Verdict:
    """Takes the guard out of the copy, runs its tests there and puts the guard back."""
    started = time.monotonic()
    path = copy / guard.file
    code = path.read_text()
    path.write_text(_without(guard, code))
    try:
        run = run_tests(copy, guard.tests)
    finally:
        path.write_text(code)
    return Verdict(guard=guard, outcome=outcome_of(guard, run), seconds=time.monotonic() - started, said=run.said)


def outcome_of(guard: Guard, run: Run) -> str:
    """`caught` where every one of the guard's tests turned red by failing, which is more than not being collected."""
    if run.exit_status == _ALL_PASSED:
        return "NOT CAUGHT: its tests are green without it"
    if run.exit_status != _SOME_FAILED:
        return f"its tests did not run without it (pytest's exit status is {run.exit_status})"
    green = [test for test in guard.tests if not turned_red(test, run.failed)]
    return f"NOT CAUGHT by {', '.join(green)}" if green else CAUGHT


def try_all(guards: Sequence[Guard], *, root: Path = ROOT, jobs: int = 2) -> Iterator[Verdict]:
    """The verdict on each guard, as they come in: first those that cannot be tried, then the others by removal."""
    problems = {guard: problem for guard in guards if (problem := problem_of(guard, root)) is not None}
    yield from (Verdict(guard=guard, outcome=problem) for guard, problem in problems.items())
    ready = [guard for guard in guards if guard not in problems]
    if not ready:
        return
    with _copies(root, jobs) as copies:
        first = copies.get()
        tests = sorted({test for guard in ready for test in guard.tests})
        print(f"{len(tests)} tests with all guards in place …", flush=True)
        before = run_tests(first, tests, f"--numprocesses={jobs}")
        copies.put(first)
        if before.exit_status not in (_ALL_PASSED, _SOME_FAILED):
            print(before.said)
        red = {guard: _red_before(guard, before) for guard in ready}
        yield from (Verdict(guard=guard, outcome=why) for guard, why in red.items() if why)

        def removed(guard: Guard) -> Verdict:
            copy = copies.get()
            try:
                return remove(guard, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed(pool.submit(removed, guard) for guard, why in red.items() if not why):
                yield done.result()


def _red_before(guard: Guard, before: Run) -> str:
    if before.exit_status == _ALL_PASSED:
        return ""
    if before.exit_status != _SOME_FAILED:
        return f"the tests do not run (pytest's exit status is {before.exit_status}; what it said stands above)"
    red = [test for test in guard.tests if turned_red(test, before.failed)]
    return f"red with the guard in place: {', '.join(red)}" if red else ""


@contextmanager
def _copies(root: Path, count: int) -> Iterator[SimpleQueue[Path]]:
    with tempfile.TemporaryDirectory(prefix="darkroom-guards-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            copies.put(copy_of(root, Path(folder) / str(number)))
        yield copies


def _chosen(guards: Sequence[Guard], names: Sequence[str]) -> list[Guard]:
    unknown = [name for name in names if not any(name in guard.name for guard in guards)]
    if unknown:
        raise SystemExit(f"no guard's name has {', '.join(unknown)} in it; see {GUARDS}")
    return [guard for guard in guards if not names or any(name in guard.name for name in names)]


def _row(verdict: Verdict) -> Mapping[str, object]:
    guard = verdict.guard
    return {
        "guard": guard.name,
        "file": str(guard.file),
        "tests": list(guard.tests),
        "outcome": verdict.outcome,
        "seconds": round(verdict.seconds, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the guards, prints a table and writes the report; 0 only where every one was caught."""
    parser = argparse.ArgumentParser(prog="python -m proof.guards", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a guard's name (default: all guards)")
    parser.add_argument("--jobs", type=int, default=2, help="copies that are tried at once (default: 2)")
    options = parser.parse_args(arguments)
    guards = _chosen(read_guards(), options.names)
    verdicts: dict[str, Verdict] = {}
    for verdict in try_all(guards, jobs=options.jobs):
        verdicts[verdict.guard.name] = verdict
        print(f"{len(verdicts):>3}/{len(guards)} {verdict.guard.name}: {verdict.outcome}", flush=True)
        if not verdict.is_caught and verdict.said:
            print("    " + verdict.said.strip().replace("\n", "\n    "), flush=True)
    ordered = [verdicts[guard.name] for guard in guards]
    print(f"\n{'guard':<58} {'seconds':>7}  outcome")
    for verdict in ordered:
        print(f"{verdict.guard.name:<58} {verdict.seconds:>7.1f}  {verdict.outcome}")
    caught = sum(verdict.is_caught for verdict in ordered)
    write_report(
        "guards",
        seed=None,
        rows=[_row(verdict) for verdict in ordered],
        goals=[Goal(name="guards whose removal is caught", value=caught, limit=len(guards), at_least=True)],
    )
    return 0 if caught == len(guards) else 1


if __name__ == "__main__":
    sys.exit(main())
