"""Files made to break a decoder: each ends as it should, within 512 MB, in its own process."""

from collections.abc import Sequence

import pytest

from tests.fuzz.attack import attacks, hostile_attack
from tests.fuzz.hostile import Case, hostile_cases
from tests.fuzz.verdict import problem_of

pytestmark = pytest.mark.promise("hostile-files")

# One of each kind that takes longer to make or to refuse; `make fuzz` takes them all.
HEAVY = (
    "gif-5000x5000",
    "gif-flood-comment",
    "jpeg-52mp",
    "jpeg-52mp-most-scans",
    "jpeg-data-flood-restarts",
    "jpeg-flood-app1",
    "jpeg-flood-fill",
    "jpeg-profile-8000-stages",
    "png-16mp-interlaced",
    "png-flood-test",
    "webp-512x512-16384-groups",
    "webp-flood-test",
)


# In few groups, because each begins with a process that loads the engine.
@pytest.mark.guards("heic-picture-alone", case="heic")
@pytest.mark.parametrize(
    ("formats", "every"),
    [
        pytest.param(("jpeg", "none", "webp", "avif", "png", "gif"), 4, id="a quarter"),
        pytest.param(("jpeg", "none", "webp", "avif"), 1, id="jpeg none webp avif", marks=pytest.mark.long),
        pytest.param(("png", "gif"), 1, id="png gif", marks=pytest.mark.long),
        pytest.param(("heic",), 1, id="heic"),
    ],
)
def test_every_hostile_file_ends_as_it_should(formats: Sequence[str], every: int) -> None:
    cases = [case for case in hostile_cases().values() if case.format in formats and not case.heavy]
    assert_good(cases[::every])


def test_large_hostile_files_end_as_they_should() -> None:
    assert_good([hostile_cases()[name] for name in HEAVY])


@pytest.mark.parametrize("name", ["webp-4000x3000-lossless", "webp-24mp-lossy-alpha"])
def test_a_large_sound_file_is_not_refused_by_a_new_process(name: str) -> None:
    """Free memory left by earlier inputs hides how much a decoder asks for."""
    (result,) = attacks([hostile_attack(hostile_cases()[name])], jobs=1)
    assert (result.outcome, result.detail) == ("developed", "")


def assert_good(cases: Sequence[Case]) -> None:
    results = list(attacks((hostile_attack(case) for case in cases), jobs=1))
    assert len(results) == len(cases) > 0
    problems = {result.name: (problem, result.detail) for result in results if (problem := problem_of(result))}
    assert problems == {}
