"""What libwebp's methods cost and give: for each, the time and the bytes at the score that method 4 has at quality 80.

    python -m benchmarks.engine --webp

Each photo of the set is scaled to fit into a square and encoded by every method at several qualities; bytes and score
between two of them are interpolated. Sharp colours (`use_sharp_yuv`) are not among Pillow's settings.
"""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from benchmarks.engine.jobs import ENCODING
from benchmarks.engine.quality import ssimulacra2
from benchmarks.engine.sources import Source
from benchmarks.engine.worker import cpu_milliseconds
from benchmarks.forms import FOLDER
from repository.report import write_report

_SIDE = 1024
_METHODS = range(7)
_QUALITIES = (72, 76, 80, 84, 88)


def measure(sources: Sequence[Source], say: Callable[[str], None]) -> list[dict[str, object]]:
    """A row for each method: medians and extremes over the photos, next to method 4 at the usual quality."""
    times: dict[int, list[float]] = {method: [] for method in _METHODS}
    sizes: dict[int, list[float]] = {method: [] for method in _METHODS}
    for source in sources:
        say(f"WebP's methods: {source.name}")
        with Image.open(source.path) as opened:
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))
            picture = opened.convert("RGB")
        picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        usual_size, usual_score, usual_ms = _encoded(picture, ENCODING.webp_quality, ENCODING.webp_method)
        for method in _METHODS:
            points = [_encoded(picture, quality, method) for quality in _QUALITIES]
            scores, lengths = zip(*sorted((score, math.log(size)) for size, score, _ in points), strict=True)
            sizes[method].append(math.exp(float(np.interp(usual_score, scores, lengths))) / usual_size)
            times[method].append(statistics.median(ms for _, _, ms in points) / usual_ms)
    return [
        {
            "method": method,
            "time": round(statistics.median(times[method]), 2),
            "bytes_at_equal_score": round(statistics.median(sizes[method]), 3),
            "least_bytes": round(min(sizes[method]), 3),
            "most_bytes": round(max(sizes[method]), 3),
        }
        for method in _METHODS
    ]


def _encoded(picture: Image.Image, quality: int, method: int) -> tuple[int, float, float]:
    """Bytes, score and CPU milliseconds."""
    file, began = io.BytesIO(), cpu_milliseconds()
    picture.save(file, "WEBP", quality=quality, method=method)
    spent = cpu_milliseconds() - began
    with Image.open(file) as opened:
        return len(file.getvalue()), ssimulacra2(picture, opened), spent


def report(sources: Sequence[Source], say: Callable[[str], None]) -> None:
    """Prints and writes the table."""
    rows = measure(sources, say)
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    write_report("engine-webp", seed=0, rows=rows, goals=[], folder=FOLDER)
