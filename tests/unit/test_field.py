"""What the pages beside the field say of Darkroom is so: commands parse or run, tests exist, calculations are right."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

from darkroom.domain.kernel.retry import FETCHES, RetryPolicy
from darkroom.domain.webhooks.delivery import RETRY_SECONDS
from darkroom_cli.drill.drills import DRILLS
from darkroom_cli.main import whole
from repository.report import ROOT
from tests.guards import promises
from tests.support.documents import DOCS, code

FIELD = DOCS / "field"
PAGES = sorted(FIELD.glob("*.md"))
CAPACITY = "./darkroom capacity "
built = cache(get_command)
OPERATORS: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def name_of(page: Path) -> str:
    return page.stem


def commands() -> list[str]:
    return sorted({text for page in PAGES for text in code(page) if text.startswith("./darkroom ")})


@cache
def printed(command: str) -> str:
    with pytest.MonkeyPatch.context() as patched:  # the commands are built from their signatures once, not each time
        patched.setattr(testing, "_get_command", built)
        return CliRunner().invoke(whole(), shlex.split(command)[1:], env={"COLUMNS": "200"}).output


def calculated(node: ast.AST) -> float:
    match node:
        case ast.BinOp(left, sign, right):
            return OPERATORS[type(sign)](calculated(left), calculated(right))
        case ast.Constant(int() | float() as value):
            return value
    raise ValueError(ast.dump(node))


def rows(page: str) -> list[list[str]]:
    """The cells of each row of its tables, without their heads."""
    lines = re.findall(r"^\|(.+)\|$", (FIELD / page).read_text(), re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines if not line.startswith("---")]


def test_the_pages_are_short() -> None:
    assert len(PAGES) == 7
    assert sum(len(page.read_bytes()) for page in PAGES) <= 45_000


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_calculation_gives_what_it_says(page: Path) -> None:
    for text in code(page):
        if formula := re.fullmatch(r"([\d.\s*/+()-]+) = ([\d.]+)", text):
            decimals = len(formula[2].partition(".")[2])
            result = calculated(ast.parse(formula[1], mode="eval").body)
            assert f"{result:.{decimals}f}" == formula[2], text


@pytest.mark.parametrize("command", commands())
def test_the_command_line_takes_every_command(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"\S+\.(?:csv|jpg)", command):
        (tmp_path / name).touch()
    known: Any = built(whole())
    words = shlex.split(command.replace("webhooks deliveries ID", f"webhooks deliveries we_{'0' * 16}"))[1:]
    while words and hasattr(known, "commands"):
        known = known.get_command(None, words.pop(0))
        assert known is not None
    if not hasattr(known, "commands"):  # not a group, such as `backfill`, that a text speaks of
        known.make_context(known.name, words)


def test_growth_says_what_capacity_prints() -> None:
    seen = 0
    for load, command, *figures in (row for row in rows("growth.md") if len(row) == 6 and CAPACITY in row[1]):
        output = printed(command.strip("`"))
        workers, at_once, first, dollars = figures
        assert re.search(rf"^workers, 80% of them busy +{workers.replace(', ', ' +')} ", output, re.MULTILINE), load
        assert re.search(rf"^functions at once +{at_once},", output, re.MULTILINE), load
        limit = re.search(r"^The first limit .+, at ([\d.]+) uploads per second", output, re.MULTILINE)
        assert limit and limit[1] == first.split(", ")[0], load
        thousand = re.search(r"^ +a thousand images +\$([\d.]+)$", output, re.MULTILINE)
        # What others add to an idle stack or to an image changes the last digit.
        assert thousand and float(thousand[1]) == pytest.approx(float(dollars), rel=0.03), load
        seen += 1
    assert seen == 7


def test_growth_says_how_many_workers_a_burst_needs_and_what_is_refused() -> None:
    page = (FIELD / "growth.md").read_text()
    bursts = re.findall(rf"(\d+) workers.*\| `({CAPACITY}--messages [^`]+)` \|", page)
    assert len(bursts) == 2
    for workers, command in bursts:
        assert f" {workers} workers\n" in printed(command)
    (refused,) = re.findall(rf"^`({CAPACITY}[^`]+)` refuses", page, re.MULTILINE)
    assert "or use two stacks" in printed(refused)
    assert re.search(r"^high-water mark, images +240 ", printed(f"{CAPACITY}--rate 10 --seconds 0.5"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_file_guard_sweep_and_drill_that_it_names_exists(page: Path) -> None:
    text = page.read_text()
    for file, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        assert not test or f"\ndef {test}(" in (ROOT / file).read_text(), f"{file}::{test}"
    for file in re.findall(r"`((?:tests|cli|layers)/[\w/]+\.py)", text):
        assert (ROOT / file).exists(), file
    listed = re.findall(r"\b(?:guards?|sweeps?)\s((?:`[a-z-]+`(?:,\s)?)+)", text)
    names = {name for names in listed for name in re.findall(r"`([a-z-]+)`", names)}
    assert names <= promises.tests_of_guards().keys() | promises.sweeps().keys()
    assert set(re.findall(r"drill run ([a-z-]+)`", text)) <= DRILLS.keys()


def test_every_system_and_company_has_a_source_or_is_said_to_have_none() -> None:
    named = (FIELD / "README.md").read_text().partition("\n## Named elsewhere\n")[2]
    listed = (FIELD / "features.md").read_text().partition("\n## What each has\n")[2].partition("\n## ")[0]
    found = [line for line in (named + listed).splitlines() if line.startswith("| ") and " in a sentence" not in line]
    heads = ("| system | has", "| company |")
    unsourced = [line for line in found if not line.startswith(heads) and "](http" not in line]
    assert len(found) > 35
    assert [line for line in unsourced if "no primary source" not in line] == []


def test_the_curves_are_those_of_the_code() -> None:
    page = (FIELD / "corrections.md").read_text()
    for policy in (RetryPolicy(), FETCHES):
        waits = [policy.delay_seconds(attempt, 0.0) for attempt in range(1, 5)]
        assert f"`{' + '.join(map(str, waits))} = {sum(waits)}`" in page
    assert f" = {sum(RETRY_SECONDS) / 3600:.1f}` h" in page
    assert f"{sum(n**4 for n in range(25))} + 15 * {sum(range(1, 26))} = " in page


def test_the_limits_of_sqs_and_lambda_are_those_of_botocores_models() -> None:
    session = botocore.session.get_session()
    sqs: Any = session.get_service_model("sqs")
    attributes = sqs.shape_for("CreateQueueRequest").members["Attributes"].documentation
    for said in ("1,209,600 seconds (14 days)", "345,600 (4 days)", "900 seconds (15 minutes)", "43,200 (12 hours)"):
        assert said in attributes
    assert "Set <code>FifoThroughputLimit</code> to <code>perMessageGroupId</code>" in attributes
    in_flight = sqs.operation_model("ChangeMessageVisibility").documentation.partition("For FIFO queues")[2]
    assert "maximum of 120,000 in flight messages" in in_flight
    concurrency: Any = session.get_service_model("lambda").shape_for("MaximumConcurrency").metadata
    assert (concurrency["min"], concurrency["max"]) == (2, 1000)
