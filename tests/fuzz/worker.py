"""The child process that develops hostile files and mutants, and reports how each one ended and its cost.

It reads one JSON object per line, `{"mutant": 17, "seed": 1}` or `{"name": "png-bomb", "format": "png", "path": "…"}`,
and answers each with one; its first line is about itself. From the answers its parent knows which input killed it.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import resource
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.images.media_types import MEDIA_TYPES
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import FocalPoint, Overlay, Recipe, Region, VariantSpec
from darkroom.imaging import Developed, develop
from tests.fuzz.handmade import jpeg
from tests.fuzz.hostile import DEVELOPED
from tests.fuzz.hostile.case import KEPT, POSTER
from tests.fuzz.mutants import mutant

CODES = frozenset(
    {
        *("unsupported_format", "file_too_large", "too_many_pixels", "side_too_long", "aspect_too_extreme"),
        *("too_many_frames", "too_many_scans", "truncated", "undecodable", "animation_too_large"),
        "overlay_undecodable",
    }
)
"""The codes that a refusal may have: clients branch on them."""

NO_CODE, UNEXPECTED, NO_MEMORY, WRONG = (
    "refusal without a code",
    "unexpected exception",
    "out of memory",
    "wrong output",
)

MEGABYTE = 2**20
CPU_BACKSTOP_SECONDS = 30
"""The processor time after which the kernel ends the process: far above the goal, to detect endless loops."""

# AVIF and HEIC are off by default; here everything that can be enabled is attacked.
_LIMITS = Limits(input_formats=frozenset(MEDIA_TYPES))
_VARIANTS = (
    VariantSpec(name="large", width=1920, height=1920, format="jpeg"),
    VariantSpec(name="cover", width=256, height=256, fit="cover", gravity=FocalPoint(x=0.2, y=0.7), format="png"),
    VariantSpec(name="contain", width=96, height=64, fit="contain", gravity="southeast", format="webp"),
    VariantSpec(name="attention", width=64, height=36, fit="cover", gravity="attention", format="png"),
    VariantSpec(name="exact", width=40, height=70, fit="exact"),
)
_BEST = VariantSpec(name="best", width=40, height=40, format="best", effort="fast")
_AVIF = VariantSpec(name="avif", width=48, height=48, format="avif", effort="fast")
_ITSELF = "0" * 26
"""Every overlay is the input itself: an overlay's file is as hostile as an original."""
_EDITS = Recipe(
    variants=(
        *_VARIANTS,
        VariantSpec(name="filtered", width=40, height=40, fit="contain", background="edge", sharpen=1),
        VariantSpec(
            name="marked",
            width=90,
            height=60,
            format="png",
            overlays=(
                Overlay(image=_ITSELF, scale=0.3, opacity=0.6, tile=True),
                Overlay(image=_ITSELF, gravity="north", scale=1, margin=0.5),
            ),
        ),
    ),
    regions=tuple(
        Region(x=0.2, y=0.1, width=0.5, height=0.7, effect=effect) for effect in ("blur", "pixelate", "fill")
    ),
    rotate=90,
    flip="vertical",
    trim=16,
    metadata="copyright",
)
_PLAIN = Recipe(variants=_VARIANTS, metadata="copyright")
_WITH_AVIF = Recipe(variants=(*_VARIANTS, _AVIF, _BEST), metadata="copyright")
_AVIF_EVERY, _EDITED_EVERY = 20, 7
"""One in so many mutants is also encoded as AVIF, which takes longer than everything else, or edited."""
_NO_RIGHTS_EVERY = 4
"""One in so many mutants is developed as most recipes ask: without the rights that are in its metadata."""
_LEAKS = {"exif", "icc_profile", "xmp", "comment", "photoshop"}
_RIGHTS = {"exif", "xmp", "XML:com.adobe.xmp", "photoshop"}
_RIGHTS_IN_EXIF = {0x013B, 0x8298}
_RIGHTS_IN_XMP = {"creator", "rights", "UsageTerms", "WebStatement", "Credit", "Source", "license", "Licensor"}
_MOVING = Recipe(
    variants=(
        VariantSpec(name="webp", width=96, height=96, animation="keep"),
        VariantSpec(
            name="gif", width=96, height=64, fit="contain", background="#12345680", format="gif", animation="keep"
        ),
        VariantSpec(name="poster", width=64, height=64, fit="cover", format="png", animation="poster"),
        VariantSpec(name="first", width=32, format="png"),
    ),
    metadata="copyright",
)
_POSTER = Recipe(variants=tuple(spec for spec in _MOVING.variants if spec.animation != "keep"), metadata="copyright")
_MOVING_EVERY = 3
"""One in so many mutants is developed into variants that keep an animation, if it is one."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one input ended: `developed`, a refusal's code or a wrong outcome.

    `start_bytes` is what the process held before: a worker keeps part of what earlier inputs took.
    """

    name: str
    format: str
    outcome: str
    cpu_seconds: float
    start_bytes: int
    peak_bytes: int
    detail: str = ""


def measured(name: str, file_format: str, body: bytes, *, recipe: Recipe = _PLAIN) -> Result:
    """Develops `body` and measures it."""
    _allow_cpu(CPU_BACKSTOP_SECONDS)
    _reset_peak()
    start_bytes = _status_bytes("VmRSS")
    started = time.process_time()
    developed, detail = None, ""
    try:
        developed = develop(body, recipe, limits=_LIMITS, effort="fast", overlay_of=lambda _: body)
        outcome = DEVELOPED
    except Rejected as refusal:
        outcome = refusal.code if refusal.code in CODES and refusal.message else NO_CODE
        detail = f"{refusal.code}: {refusal.message}"
    except MemoryError:
        outcome, detail = NO_MEMORY, traceback.format_exc()
    except Exception:
        outcome, detail = UNEXPECTED, traceback.format_exc()
    cpu_seconds = time.process_time() - started
    peak = _status_bytes("VmHWM")
    if developed is not None and (wrong := what_is_wrong(developed, recipe)):
        outcome, detail = WRONG, wrong
    return Result(
        name=name,
        format=file_format,
        outcome=outcome,
        cpu_seconds=cpu_seconds,
        start_bytes=start_bytes,
        peak_bytes=peak,
        detail=detail,
    )


def what_is_wrong(developed: Developed, recipe: Recipe) -> str:
    """What differs from what was declared, by another decoder than the engine's; empty if nothing does."""
    if [variant.name for variant in developed.variants] != [spec.name for spec in recipe.variants]:
        return "other variants than those asked for"
    for variant in developed.variants:
        try:
            with Image.open(io.BytesIO(variant.body)) as opened:
                opened.load()
                facts = ((opened.format or "").lower(), opened.width, opened.height, sorted(opened.info))
                strange = _not_rights(opened) if recipe.metadata == "copyright" else set()
        except Exception as error:
            return f"{variant.name} cannot be opened: {error!r}"
        if facts[:3] != (variant.format, variant.width, variant.height):
            return f"{variant.name} is {facts[:3]}, not {(variant.format, variant.width, variant.height)}"
        leaks = _LEAKS - _RIGHTS if recipe.metadata == "copyright" else _LEAKS
        if leaked := leaks.intersection(facts[3]) | strange:
            return f"{variant.name} carries {', '.join(leaked)}"
    return ""


def _not_rights(opened: Image.Image) -> set[str]:
    """What a file's EXIF and XMP have besides the rights. Raises ParseError if the XMP is no XML."""
    tags = {f"EXIF tag {tag}" for tag in set(opened.getexif()) - _RIGHTS_IN_EXIF}
    if "xmp" not in opened.info:
        return tags
    ((description,),) = ElementTree.fromstring(opened.info["xmp"])
    return tags | {element.tag for element in description if element.tag.partition("}")[2] not in _RIGHTS_IN_XMP}


def _allow_cpu(seconds: int) -> None:
    """Only a backstop: SIGXCPU ends a process above it, even in C code, which no Python signal handler interrupts."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + seconds, hard))


def _reset_peak() -> None:
    """Reset the high-water mark of resident memory (proc_pid_clear_refs(5)).

    If the kernel does not allow that, the mark is that of all inputs so far: still an upper bound for each of them.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status_bytes(field: str) -> int:
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def _answer(request: dict[str, Any]) -> Result:
    if "path" in request:
        name = str(request["name"])
        recipe = _MOVING if KEPT in name else _POSTER if POSTER in name else _PLAIN
        return measured(name, str(request["format"]), Path(request["path"]).read_bytes(), recipe=recipe)
    index = int(request["mutant"])
    made = mutant(index, seed=request["seed"])
    if index % _MOVING_EVERY == 1:
        recipe = _MOVING
    else:
        recipe = _WITH_AVIF if index % _AVIF_EVERY == 0 else _EDITS if index % _EDITED_EVERY == 0 else _PLAIN
    if index % _NO_RIGHTS_EVERY == 1:
        recipe = recipe.model_copy(update={"metadata": "none"})
    return measured(str(index), made.source.partition("-")[0], made.body, recipe=recipe)


def _serve(requests: TextIO, answers: TextIO) -> None:
    # Warm up, so that one-time setup of the libraries counts for no input.
    first = measured("warm-up", "jpeg", jpeg.solid(640, 480), recipe=_WITH_AVIF)
    print(json.dumps({**asdict(first), "peak_bytes": _status_bytes("VmRSS")}), file=answers, flush=True)
    for line in requests:
        print(json.dumps(asdict(_answer(json.loads(line)))), file=answers, flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    # Anything that a library prints must stay out of the answers.
    private = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _serve(sys.stdin, private)
