"""Develops a small picture by one recipe and prints the peak memory of its process, in MiB: see test_costliest.

Standard input is the recipe. The picture is noise under a noisy alpha, the worst for every encoder.
"""

from __future__ import annotations

import random
import sys

from PIL import Image

from benchmarks.engine.worker import peak_megabytes
from darkroom.domain.recipes.recipes import Recipe
from darkroom.imaging import develop
from tests.support.fakes.pictures import encoded


def main() -> None:
    """Develops, and prints."""
    noise = Image.frombytes("RGBA", (64, 64), random.Random(1).randbytes(64 * 64 * 4))
    develop(encoded(noise, "PNG"), Recipe.model_validate_json(sys.stdin.read()))
    print(peak_megabytes())


if __name__ == "__main__":
    main()
