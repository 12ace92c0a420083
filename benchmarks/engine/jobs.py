"""The jobs of all engines: the variants, and how each is encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

type Format = Literal["jpeg", "png", "webp", "avif"]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One picture to make: fitted inside a square of `side` pixels, never enlarged."""

    name: str
    side: int
    format: Format


@dataclass(frozen=True, kw_only=True)
class Job:
    """The variants to make of one original, largest first: a cascade goes down the list."""

    name: str
    title: str
    variants: tuple[Variant, ...]


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """The encoders' settings, the same for all engines. An engine may raise its quality: the quality goals bound it."""

    jpeg_quality: int = 80
    jpeg_optimize: bool = False  # Huffman tables made for each picture: 0.8% fewer bytes for 9 ms of a 1920 px JPEG
    webp_quality: int = 80
    webp_method: int = 4
    avif_quality: int = 60
    avif_speed: int = 6  # libavif's; libheif's effort is 9 less it
    png_compression: int = 6
    png_adaptive_filter: bool = False  # Pillow has no such setting: its encoder always chooses a filter for each row

    def of(self, variant_format: Format) -> str:
        """The settings of one format as words, for a report's row."""
        match variant_format:
            case "jpeg":
                tables = "optimised" if self.jpeg_optimize else "standard"
                return f"JPEG q{self.jpeg_quality} 4:2:0 baseline, {tables} Huffman tables"
            case "webp":
                return f"WebP q{self.webp_quality} method {self.webp_method}"
            case "avif":
                return f"AVIF q{self.avif_quality} speed {self.avif_speed} 4:2:0"
            case "png":
                filters = "adaptive filters" if self.png_adaptive_filter else "no filter"
                return f"PNG level {self.png_compression}, {filters} (Pillow: always adaptive)"

    def of_job(self, job: Job) -> list[str]:
        """The settings of all formats of a job."""
        return [self.of(variant_format) for variant_format in dict.fromkeys(variant.format for variant in job.variants)]


ENCODING = Encoding()

_SIDES = {"large": 1920, "medium": 800, "thumb": 256}


def _three(variant_format: Format) -> tuple[Variant, ...]:
    return tuple(Variant(name=name, side=side, format=variant_format) for name, side in _SIDES.items())


_WEBP = Variant(name="webp", side=_SIDES["large"], format="webp")

J1 = Job(name="J1", title="a thumbnail alone", variants=(Variant(name="thumb", side=_SIDES["thumb"], format="jpeg"),))
J3 = Job(name="J3", title="three JPEGs", variants=_three("jpeg"))
J4 = Job(name="J4", title="three JPEGs and a WebP", variants=(*J3.variants, _WEBP))
PNG = Job(name="PNG", title="three PNGs", variants=_three("png"))
ALPHA = Job(name="ALPHA", title="three PNGs and a WebP, transparent", variants=(*PNG.variants, _WEBP))
AVIF = Job(name="AVIF", title="an AVIF", variants=(Variant(name="medium", side=_SIDES["medium"], format="avif"),))

JOBS = {job.name: job for job in (J1, J3, J4, PNG, ALPHA, AVIF)}


def fitted_inside(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture fitted inside a square of `side` pixels: its shape kept, never enlarged, at least 1 × 1."""
    scale = min(side / width, side / height, 1)
    return max(1, round(width * scale)), max(1, round(height * scale))


def request_of(job: Job, source: str, *, save: str | None = None, encoding: Encoding = ENCODING) -> Mapping[str, Any]:
    """The line of JSON that tells a worker to run `job` on the file `source`, and where to write its variants."""
    return {
        "source": source,
        "variants": [asdict(variant) for variant in job.variants],
        "encoding": asdict(encoding),
        "save": save,
    }
