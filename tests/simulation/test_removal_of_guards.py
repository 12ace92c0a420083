"""The removal of guards in a small repository: which are caught, which are not, which cannot be tried."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proof.guards import CAUGHT, Guard, problem_of, read_guards, run_all, turned_red

CODE = """\
def half(number: int) -> int:
    if number % 2:
        raise ValueError(number)
    if number < 0:
        raise ValueError(number)
    return number // 2
"""
TESTS = """\
import pytest

from half import half


@pytest.mark.parametrize("number", [1, 2, 3])
def test_odd_numbers_have_none(number: int) -> None:
    if number % 2:
        with pytest.raises(ValueError):
            half(number)


def test_even_numbers_have_one() -> None:
    assert half(4) == 2


def test_that_was_red_before() -> None:
    assert half(4) == 3
"""
ODD = "    if number % 2:\n        raise ValueError(number)\n"
NEGATIVE = "    if number < 0:\n        raise ValueError(number)\n"


def guard(name: str, text: str, *tests: str, replacement: str = "") -> Guard:
    return Guard(
        name=name,
        file=Path("half.py"),
        text=text,
        replacement=replacement,
        tests=tuple(f"tests/test_half.py::{test}" for test in tests),
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "tests").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / "half.py").write_text(CODE)
    (root / "tests/test_half.py").write_text(TESTS)
    (root / "pyproject.toml").write_text('[tool.pytest]\naddopts = ["--import-mode=importlib"]\npythonpath = ["."]\n')
    return root


def test_a_guard_is_caught_where_its_tests_fail_without_it_and_only_then(repository: Path) -> None:
    guards = [
        guard("held", ODD, "test_odd_numbers_have_none"),
        guard("not held", NEGATIVE, "test_odd_numbers_have_none"),
        guard("not held by all", ODD, "test_odd_numbers_have_none", "test_even_numbers_have_one"),
        guard("red already", ODD, "test_that_was_red_before"),
        guard("breaks the module", "def half(", "test_even_numbers_have_one", replacement="def other("),
        guard("twice there", "        raise ValueError(number)\n", "test_odd_numbers_have_none"),
    ]
    outcomes = {verdict.guard.name: verdict.outcome for verdict in run_all(guards, root=repository, jobs=2)}
    assert outcomes.pop("breaks the module").startswith("its tests did not run without it")
    assert outcomes.pop("twice there").startswith("its text is 2 times in half.py")
    assert outcomes == {
        "held": CAUGHT,
        "not held": "NOT CAUGHT: its tests are green without it",
        "not held by all": "NOT CAUGHT by tests/test_half.py::test_even_numbers_have_one",
        "red already": "red with the guard in place: tests/test_half.py::test_that_was_red_before",
    }
    assert (repository / "half.py").read_text() == CODE, "only copies are changed"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (guard("gone", "    if number == 7:\n", "test_even_numbers_have_one"), "its text is 0 times"),
        (guard("no test", ODD), "it names no test"),
        (guard("no such test", ODD, "test_of_nothing"), "there is no tests/test_half.py::test_of_nothing"),
        (guard("same", ODD, "test_even_numbers_have_one", replacement=ODD), "its replacement is its text"),
        (guard("no Python", ODD, "test_even_numbers_have_one", replacement="    if:\n"), "half.py is no Python"),
    ],
    ids=lambda value: value.name if isinstance(value, Guard) else "",
)
def test_a_guard_that_cannot_be_tried_is_a_failure(changed: Guard, problem: str, repository: Path) -> None:
    assert (problem_of(changed, repository) or "").startswith(problem)


def test_a_test_that_only_begins_with_the_same_name_is_another() -> None:
    assert turned_red("tests/a/test_b.py::test_c", ["tests.a.test_b::test_c[1]"])
    assert turned_red("tests/a/test_b.py::test_c[1]", ["tests.a.test_b::test_c[1]"])
    assert not turned_red("tests/a/test_b.py::test_c[2]", ["tests.a.test_b::test_c[1]"])
    assert not turned_red("tests/a/test_b.py::test_c", ["tests.a.test_b::test_c_and_d", "tests.a.test_x::test_c"])


def test_the_guards_of_this_repository_can_be_read() -> None:
    assert read_guards()
