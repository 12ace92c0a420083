"""The costliest recipe that is accepted takes no more memory than is promised, in every format."""

import subprocess
import sys
from math import isqrt
from typing import get_args

import pytest

from darkroom.domain.recipes.recipes import MAX_SIDE_PIXELS, MAX_WORK_PIXELS, OutputFormat, Recipe, VariantSpec
from tests.engine import peak_memory

pytestmark = pytest.mark.promise("hostile-files")

PROMISED_MB = 1.1 * 1024
"""docs/guarantees.md. The worker has 1769 MB."""


def costliest(file_format: str) -> Recipe:
    """The largest still that is allowed, by the quickest encoder: what it holds depends on the size alone."""
    fields = {"name": "a", "fit": "exact", "enlarge": True, "format": file_format, "effort": "fast"}
    fields["animation"] = "keep" if file_format == "gif" else "first"
    work = VariantSpec.model_validate({**fields, "width": 1000, "height": 1000}).work_pixels / 1_000_000
    side = min(MAX_SIDE_PIXELS, isqrt(int(MAX_WORK_PIXELS / work)))
    return Recipe(variants=(VariantSpec.model_validate({**fields, "width": side, "height": side}),))


@pytest.mark.parametrize(
    "file_format",
    [
        pytest.param(name, marks=[] if name in ("jpeg", "avif") else [pytest.mark.long])
        for name in get_args(OutputFormat.__value__)
    ],
)
def test_the_largest_still_takes_no_more_memory_than_is_promised(file_format: str) -> None:
    recipe = costliest(file_format)
    assert 0.99 * MAX_WORK_PIXELS < recipe.work_pixels <= MAX_WORK_PIXELS
    done = subprocess.run(
        [sys.executable, peak_memory.__file__],
        input=recipe.model_dump_json().encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert float(done.stdout) < PROMISED_MB
