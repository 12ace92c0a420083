"""Mutants: hundreds of them always end well, they are the same everywhere, and a bad end would be noticed."""

import os
import signal
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest

from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import develop
from tests.fuzz.attack import (
    CRASH,
    Attack,
    Worker,
    attack_named,
    attacks,
    hostile_attack,
    is_mutant,
    mutant_attack,
    photograph_attack,
    photograph_mutant_attack,
)
from tests.fuzz.corpus import corpus, picture, saved
from tests.fuzz.handmade import icc
from tests.fuzz.hostile import DEVELOPED, hostile_cases
from tests.fuzz.mutants import mutant
from tests.fuzz.photographs import photographs
from tests.fuzz.verdict import OTHERWISE, problem_of
from tests.fuzz.worker import MEGABYTE, NO_CODE, NO_MEMORY, UNEXPECTED, WRONG, Result, what_is_wrong

pytestmark = pytest.mark.promise("hostile-files")

SEED = 20261121
FORMATS = {"jpeg", "png", "webp", "gif", "avif", "heic"}


@pytest.mark.parametrize("count", [300, pytest.param(1000, marks=pytest.mark.long)])
def test_every_mutant_is_developed_or_refused_with_a_code(count: int) -> None:
    results = list(attacks((mutant_attack(index, seed=SEED) for index in range(count)), jobs=1))
    assert len(results) == count
    problems = {result.name: (problem, result.detail) for result in results if (problem := problem_of(result))}
    assert problems == {}
    # If all mutants were refused at once, or all developed, they would test nothing.
    developed = {result.format for result in results if result.outcome == DEVELOPED}
    refused = {result.format for result in results if result.outcome != DEVELOPED}
    assert developed == refused == FORMATS


def test_mutants_of_whole_photographs_end_well_too() -> None:
    inputs = [photograph_attack(name) for name in photographs()]
    inputs += [photograph_mutant_attack(index, seed=SEED) for index in range(16)]
    results = list(attacks(inputs, jobs=1))
    assert {result.name: (problem, result.detail) for result in results if (problem := problem_of(result))} == {}
    assert {result.outcome for result in results if not is_mutant(result.name)} == {DEVELOPED}
    assert all(attack_named(attack.name, seed=SEED).make() == attack.make() for attack in inputs[-2:])


def test_an_undamaged_photograph_that_is_refused_is_a_problem() -> None:
    refused = Result(
        name="photograph-png-half", format="png", outcome="truncated", cpu_seconds=0, start_bytes=0, peak_bytes=0
    )
    assert problem_of(refused) == OTHERWISE
    assert problem_of(replace(refused, name="photograph-17")) is None


def test_a_mutant_is_the_same_in_another_process_and_order() -> None:
    program = f"import zlib; from tests.fuzz.mutants import mutant as m; print(zlib.crc32(m(9, seed={SEED}).body))"
    path = os.pathsep.join(["layers/core", "."])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "1"}
    elsewhere = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    mutant(10, seed=SEED)
    assert int(elsewhere.stdout) == zlib.crc32(mutant(9, seed=SEED).body)
    assert mutant(9, seed=SEED) != mutant(9, seed=SEED + 1)


# ── A bad end is seen ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_dies_is_named_with_its_input_and_replaced() -> None:
    with Worker(memory_limit=512 * MEGABYTE) as worker:

        def deadly() -> bytes:
            os.kill(worker.process_id, signal.SIGSEGV)
            return b""

        died = worker.attack(Attack(name="png-deadly", format="png", make=deadly))
        after = worker.attack(mutant_attack(1, seed=SEED))
    assert (died.name, died.format, died.outcome) == ("png-deadly", "png", CRASH)
    assert "SIGSEGV" in died.detail
    assert problem_of(died) == CRASH
    assert problem_of(after) is None


def test_an_input_that_takes_too_much_memory_is_named_and_the_next_one_is_not() -> None:
    # Nothing polls while it works: only the high-water mark shows it.
    with Worker(memory_limit=512 * MEGABYTE, poll_seconds=3600) as worker:
        worker.attack(mutant_attack(1, seed=SEED))
        worker.memory_limit = worker.baseline_bytes + 60 * MEGABYTE
        hungry = worker.attack(hostile_attack(hostile_cases()["gif-5000x5000"]))
        after = worker.attack(mutant_attack(1, seed=SEED))
    assert hungry.outcome == problem_of(hungry) == NO_MEMORY
    assert after.outcome != NO_MEMORY


def test_a_worker_over_its_memory_is_killed_while_it_works() -> None:
    with Worker(memory_limit=MEGABYTE) as worker:
        killed = worker.attack(hostile_attack(hostile_cases()["jpeg-52mp"]))
    assert (killed.outcome, killed.detail) == (NO_MEMORY, "killed: over the limit of memory")


def test_a_worker_that_does_not_answer_is_killed_and_named() -> None:
    with Worker(memory_limit=512 * MEGABYTE, patience_seconds=0.1) as worker:

        def silencing() -> bytes:
            os.kill(worker.process_id, signal.SIGSTOP)
            return b""

        silent = worker.attack(Attack(name="gif-silencing", format="gif", make=silencing))
    assert (silent.outcome, silent.detail) == (CRASH, "killed: no answer in 0.1 s")


@pytest.mark.parametrize("outcome", [CRASH, UNEXPECTED, NO_MEMORY, NO_CODE, WRONG])
def test_every_bad_end_is_a_problem(outcome: str) -> None:
    assert problem_of(result(outcome)) == outcome


def test_a_hostile_file_that_ends_otherwise_than_it_should_is_a_problem() -> None:
    bomb = replace(result(DEVELOPED), name="jpeg-claims-30000x30000")
    assert problem_of(bomb) == OTHERWISE
    assert problem_of(replace(bomb, outcome="too_many_pixels")) is None
    assert problem_of(result("too_many_pixels")) is None


def test_an_output_that_is_not_as_declared_is_a_problem() -> None:
    recipe = Recipe(variants=(VariantSpec(name="one", width=20, height=20, format="png"),))
    developed = develop(corpus()["jpeg-metadata"], recipe)
    (good,) = developed.variants
    assert what_is_wrong(developed, recipe) == ""
    leaking = saved(picture(good.width, good.height), "PNG", icc_profile=icc.profile())
    for wrong in (
        replace(good, width=good.width + 1),
        replace(good, format="jpeg"),
        replace(good, body=good.body[: len(good.body) // 2]),
        replace(good, name="two"),
        replace(good, body=leaking),
    ):
        assert what_is_wrong(replace(developed, variants=(wrong,)), recipe) != ""
    assert what_is_wrong(replace(developed, variants=()), recipe) != ""


def result(outcome: str) -> Result:
    return Result(name="1", format="png", outcome=outcome, cpu_seconds=0.1, start_bytes=0, peak_bytes=0)
