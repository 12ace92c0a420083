"""Each guard can be removed, and has a test that must fail without it."""

import subprocess
from pathlib import Path

import pytest

from repository.report import ROOT
from tests.guards.__main__ import Guard, mutant, problem_of, read_guards
from tests.guards.mutants import NoMutantError, Removal, Way, guarded_lines, without_guard

CODE = Path("code.py")


def test_every_guard_can_be_removed_and_has_a_test_and_no_name_goes_with_it(tmp_path: Path) -> None:
    problems = {}
    for guard in read_guards():
        try:
            (tmp_path / guard.name).with_suffix(guard.file.suffix).write_text(mutant(guard))
        except (NoMutantError, SyntaxError) as error:
            problems[guard.name] = str(error)
        if not guard.tests:
            problems[guard.name] = "no test names it"
    assert problems == {}
    ruff = ROOT / ".darkroom/venvs/dev/bin/ruff"
    options = ["check", "--isolated", "--select", "F82", "--output-format", "concise"]
    said = subprocess.run([ruff, *options, tmp_path], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


def removed(code: str, way: Way | None = None, part: str = "", by: str = "") -> str:
    ((_, line),) = guarded_lines(code)
    return without_guard(CODE, code, line, Removal(way=way, part=part, by=by))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "layers").mkdir()
    (tmp_path / "tests" / "guards").mkdir(parents=True)
    (tmp_path / "layers" / "code.py").write_text("if a:  # guard: one, two\n    b()\n")
    marks = '@pytest.mark.guards("one")\n@pytest.mark.guards("two", case="third")\ndef test_it(): ...\n'
    (tmp_path / "tests" / "test_code.py").write_text(marks)
    (tmp_path / "tests" / "guards" / "guards.toml").write_text('[always]\ntwo = "if"\n')
    return tmp_path


def test_a_guard_is_read_from_its_line_its_tests_and_the_data(project: Path) -> None:
    guard = Guard(
        name="one",
        file=Path("layers/code.py"),
        line=1,
        removal=Removal(),
        tests=("tests/test_code.py::test_it",),
    )
    other = Guard(
        name="two",
        file=guard.file,
        line=1,
        removal=Removal(way=Way.ALWAYS, part="if"),
        tests=("tests/test_code.py::test_it[third]",),
    )
    assert read_guards(project) == [guard, other]


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("layers/other.py", "go()  # guard: one\n", "one guards a line of layers/code.py and one of layers/other.py"),
        ("tests/test_other.py", '@pytest.mark.guards("three")\ndef test_it(): ...\n', "three, which no line"),
        ("tests/guards/guards.toml", '[always]\nthree = "if"\n', "three, which no line"),
    ],
)
def test_a_name_stands_once_in_the_code_and_nowhere_else_for_nothing(
    project: Path, file: str, content: str, complaint: str
) -> None:
    (project / file).write_text(content)
    with pytest.raises(ValueError, match=complaint):
        read_guards(project)


def test_a_guard_that_no_test_names_is_told(project: Path) -> None:
    (project / "tests" / "test_code.py").write_text("")
    assert [problem_of(guard, project) for guard in read_guards(project)] == ["no test names it"] * 2
