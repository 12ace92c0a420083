"""What format `best` saves, and whether its table's qualities look alike, by ssimulacra2, on free photographs.

    python -m benchmarks.best [--calibrate]

`--calibrate` prints the table (`darkroom.imaging.best.EQUAL_QUALITIES`): for each JPEG quality, the qualities of WebP
and AVIF with the same score, medians of the photographs of `benchmarks/engine/photos.toml`, developed to 1024 pixels a
side, without the pictures that have alpha and the screenshot. Without it, measures these and, as a check, some of the
small photographs of `benchmarks/attention`, which the table does not know; prints figures and writes
build/reports/best.json.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import pyvips
from PIL import Image

from benchmarks.attention.__main__ import photos
from benchmarks.engine.photos import NoPhotos, free_photos
from benchmarks.engine.quality import ssimulacra2
from benchmarks.forms import FOLDER, IS_SHORT
from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import DEFAULT_QUALITY, OutputFormat, Recipe, VariantSpec
from darkroom.imaging import Rendered, develop
from darkroom.imaging.best import equal_qualities
from darkroom.imaging.encode import encode
from repository.report import Goal, write_report

SIDE = 1024
FORMATS: tuple[OutputFormat, ...] = ("jpeg", "webp", "avif")
QUALITIES = (50, 80)
NO_PHOTOGRAPHS = {"flowers-alpha.png", "line-art.png", "screenshot.png"}

CALIBRATED = (10, 25, 40, 50, 60, 70, 80, 85, 89)
"""The JPEG qualities of the table. From 90 on libvips keeps JPEG's colours at full resolution: the other two halve it,
and few photographs have a quality of WebP with the same score."""

_LADDER = (1, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100)
"""The qualities of WebP and AVIF whose scores are measured; between them the score is interpolated."""


def photographs() -> Iterator[tuple[str, bytes]]:
    """Names and PNG files of the photographs of the table."""
    for path in sorted(free_photos().iterdir()):
        if path.name not in NO_PHOTOGRAPHS:
            yield path.name, decoded(path.read_bytes())


def small_photographs() -> Iterator[tuple[str, bytes]]:
    """Names and PNG files of photographs that the table does not know: smaller than they are, because a JPEG of a
    JPEG's own pixels loses less than one of others."""
    for photo in photos()[::4]:
        yield photo.name, decoded(photo.body, side=240)


def sets_of_photographs() -> dict[str, list[tuple[str, bytes]]]:
    """Both sets; in the short form a small photograph stands for each."""
    if IS_SHORT:
        calibrated, another, *_ = small_photographs()
        return {"calibrated": [calibrated], "others": [another]}
    return {"calibrated": list(photographs()), "others": list(small_photographs())}


def decoded(body: bytes, *, side: int = SIDE) -> bytes:
    """The picture as PNG, at the size that is measured."""
    unbounded = Limits(max_bytes=2**31, max_pixels=2**31, max_decoder_bytes=2**40)
    small = Recipe(variants=(VariantSpec(name="small", width=side, height=side, format="png"),))
    return develop(body, small, limits=unbounded).variants[0].body


def score(reference: bytes, body: bytes) -> float:
    """The score of a file."""
    with Image.open(io.BytesIO(reference)) as wanted, Image.open(io.BytesIO(body)) as shown:
        return ssimulacra2(wanted, shown)


def encoded(reference: bytes, file_format: OutputFormat, quality: float) -> bytes:
    """The file that the engine makes of these pixels."""
    image = pyvips.Image.new_from_buffer(reference, "").copy_memory()
    return encode(image, file_format, quality=quality, effort="balanced")


def same_scores(reference: bytes, file_format: OutputFormat) -> list[float]:
    """For each of CALIBRATED, the quality with the score of that JPEG; infinite if there is none."""
    scores = [score(reference, encoded(reference, file_format, quality)) for quality in _LADDER]
    wanted = [score(reference, encoded(reference, "jpeg", quality)) for quality in CALIBRATED]
    return [float(np.interp(score, np.maximum.accumulate(scores), _LADDER, right=math.inf)) for score in wanted]


def calibrate() -> None:
    """Prints the table."""
    qualities_by_format: dict[OutputFormat, list[list[float]]] = {"webp": [], "avif": []}
    for name, reference in photographs():
        for file_format, rows in qualities_by_format.items():
            rows.append(same_scores(reference, file_format))
            columns = " ".join(f"{quality:6.1f}" for quality in rows[-1])
            print(f"{name:<20}{file_format:<6}{columns}", file=sys.stderr, flush=True)
    for index, quality in enumerate(CALIBRATED):
        medians = {name: median(row[index] for row in rows) for name, rows in qualities_by_format.items()}
        columns = ", ".join(f'"{name}": {quality:.0f}' for name, quality in medians.items())
        print(f"    {quality}: {{{columns}}},")


def developed(reference: bytes, file_format: str, quality: int) -> tuple[Rendered, float]:
    """A variant of the same size, and the processor time that it took, in seconds."""
    spec = VariantSpec.model_validate({"name": "same", "width": SIDE, "height": SIDE, "format": file_format})
    recipe = Recipe(variants=(spec.model_copy(update={"quality": quality}),))
    started = time.process_time()
    (variant,) = develop(reference, recipe).variants
    return variant, time.process_time() - started


def measured(photo_set: str, name: str, reference: bytes, quality: int) -> dict[str, Any]:
    """Scores, bytes and times of one photograph at a JPEG quality."""
    files = {
        file_format: developed(reference, file_format, equal)
        for file_format, equal in equal_qualities(quality, is_transparent=False).items()
    }
    best, seconds = developed(reference, "best", quality)
    scores = {file_format: score(reference, file.body) for file_format, (file, _) in files.items()}
    return {
        "set": photo_set,
        "photo": name,
        "quality": quality,
        "scores": scores,
        "spread": max(scores.values()) - min(scores.values()),
        "bytes": {file_format: len(file.body) for file_format, (file, _) in files.items()},
        "best_format": best.format,
        "best_bytes": len(best.body),
        "seconds": {file_format: took for file_format, (_, took) in files.items()} | {"best": seconds},
    }


def saved(rows: Sequence[dict[str, Any]], file_format: OutputFormat) -> float:
    """The share of that format's bytes that `best` saves, the median of the photographs."""
    return median(1 - float(row["best_bytes"]) / float(row["bytes"][file_format]) for row in rows)


def median_spread(rows: Sequence[dict[str, Any]]) -> float:
    """How far a photograph's three scores are apart, the median of the photographs."""
    return round(median(float(row["spread"]) for row in rows), 2)


def print_line(rows: Sequence[dict[str, Any]]) -> None:
    """The figures of a set at one quality."""
    scores = [median(row["scores"][name] for row in rows) for name in FORMATS]
    figures = [*scores, median_spread(rows), max(row["spread"] for row in rows)]
    shares = [f"{100 * saved(rows, name):.1f}%" for name in FORMATS]
    won = Counter(row["best_format"] for row in rows)
    print(
        f"{rows[0]['quality']:>9}{''.join(f'{figure:>9.1f}' for figure in figures)}"
        f"{''.join(f'{share:>9}' for share in shares)}"
        f"{median(row['seconds']['best'] for row in rows):>9.2f}"
        f"   {', '.join(f'{name} {times}' for name, times in won.most_common())}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.best", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calibrate", action="store_true", help="print the table")
    try:
        if parser.parse_args(arguments).calibrate:
            calibrate()
            return 0
        sets = sets_of_photographs()
    except NoPhotos as error:
        print(error, file=sys.stderr)
        return 1
    rows = [
        measured(photo_set, name, reference, quality)
        for photo_set, pictures in sets.items()
        for quality in QUALITIES
        for name, reference in pictures
    ]
    for photo_set, pictures in sets.items():
        print(f"{len(pictures)} photographs, {photo_set}: medians, and the worst difference of scores")
        heads = ("quality", "jpeg", "webp", "avif", "differ", "worst", "off jpeg", "off webp", "off avif", "seconds")
        print("".join(f"{head:>9}" for head in heads) + "   won by")
        for quality in QUALITIES:
            print_line([row for row in rows if (row["set"], row["quality"]) == (photo_set, quality)])
    usual = [row for row in rows if row["set"] == "calibrated" and row["quality"] == DEFAULT_QUALITY["jpeg"]]
    larger = sum(row["best_bytes"] > min(row["bytes"].values()) for row in rows)
    goals = [
        Goal(
            name="median of a photograph's largest difference of scores, at 80",
            value=median_spread(usual),
            limit=3,
            at_least=False,
        ),
        Goal(name="median share of JPEG's bytes that is saved", value=saved(usual, "jpeg"), limit=0.2, at_least=True),
        Goal(name="files that are larger than one of the three", value=larger, limit=0, at_least=False),
    ]
    write_report("best", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
