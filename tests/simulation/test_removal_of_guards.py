"""The removal of guards in a small repository: which are caught, which are not, which cannot be tried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from repository.report import ROOT
from tests.guards import fork_server
from tests.guards.__main__ import CAUGHT, problem_of, read_guards, run_all
from tests.guards.fork_server import turned_red

pytestmark = pytest.mark.promise("removed-guards")

CODE = """\
MOST = 8  # guard: constant

def half(number: int) -> int:  # guard: module
    if number % 2:  # guard: caught, half-caught, red
        raise ValueError(number)
    if number < 0:  # guard: not-caught
        raise ValueError(number)
    if number > MOST:
        raise ValueError(number)
    return number // 2  # guard: no-name, no-place

def doubled(number: int) -> int:
    return 2 * number  # guard: imported

FOUR = doubled(2)
"""
TESTS = """\
import pytest

from half import FOUR, half


@pytest.mark.guards("caught", "half-caught", "not-caught")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_odd_numbers_have_none(number: int) -> None:
    if number % 2:
        with pytest.raises(ValueError):
            half(number)


@pytest.mark.guards("half-caught", "module", "no-name", "no-place")
def test_even_numbers_have_one() -> None:
    assert half(4) == 2


@pytest.mark.guards("constant")
def test_large_numbers_have_none() -> None:
    with pytest.raises(ValueError):
        half(10)


@pytest.mark.guards("imported")
def test_two_doubled() -> None:
    assert FOUR == 4


@pytest.mark.guards("red")
def test_that_was_red_before() -> None:
    assert half(4) == 3
"""
DATA = """\
[replace]
module = ["half(", "other("]
no-name = ["number", "nothing"]
no-place = ["raise", "pass"]
constant = ["8", "80"]
imported = ["2 * number", "3 * number"]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "tests/guards").mkdir(parents=True)
    (root / "layers").mkdir()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / "layers/half.py").write_text(CODE)
    (root / "tests/test_half.py").write_text(TESTS)
    (root / "tests/guards/guards.toml").write_text(DATA)
    pytest_options = (
        '[tool.pytest]\naddopts = ["--import-mode=importlib"]\npythonpath = ["layers"]\nmarkers = ["guards"]\n'
    )
    (root / "pyproject.toml").write_text(pytest_options)
    return root


def test_a_guard_is_caught_where_its_tests_fail_without_it_and_only_then(repository: Path) -> None:
    guards = read_guards(repository)
    outcomes = {verdict.guard.name: verdict.outcome for verdict in run_all(guards, root=repository, jobs=2)}
    assert outcomes.pop("module").startswith("its tests did not run without it")
    assert outcomes.pop("no-place").startswith("layers/half.py, line 10: 'raise' begins 0 times")
    assert outcomes == {
        "caught": CAUGHT,
        "constant": CAUGHT,  # nothing but functions is exchanged in a process that has imported the code
        "imported": CAUGHT,  # what is decided while the code is imported has been decided there
        "not-caught": "NOT CAUGHT: its tests are green without it",
        "half-caught": "NOT CAUGHT by tests/test_half.py::test_even_numbers_have_one",
        "no-name": "NOT CAUGHT by tests/test_half.py::test_even_numbers_have_one",  # a NameError shows nothing
        "red": "red with the guard in place: tests/test_half.py::test_that_was_red_before",
    }
    assert (repository / "layers/half.py").read_text() == CODE, "only copies are changed"


CASES = """\
from pathlib import Path

import pytest

from half import half


def note(words):
    with Path("noted.txt").open("a") as noted:
        noted.write(words + "\\n")


@pytest.fixture(scope="module")
def prepared():
    yield
    note("cleaned up")


@pytest.mark.parametrize("number", [2, 4, 6, 8])
def test_half(prepared, number):
    note(str(number))
    assert half(number) != 2
"""


@pytest.mark.parametrize(
    ("is_changed", "noted"), [(True, ["2", "4", "cleaned up"]), (False, ["2", "4", "6", "8", "cleaned up"])]
)
def test_no_more_cases_run_once_each_named_test_is_red_and_what_they_share_is_cleaned_up(
    repository: Path, is_changed: bool, noted: list[str]
) -> None:
    test, half = "tests/test_half.py::test_half", repository / "layers/half.py"
    (repository / "tests/test_half.py").write_text(CASES)
    change = {"file": str(half), "before": CODE} if is_changed else {"file": None, "before": None}
    request = {"tests": [test], "from_scratch": False, **change}
    said = subprocess.run(
        [sys.executable, "-P", fork_server.__file__],
        cwd=repository,
        input=f"{json.dumps([test])}\n{json.dumps(request)}\n",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout) == [1, [f"{test}[4]"]]
    assert (repository / "noted.txt").read_text().split("\n")[:-1] == noted


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('no-name = ["number / 3", "1"]', "layers/half.py, line 10: 'number / 3' begins 0 times on its line"),
        ('no-name = ["return", "return return"]', "layers/half.py is no Python without it"),
    ],
)
def test_a_guard_that_cannot_be_removed_is_a_failure(data: str, problem: str, repository: Path) -> None:
    (repository / "tests/guards/guards.toml").write_text(f"[replace]\n{data}\n")
    problems = {guard.name: problem_of(guard, repository) or "" for guard in read_guards(repository)}
    assert problems["no-name"].startswith(problem)


def test_a_test_that_only_begins_with_the_same_name_is_another() -> None:
    assert turned_red("tests/a/test_b.py::test_c", ["tests/a/test_b.py::test_c[1]"])
    assert turned_red("tests/a/test_b.py::test_c[1]", ["tests/a/test_b.py::test_c[1]"])
    assert not turned_red("tests/a/test_b.py::test_c[2]", ["tests/a/test_b.py::test_c[1]"])
    assert not turned_red("tests/a/test_b.py::test_c", ["tests/a/test_b.py::test_c_and_d", "tests/a/test_x.py::test_c"])
