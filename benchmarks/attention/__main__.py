"""How much of a photograph's subject a crop by attention keeps, beside a crop of the middle.

    python -m benchmarks.attention [--all]

`photos.csv` lists free photographs, each with a box around its main subject that was drawn by hand before anything was
tuned. They are the photographs of some packages of Debian that show one subject, in the middle or not: wallpapers and
sample pictures, and boards of gcompris-qt-data whose README files name author and source (erase, farm animals, and the
monuments of the world, of France and of India). `file` is the place in `package`. The files in photos/ are smaller
versions, at most 320 pixels a side, upright, in sRGB. The box is all of the subject, or its face if the frame cuts it
off: left, top, right and bottom in fractions of the picture.

Each photograph is developed with crops by attention; measured is the share of the box's area that is inside the crop,
square and 16:9, and that inside a crop of the middle of the same size. A photograph that has the shape of the crop
already counts too: both keep all of it. Prints a table and writes build/reports/attention.json.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.forms import FOLDER as REPORTS
from darkroom.domain.images.limits import Limits
from darkroom.domain.recipes.recipes import FocalPoint, Gravity, Recipe, VariantSpec
from darkroom.imaging import develop
from darkroom.imaging.decode import open_original
from darkroom.imaging.scaling.geometry import place
from repository.report import Goal, write_report

FOLDER = Path(__file__).parent
LIST = FOLDER / "photos.csv"

SHAPES = {"1:1": (180, 180), "16:9": (320, 180)}
"""The crops: shapes, and boxes that fit into the photographs or are shrunk until they do."""


@dataclass(frozen=True, kw_only=True)
class Photo:
    """A photograph, and the box of its subject: left, top, right and bottom in fractions of the picture."""

    name: str
    box: tuple[float, float, float, float]

    @property
    def body(self) -> bytes:
        """The file."""
        return (FOLDER / "photos" / f"{self.name}.jpg").read_bytes()


def listed() -> list[dict[str, str]]:
    """The rows of the list."""
    with LIST.open(newline="") as rows:
        return [*csv.DictReader(rows)]


def photos() -> tuple[Photo, ...]:
    """The photographs of the list."""
    return tuple(
        Photo(name=row["name"], box=(float(row["left"]), float(row["top"]), float(row["right"]), float(row["bottom"])))
        for row in listed()
    )


def recipe_of(gravity: Gravity) -> Recipe:
    """Both crops by that gravity."""
    return Recipe(
        variants=tuple(
            VariantSpec(name=f"crop{number}", width=width, height=height, fit="cover", gravity=gravity)
            for number, (width, height) in enumerate(SHAPES.values())
        )
    )


def kept(photo: Photo, spec: VariantSpec, size: tuple[int, int]) -> float:
    """The share of the subject's box that is in the crop of a picture of that size."""
    placement = place(spec, *size)
    inside = 1.0
    corners = (placement.left, placement.top)
    for corner, length, full_length, begin, end in zip(
        corners, placement.size, placement.scaled, photo.box[:2], photo.box[2:], strict=True
    ):
        first, last = max(begin, corner / full_length), min(end, (corner + length) / full_length)
        inside *= max(0.0, last - first) / (end - begin)
    return inside


def measured(photo: Photo) -> dict[str, Any]:
    """What both kinds of crop keep of one photograph's subject, by shape, and the point that was found."""
    original = open_original(photo.body, Limits())
    size = original.width, original.height
    point = develop(photo.body, recipe_of("attention")).attention
    if point is None:
        raise RuntimeError(f"{photo.name} has no point")
    row: dict[str, Any] = {"photo": photo.name, "x": point.x, "y": point.y}
    for shape, middle, variant in zip(SHAPES, recipe_of("centre").variants, _at(point), strict=True):
        row[shape] = {"centre": kept(photo, middle, size), "attention": kept(photo, variant, size)}
    return row


def _at(point: FocalPoint) -> tuple[VariantSpec, ...]:
    return recipe_of(point).variants


def summary(rows: Sequence[dict[str, Any]], shape: str, kind: str) -> dict[str, float]:
    """Mean, median and worst of the shares that are kept."""
    shares = [row[shape][kind] for row in rows]
    return {"mean": fmean(shares), "median": median(shares), "worst": min(shares)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attention", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="print each photograph")
    options = parser.parse_args(arguments)
    rows = [measured(photo) for photo in photos()]
    if options.all:
        for row in rows:
            shares = "".join(f"{row[shape]['centre']:>8.3f}{row[shape]['attention']:>8.3f}" for shape in SHAPES)
            print(f"{row['photo']:<22}{row['x']:>8.4f}{row['y']:>8.4f}{shares}")
    print(f"{len(rows)} photographs: the share of the subject's box that a crop keeps")
    print(f"{'crop':<6}{'by':<12}{'mean':>8}{'median':>8}{'worst':>8}{'better':>8}{'worse':>8}")
    goals = []
    for shape in SHAPES:
        middle, attended = summary(rows, shape, "centre"), summary(rows, shape, "attention")
        gains = [row[shape]["attention"] - row[shape]["centre"] for row in rows]
        better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        for kind, figures, counts in (("centre", middle, ""), ("attention", attended, f"{better:>8}{worse:>8}")):
            print(
                f"{shape:<6}{kind:<12}{figures['mean']:>8.4f}{figures['median']:>8.4f}{figures['worst']:>8.4f}{counts}"
            )
        gain = attended["mean"] - middle["mean"]
        name = f"what attention keeps more than the middle, {shape}, in points"
        goals.append(Goal(name=name, value=round(100 * gain, 2), limit=0.01, at_least=True))
    write_report("attention", seed=None, rows=rows, goals=goals, folder=REPORTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
