"""Removes each guard from a copy of the repository and expects its tests to turn red.

A guard is a line of code without which the product looks right until something goes wrong: a fence, a condition, a
read-back. A test that stays green without it proves nothing. The product has no switch to turn a guard off: the code
itself is changed, in a copy, as `tests.guards.mutants` says. The line names its guard (`# guard: lease-fence`), and
each test that must fail without it names it too: `@pytest.mark.guards("lease-fence")`, or with `case="…"` if one of its
cases must.

    python -m tests.guards [--jobs 2] [--every N] [NAME …]    (NAME is a part of a guard's name)

Writes build/reports/guards.json. Exits with 1 if a guard was not caught or cannot be removed, or if one of its tests is
already red.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import batched
from pathlib import Path
from queue import SimpleQueue
from typing import IO, cast

from repository.report import ROOT, Goal, write_report
from tests.guards.fork_server import turned_red
from tests.guards.mutants import NoMutantError, Removal, Way, guarded_lines, without_guard

GUARDS = Path("tests/guards/guards.toml")
_CODE = ("functions", "layers", "cli", "scripts", "local_aws", "statemachines", "extensions", "template.yaml")

_FORK_SERVER = Path(__file__).with_name("fork_server.py")
_VENVS = Path(".darkroom/venvs")
# pytest's exit statuses: https://docs.pytest.org/en/stable/reference/exit-codes.html
_ALL_PASSED, _SOME_FAILED = 0, 1
_NO_ANSWER = -1
_HOUR = 3_600_000_000_000
_SHARE = 60
"""Of how many guards the tests run together with all guards in place: neighbours, so that a module is set up once."""

CAUGHT = "caught"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One guard: its line in `file`, how it is removed, and the tests that must then turn red, by their node ids."""

    name: str
    file: Path
    line: int
    removal: Removal
    tests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How pytest ended: its exit status, the node ids of the failed tests, and the end of its output."""

    exit_status: int
    failed: frozenset[str]
    said: str


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A file that has changed since the tests were imported, and what it said then."""

    file: Path
    before: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of a guard's removal: `caught`, or what is wrong and what to do about it."""

    guard: Guard
    outcome: str
    seconds: float = 0.0
    said: str = ""
    red: frozenset[str] = frozenset()
    """The tests that turned red, and have not yet been run with all guards in place."""
    from_scratch: bool = False
    """Whether they turned red in a process that had imported nothing of ours before."""

    @property
    def is_caught(self) -> bool:
        return self.outcome == CAUGHT


def read_guards(root: Path = ROOT) -> list[Guard]:
    """The guards in the code, file by file. Raises ValueError if a name stands twice, or for nothing."""
    lines: dict[str, tuple[Path, int]] = {}
    for file in _files(root, _CODE, ".py", ".yaml", ".js"):
        for name, line in guarded_lines(file.read_text()):
            if name in lines:
                raise ValueError(f"{name} guards a line of {lines[name][0]} and one of {file.relative_to(root)}")
            lines[name] = file.relative_to(root), line
    tests: dict[str, list[str]] = {name: [] for name in lines}
    for file in _files(root, ["tests", "local_aws/tests"], ".py"):
        for test, names in _marked(file, str(file.relative_to(root))):
            for name in names:
                if name not in tests:
                    raise ValueError(f"{test} fails without {name}, which no line of code has")
                tests[name].append(test)
    removals = _removals(root)
    if unknown := removals.keys() - lines.keys():
        raise ValueError(f"{GUARDS} says how to remove {', '.join(sorted(unknown))}, which no line of code has")
    return [
        Guard(name=name, file=file, line=line, removal=removals.get(name, Removal()), tests=tuple(tests[name]))
        for name, (file, line) in lines.items()
    ]


def _files(root: Path, places: Iterable[str], *suffixes: str) -> Iterator[Path]:
    for place in places:
        files = [root / place] if (root / place).is_file() else sorted((root / place).rglob("*"))
        yield from (file for file in files if file.suffix in suffixes)


def _removals(root: Path) -> dict[str, Removal]:
    removals: dict[str, Removal] = {}
    for way, guards in tomllib.loads((root / GUARDS).read_text()).items():
        for name, value in guards.items():
            part, by = value if way == Way.REPLACE else (value, "")
            removals[name] = Removal(way=Way(way), part=part, by=by)
    return removals


def _marked(file: Path, test: str) -> Iterator[tuple[str, list[str]]]:
    """The tests of a file that name guards: the node id of each, and the names."""
    code = file.read_text()
    if "mark.guards(" not in code:
        return
    for node in ast.parse(code).body:
        for member in node.body if isinstance(node, ast.ClassDef) else [node]:
            if not isinstance(member, ast.FunctionDef):
                continue
            node_id = "::".join([test, *([node.name] if isinstance(node, ast.ClassDef) else []), member.name])
            for mark in member.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.guards":
                    case = "".join(
                        f"[{ast.literal_eval(keyword.value)}]" for keyword in mark.keywords if keyword.arg == "case"
                    )
                    yield node_id + case, [ast.literal_eval(name) for name in mark.args]


def problem_of(guard: Guard, root: Path = ROOT) -> str | None:
    """Why a guard cannot be tried, judging by the files alone; None if it can."""
    try:
        mutant(guard, root)
    except NoMutantError as error:
        return f"{guard.file}, line {guard.line}: {error}"
    except SyntaxError as error:
        return f"{guard.file} is no Python without it: {error}"
    return None if guard.tests else "no test names it"


@cache
def mutant(guard: Guard, root: Path = ROOT) -> str:
    """The guard's file without it. Raises NoMutantError and SyntaxError."""
    return without_guard(guard.file, (root / guard.file).read_text(), guard.line, guard.removal)


def copy_of(root: Path, target: Path) -> Path:
    """Copies the repository's files to `target`, with uncommitted changes and new files but without ignored ones; the
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
            continue  # deleted, and not yet committed
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, destination, follow_symlinks=False)
    if (root / _VENVS).is_dir():
        (target / _VENVS).parent.mkdir(parents=True, exist_ok=True)
        (target / _VENVS).symlink_to(root / _VENVS)
    return target


class Copy:
    """A copy of the repository, with a process that has imported its tests: each run is forked from that one, because
    importing them would take most of the time of a removal (`tests.guards.fork_server`)."""

    def __init__(self, root: Path, folder: Path, tests: Sequence[str]) -> None:
        self.folder = copy_of(root, folder)
        self._root = root
        self._said = folder / "build" / "said.txt"
        self._said.parent.mkdir(parents=True, exist_ok=True)
        # Processes of pytest that end at the same time disturb each other in the folder that they share by default.
        # Ours is beside the copy: tools that look for their settings in the folders above must not find the copy's.
        with self._said.open("wb") as said:
            self._server = subprocess.Popen(
                [sys.executable, "-P", _FORK_SERVER, f"--basetemp={folder}-t"],
                cwd=folder,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self._write(tests)

    def _write(self, value: object) -> None:
        requests = cast(IO[str], self._server.stdin)
        requests.write(json.dumps(value) + "\n")
        requests.flush()

    def close(self) -> None:
        """Ends the process that forks."""
        self._server.communicate()

    def run_tests(self, tests: Sequence[str], *, changed: Changed | None = None, from_scratch: bool = False) -> Run:
        """Runs the named tests on the copy's code, of which one file may have changed since they were imported."""
        before = self._said.stat().st_size
        file, text = (str(changed.file), changed.before) if changed else (None, None)
        self._write({"tests": tests, "file": file, "before": text, "from_scratch": from_scratch})
        answer = cast(IO[str], self._server.stdout).readline()
        status, failed = json.loads(answer) if answer else (_NO_ANSWER, [])
        said = self._said.read_bytes()[before:].decode(errors="replace")
        return Run(exit_status=status, failed=frozenset(failed), said=said[-3000:])

    def remove_each(self, guards: Sequence[Guard]) -> list[Verdict]:
        """Removes one guard after another. What turned red must be green with all guards in place, in a process of the
        same kind: that is run last, because only then is it known which of a test's cases show it."""
        verdicts = [self._remove(guard) for guard in guards]
        for from_scratch in (False, True):
            turned = [verdict for verdict in verdicts if verdict.red and verdict.from_scratch is from_scratch]
            if not turned:
                continue
            red = sorted({test for verdict in turned for test in verdict.red})
            before = self.run_tests(red, from_scratch=from_scratch)
            for verdict in turned:
                if why := _red_before(verdict, before):
                    verdicts[verdicts.index(verdict)] = replace(verdict, outcome=why, said=before.said)
        return verdicts

    def _remove(self, guard: Guard) -> Verdict:
        """Removes the guard from the copy, runs its tests there and puts the guard back."""
        started = time.monotonic()
        path = self.folder / guard.file
        code, when = path.read_text(), path.stat().st_mtime_ns
        changed = Changed(file=guard.file, before=code)

        def run_without(*, from_scratch: bool) -> Run:
            path.write_text(mutant(guard, self._root))
            os.utime(path, ns=(when, when - _HOUR))  # so that bytecode of the file with its guards is never used
            try:
                return self.run_tests(guard.tests, changed=changed, from_scratch=from_scratch)
            finally:
                path.write_text(code)
                os.utime(path, ns=(when, when))

        def verdict_of(*, from_scratch: bool) -> Verdict:
            run = run_without(from_scratch=from_scratch)
            return Verdict(
                guard=guard,
                outcome=outcome_of(guard, run),
                seconds=time.monotonic() - started,
                said=run.said,
                red=run.failed,
                from_scratch=from_scratch,
            )

        verdict = verdict_of(from_scratch=False)
        # What the guard decides while modules are imported is missed above.
        return verdict if verdict.is_caught else verdict_of(from_scratch=True)


def _environment() -> dict[str, str]:
    # Relative paths, so that nothing is imported from the repository itself; and bytecode next to its source.
    ours = {"PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
    others = {name: value for name, value in os.environ.items() if name not in ours}
    return others | {"PYTHONPATH": "scripts:cli:layers/core:."}


def outcome_of(guard: Guard, run: Run) -> str:
    """`caught` if every one of the guard's tests turned red by failing, not merely by not being collected."""
    if run.exit_status == _ALL_PASSED:
        return "NOT CAUGHT: its tests are green without it"
    if run.exit_status != _SOME_FAILED:
        return f"its tests did not run without it (pytest's exit status is {run.exit_status})"
    green = [test for test in guard.tests if not turned_red(test, run.failed)]
    return f"NOT CAUGHT by {', '.join(green)}" if green else CAUGHT


def run_all(guards: Sequence[Guard], *, root: Path = ROOT, jobs: int = 2) -> Iterator[Verdict]:
    """The verdict on each guard, as they arrive: first the guards that cannot be tried, then the others by removal."""
    problems = {guard: problem for guard in guards if (problem := problem_of(guard, root)) is not None}
    yield from (Verdict(guard=guard, outcome=problem) for guard, problem in problems.items())
    ready = [guard for guard in guards if guard not in problems]
    if not ready:
        return
    tests = sorted({test for guard in ready for test in guard.tests})
    with _copies(root, jobs, tests) as copies, ThreadPoolExecutor(jobs) as pool:

        def with_a_copy[T, R](work: Callable[[Copy, T], R]) -> Callable[[T], R]:
            def borrowed(given: T) -> R:
                copy = copies.get()
                try:
                    return work(copy, given)
                finally:
                    copies.put(copy)

            return borrowed

        # Those with slower tests come first, so that no processor is idle at the end.
        in_order = sorted(ready, key=lambda guard: min(guard.tests))
        shares = [
            pool.submit(with_a_copy(Copy.remove_each), share) for share in batched(in_order, _SHARE, strict=False)
        ]
        for share in as_completed(shares):
            yield from share.result()


def _red_before(verdict: Verdict, before: Run) -> str:
    """What is wrong with what turned red while the guard is in place; an empty text if nothing is."""
    if before.exit_status == _ALL_PASSED:
        return ""
    if before.exit_status != _SOME_FAILED:
        return f"its tests do not run with it (pytest's exit status is {before.exit_status})"
    red = sorted(verdict.red & before.failed)
    return f"red with the guard in place: {', '.join(red)}" if red else ""


@contextmanager
def _copies(root: Path, count: int, tests: Sequence[str]) -> Iterator[SimpleQueue[Copy]]:
    with tempfile.TemporaryDirectory(prefix="darkroom-guards-") as folder, ExitStack() as stack:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(count):
            copy = Copy(root, Path(folder) / str(number), tests)
            stack.callback(copy.close)
            copies.put(copy)
        for _ in range(count):
            copy = copies.get()
            copy.run_tests([])  # is answered when its tests have been imported, with all guards in place
            copies.put(copy)
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


def write_junit(file: Path, verdicts: Sequence[Verdict]) -> None:
    """Writes the verdicts as pytest writes its results: a guard that is not caught is a failure."""
    failed = sum(not verdict.is_caught for verdict in verdicts)
    suite = ET.Element("testsuite", name="guards", tests=str(len(verdicts)), failures=str(failed))
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", name=verdict.guard.name, time=f"{verdict.seconds:.1f}")
        if not verdict.is_caught:
            ET.SubElement(case, "failure", message=verdict.outcome).text = verdict.said
    file.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(suite).write(file, encoding="unicode")


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the guards, prints a table and writes the report; returns 0 only if every one was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a guard's name (default: all guards)")
    parser.add_argument("--jobs", type=int, default=2, help="copies that are tried at once (default: 2)")
    parser.add_argument("--every", type=int, default=1, help="a sample: each Nth guard, from one that chance chooses")
    parser.add_argument("--junit-xml", type=Path, metavar="FILE", help="write the verdicts there too, as tests")
    options = parser.parse_args(arguments)
    guards = _chosen(read_guards(), options.names)
    guards = guards[random.SystemRandom().randrange(options.every) :: options.every]
    verdicts: dict[str, Verdict] = {}
    for verdict in run_all(guards, jobs=options.jobs):
        verdicts[verdict.guard.name] = verdict
        print(f"{len(verdicts):>3}/{len(guards)} {verdict.guard.name}: {verdict.outcome}", flush=True)
        if not verdict.is_caught and verdict.said:
            print("    " + verdict.said.strip().replace("\n", "\n    "), flush=True)
    ordered = [verdicts[guard.name] for guard in guards]
    print(f"\n{'guard':<58} {'seconds':>7}  outcome")
    for verdict in ordered:
        print(f"{verdict.guard.name:<58} {verdict.seconds:>7.1f}  {verdict.outcome}")
    caught = sum(verdict.is_caught for verdict in ordered)
    if options.junit_xml:
        write_junit(options.junit_xml, ordered)
    write_report(
        "guards",
        seed=None,
        rows=[_row(verdict) for verdict in ordered],
        goals=[Goal(name="guards whose removal is caught", value=caught, limit=len(guards), at_least=True)],
    )
    return 0 if caught == len(guards) else 1


if __name__ == "__main__":
    sys.exit(main())
