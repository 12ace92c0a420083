"""The same file and recipe give the same bytes: in any process, on any number of cores, after and during other work."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import batched
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from darkroom.domain.recipes.recipes import Recipe
from darkroom.imaging import Developed, develop
from tests.engine import fresh_process
from tests.engine.golden import jpeg_files, png_files, scenes
from tests.engine.golden.animations import Step, apng
from tests.engine.golden.cases import SAMPLINGS, SPACES
from tests.engine.golden.exif import exif, stored
from tests.engine.golden.scenes import levels

pytestmark = pytest.mark.promise("same-bytes")

JOBS_AN_INTERPRETER = 3  # one in the interpreter itself, the others in children forked from it

RECIPE: dict[str, Any] = {
    "variants": [
        {"name": "jpeg", "width": 140, "format": "jpeg"},
        {"name": "small-jpeg", "width": 90, "format": "jpeg", "effort": "small"},
        {"name": "png", "width": 90, "format": "png"},
        {"name": "webp", "width": 140, "format": "webp"},
        {"name": "avif", "width": 90, "format": "avif", "effort": "fast"},
        {"name": "best", "width": 90, "format": "best", "effort": "fast"},
        {"name": "cover", "width": 60, "height": 60, "fit": "cover", "gravity": {"x": 0.3, "y": 0.6}, "format": "webp"},
        {"name": "by-attention", "width": 60, "height": 40, "fit": "cover", "gravity": "attention", "format": "png"},
        {"name": "edge", "width": 80, "height": 80, "fit": "contain", "background": "edge", "blur": 1, "sharpen": 2},
        {"name": "moving", "width": 60, "animation": "keep"},
        {"name": "gif", "width": 50, "format": "gif", "animation": "keep"},
        {"name": "poster", "width": 60, "format": "png", "animation": "poster"},
        {"name": "marked", "width": 70, "overlays": [{"image": "0" * 26, "scale": 0.3, "opacity": 0.7, "tile": True}]},
        {"name": "ceiling", "width": 140, "format": "jpeg", "quality": 95, "max_bytes": 3000},
    ]
}

# An encoder that may divide a picture among threads starts to at half a megapixel, and only for as many threads as
# there are processors. The file must not show how many there were.
LARGE = {"name": "large-avif", "width": 1024, "height": 1024, "enlarge": True, "format": "avif", "effort": "fast"}

# So does what reads a picture as it is decoded, in as many threads.
REGION = {"x": 0.2, "y": 0.3, "width": 0.4, "height": 0.3}
EDITS: dict[str, Any] = {
    "regions": [{**REGION, "effect": "blur"}, {**REGION, "x": 0.5, "effect": "pixelate"}], "trim": 4, "rotate": 90,
}  # fmt: skip

ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {"VIPS_CONCURRENCY": "1"},
    {"VIPS_CONCURRENCY": "4"},
    {"MALLOC_ARENA_MAX": "1"},
    # Fresh and freed memory is filled with a byte: this reveals reads of uninitialised memory.
    {"MALLOC_PERTURB_": "85"},
    {"MALLOC_PERTURB_": "170", "VIPS_CONCURRENCY": "4"},
    {"PYTHONMALLOC": "malloc", "MALLOC_MMAP_THRESHOLD_": "4096"},
    {"PYTHONMALLOC": "debug", "LC_ALL": "C", "TZ": "Pacific/Kiritimati"},
)


def photo() -> bytes:
    """A phone's photo: Display P3, halved chroma, stored on its side."""
    picture = SPACES["display-p3"].encode(scenes.scene(320, 240))
    segments = [
        jpeg_files.exif_segment(exif(6)),
        *jpeg_files.icc_segments(SPACES["display-p3"].profile),
    ]
    return jpeg_files.jpeg(stored(picture, 6) * 255, sampling=SAMPLINGS["420"], segments=segments)


def drawing() -> bytes:
    """A half-transparent picture with 16 bits of depth."""
    samples = np.dstack([scenes.scene(150, 100), scenes.alpha_scene(150, 100)])
    return png_files.png(levels(samples, 65535), png_files.RGBA, depth=16)


def animation() -> bytes:
    """A few frames with soft edges and many colours."""
    samples = levels(np.dstack([scenes.scene(60, 40), scenes.alpha_scene(60, 40)]), 255).astype(np.uint8)
    steps = [Step(samples=np.roll(samples, 9 * turn, axis=1), over=turn % 2 == 0) for turn in range(4)]
    return apng((60, 40), steps)


def made(body: bytes, recipe: Recipe) -> Developed:
    """What each process makes of a file."""
    return develop(body, recipe, overlay_of=lambda _: drawing())


def jobs(processes: int) -> list[dict[str, Any]]:
    """What each process does, every one a little differently."""
    processors = sorted(os.sched_getaffinity(0))
    return [
        {
            # Of two interpreters that make the large picture, one has all of them.
            "processors": processors if number % 7 < 2 else [processors[number % len(processors)]],
            "first_variant": number % len(RECIPE["variants"]),
            "another_job_before": number % 4 == 1,
            "two_jobs_at_once": number % 5 == 2,
        }
        for number in range(processes)
    ]


def in_a_fresh_interpreter(number: int, its_jobs: tuple[dict[str, Any], ...], folder: Path) -> list[dict[str, str]]:
    """The digests of some jobs that share their own interpreter, with its own environment."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONHASHSEED": str(number),
        # Compiled once for all of them: their results matter here, not how long they take to start.
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        **ENVIRONMENTS[number % len(ENVIRONMENTS)],
    }
    work = {
        "sources": [str(folder / "photo.jpg"), str(folder / "drawing.png"), str(folder / "animation.png")],
        "recipe": RECIPE,
        "jobs": its_jobs,
        "alone": {"variants": [LARGE], **EDITS} if number % 4 == 0 else None,
    }
    done = subprocess.run(
        [sys.executable, fresh_process.__file__],
        env=environment,
        cwd=folder if number % 2 else "/",
        input=json.dumps(work).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("processes", [100 if os.environ.get("LONG") == "1" else 24])
def test_many_processes_make_the_same_bytes_of_every_variant(processes: int, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(photo())
    (tmp_path / "drawing.png").write_bytes(drawing())
    (tmp_path / "animation.png").write_bytes(animation())
    shares = list(batched(jobs(processes), JOBS_AN_INTERPRETER, strict=False))
    results = in_a_fresh_interpreter(0, shares[0], tmp_path)  # first, alone: it compiles what the others load
    with ThreadPoolExecutor(max_workers=2) as pool:
        numbers = range(1, len(shares))
        for more in pool.map(in_a_fresh_interpreter, numbers, shares[1:], [tmp_path] * len(numbers)):
            results += more
    assert len(results) == processes

    seen: dict[str, set[str]] = defaultdict(set)
    for result in results:
        for name, digest in result.items():
            seen[name].add(digest)
    names = [*(spec["name"] for spec in RECIPE["variants"]), "placeholder", "attention"]
    wanted = {f"{source} {name}" for source in ("photo", "drawing", "animation") for name in names}
    wanted.add("photo large-avif")
    assert set(seen) == wanted
    assert {name: len(digests) for name, digests in seen.items() if len(digests) > 1} == {}

    here = made(photo(), Recipe.model_validate(RECIPE))
    for variant in here.variants:
        assert seen[f"photo {variant.name}"] == {hashlib.sha256(variant.body).hexdigest()}


def test_developing_twice_in_one_process_gives_the_same_result() -> None:
    recipe = Recipe.model_validate(RECIPE)
    assert made(photo(), recipe) == made(photo(), recipe)


def test_different_pictures_and_qualities_do_differ() -> None:
    """The other tests would pass for an engine that ignored its input."""
    usual = made(photo(), Recipe.model_validate(RECIPE)).variants
    other = made(drawing(), Recipe.model_validate(RECIPE)).variants
    assert all(a.body != b.body for a, b in zip(usual, other, strict=True))
    coarse = {"variants": [{**RECIPE["variants"][0], "quality": 40}]}
    assert made(photo(), Recipe.model_validate(coarse)).variants[0].body != usual[0].body
